"""The SMB server: connections, sessions, credits, signing, encryption, and the commands."""

from typing import Final

NAME: Final = "smb"
"""The name of its listener."""
