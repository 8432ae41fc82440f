"""Unique ids: ranges that are reserved, and the classic generator."""
