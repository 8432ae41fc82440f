"""Commands that make a data directory from the data of another server."""
