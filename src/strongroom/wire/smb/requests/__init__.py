"""Bodies of the SMB requests for a tree connect's files, and of their answers."""
