"""The records of messages, and their check."""
