"""The commands of the coordination toolkit."""
