"""The documents and addresses of the Table service."""
