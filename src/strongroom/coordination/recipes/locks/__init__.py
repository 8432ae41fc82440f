"""Locks: exclusive locks, several at once, read-write locks, and their inspection."""
