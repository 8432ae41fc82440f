"""Messages that set a connection up: dialects, authentication, shares, and the plain commands."""
