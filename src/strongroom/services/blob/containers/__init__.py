"""Containers: creating, listing, deleting, and sweeping what was deleted."""
