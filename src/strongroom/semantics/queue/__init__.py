"""The rules of messages."""
