"""The tail of requests: what is kept of each, who may see it, and why a request was refused."""
