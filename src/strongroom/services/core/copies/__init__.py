"""The shared parts of all copies: sources, bodies made of sources, pending copies."""
