"""Shared by the copies of every service: sources, bodies made of sources, pending copies."""
