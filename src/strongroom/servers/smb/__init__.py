"""The SMB server: connections, sessions, credits, signing, encryption, and the commands."""
