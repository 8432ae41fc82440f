"""Shared by the wire formats of every service: HTTP messages, queries, headers, XML."""
