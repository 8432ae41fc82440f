"""The declared operations of the File service."""
