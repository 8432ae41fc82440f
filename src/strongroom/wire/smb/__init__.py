"""The bytes of SMB 3: messages, contexts, tokens."""
