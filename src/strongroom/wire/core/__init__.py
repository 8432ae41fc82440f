"""What every service speaks: HTTP messages, queries, headers, XML."""
