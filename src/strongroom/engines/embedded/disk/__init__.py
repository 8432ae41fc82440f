"""A data directory: its files and their names, its lock and format, threads that wait for it."""
