"""The body of an error response, and of an interim response.

Source: [MS-SMB2] section 2.2.2; smb.md 1.2.
"""

from __future__ import annotations

import struct
from typing import Final

_FIXED: Final = struct.Struct("<HBxI")
_CONTEXT: Final = struct.Struct("<II")
_STRUCTURE_SIZE: Final = 9
# A body without data still contains one byte.
NO_DATA: Final = _FIXED.pack(_STRUCTURE_SIZE, 0, 0) + b"\0"


def write_error(data: bytes = b"", *, in_context: bool = False) -> bytes:
    """The body of an error response.

    Arguments:
        data: the ErrorData that the status requires.
        in_context: whether the dialect is 3.1.1, which wraps the data into an error context.
    """
    if not data:
        return NO_DATA
    if not in_context:
        return _FIXED.pack(_STRUCTURE_SIZE, 0, len(data)) + data
    whole = _CONTEXT.pack(len(data), 0) + data
    return _FIXED.pack(_STRUCTURE_SIZE, 1, len(whole)) + whole
