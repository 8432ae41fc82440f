"""The declared operations of the Table service."""
