"""Declared layouts of the fixed parts of SMB's structures, and bounds of the variable ones.

All integers are little-endian. Source: [MS-SMB2] section 2.2; smb.md 5.2.
"""

from __future__ import annotations

import struct
from typing import Generic, TypeVar

import msgspec

S = TypeVar("S", bound=msgspec.Struct)

Piece = bytes | bytearray | memoryview
"""One of the byte strings of a message that is sent in several."""


class MalformedMessage(Exception):
    """The bytes are not a valid message of the expected kind. The text says why."""


class Layout(Generic[S]):
    """The binary layout of a struct: its fields in order, without gaps.

    Arguments:
        kind: the struct; its fields are in the order of the bytes.
        form: a format of the `struct` module without its byte order; `x` for reserved bytes.
    """

    def __init__(self, kind: type[S], form: str) -> None:
        self._kind = kind
        self._struct = struct.Struct("<" + form)
        self.size = self._struct.size

    def read(self, data: bytes | memoryview, at: int = 0) -> S:
        """Raises MalformedMessage when the struct that begins at `at` is truncated."""
        if at < 0 or len(data) - at < self.size:
            raise MalformedMessage(f"{self._kind.__name__} needs {self.size} bytes from {at} on")
        return self._kind(*self._struct.unpack_from(data, at))

    def write(self, value: S) -> bytes:
        """Reserved bytes are zero."""
        return self._struct.pack(*msgspec.structs.astuple(value))


def variable_part(data: memoryview, offset: int, length: int, *, after: int) -> memoryview:
    """The variable part to which an (offset, length) pair of a structure refers.

    Arguments:
        data: the message, from the first byte that offsets count from.
        after: where the fixed part ends; an offset before it is refused. The offset is ignored when
            the length is 0.
    """
    if not length:
        return data[:0]
    if offset < after or offset + length > len(data):
        raise MalformedMessage(f"bytes {offset} to {offset + length} are not in the variable part")
    return data[offset : offset + length]
