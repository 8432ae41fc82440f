"""The console's read API: its documents, its endpoints, and their answers."""
