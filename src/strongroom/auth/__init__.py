"""Authentication and authorization: signatures, shared access signatures, public access. No
storage."""
