"""The documents of the Blob service."""
