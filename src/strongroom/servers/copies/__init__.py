"""Reading the source of a copy from another server, and which addresses it may lie at."""
