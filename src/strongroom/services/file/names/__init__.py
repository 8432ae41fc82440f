"""Paths of a share, permissions and SMB properties, and the writes beside a change."""
