"""The declarations of all operations, each made once, and the routes and codec that use them."""
