"""SQLite's write-ahead log: its format, the check before it is opened, its space, checkpoints."""
