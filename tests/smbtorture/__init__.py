"""Samba's smbtorture against this server: which of its tests count, and which of them pass."""
