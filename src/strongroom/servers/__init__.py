"""Sockets and pacing. Decides nothing."""
