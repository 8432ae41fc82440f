"""The states of a blob: its head, and the snapshots, versions and soft-deleted states behind it.

Lives here: what happens to a state that is created, displaced, protected, restored or expired. Must
not live here: how the content of a blob of some type is written."""
