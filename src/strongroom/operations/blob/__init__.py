"""The declared operations of the Blob service."""
