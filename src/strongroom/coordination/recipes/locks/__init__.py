"""Locks: exclusive, shared, and what is shown of them."""
