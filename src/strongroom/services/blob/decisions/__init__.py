"""How a request on a blob or a container is decided: read, guarded and changed in one commit."""
