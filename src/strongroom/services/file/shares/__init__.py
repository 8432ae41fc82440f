"""Shares: their records, lists, and snapshots."""
