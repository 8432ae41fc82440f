"""The socket side: the listener, a connection's frames, and the assembly of both."""
