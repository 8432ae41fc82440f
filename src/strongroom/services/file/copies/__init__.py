"""Copy File and Abort Copy File, and files as the sources of copies."""
