"""Samba's smbtorture against this server: the tests that count, and those that pass."""
