"""The access log: one line of JSON for each request, written by a thread of its own."""
