"""Commits in groups: the order at the serial point, the thread that syncs, stamps, a full disk."""
