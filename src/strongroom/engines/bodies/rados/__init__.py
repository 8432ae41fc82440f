"""Long bodies in a pool of Ceph: a thin binding of its C library, and the layout of the objects."""
