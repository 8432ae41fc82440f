"""How a request on a blob or a container is decided: read, guarded and changed in one commit.

Lives here: what every operation on blobs uses. Must not live here: any operation.
"""
