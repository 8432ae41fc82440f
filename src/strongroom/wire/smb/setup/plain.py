"""Commands without parameters: LOGOFF, TREE_DISCONNECT, ECHO, CANCEL.

Lives here: their common layout. Must not live here: their effects. Source: [MS-SMB2] sections
2.2.7, 2.2.8, 2.2.11, 2.2.12, 2.2.28 to 2.2.30; smb.md 2.3.
"""

from __future__ import annotations

from typing import Final

STRUCTURE_SIZE: Final = 4
RESPONSE: Final = b"\4\0\0\0"
