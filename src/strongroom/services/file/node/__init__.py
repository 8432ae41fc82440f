"""One directory or file, by its path or by a handle: its access, its decision, its bytes."""
