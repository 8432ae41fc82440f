"""The shared wire formats of all services: HTTP messages, queries, headers, XML."""
