"""The documents of the Queue service."""
