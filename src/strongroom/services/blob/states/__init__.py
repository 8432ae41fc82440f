"""The states of a blob: its head, and the snapshots, versions and soft-deleted states behind it."""
