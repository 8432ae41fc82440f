"""Messages that set up a connection: dialects, authentication, shares, and the plain commands."""
