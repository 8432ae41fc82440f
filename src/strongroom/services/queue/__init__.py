"""Decisions on queues and their messages."""
