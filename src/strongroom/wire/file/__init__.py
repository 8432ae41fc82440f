"""The documents of the File service."""
