"""The records of messages, and their integrity check."""
