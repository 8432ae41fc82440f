"""REST's operations on directories and files, by their paths."""
