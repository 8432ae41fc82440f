"""The declared operations of the Queue service."""
