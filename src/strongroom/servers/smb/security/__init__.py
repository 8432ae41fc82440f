"""The security of connections: authentication, signing, encryption."""
