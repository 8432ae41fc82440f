"""The common parts of the bodies of several commands: their StructureSize, and names in UTF-16.

Source: [MS-SMB2] sections 2.2.13 to 2.2.40 (StructureSize); smb.md 5.2.

A StructureSize is odd when a variable part follows: the fixed part is one byte shorter then.
"""

from __future__ import annotations

import struct
from typing import Final, Generic, TypeVar

import msgspec

from strongroom.wire.smb.header import HEADER_BYTES
from strongroom.wire.smb.structures import Layout, MalformedMessage

S = TypeVar("S", bound=msgspec.Struct)

_SIZE: Final = struct.Struct("<H")
# LOGOFF, TREE_DISCONNECT, ECHO and CANCEL have no parameters ([MS-SMB2] 2.2.7, 2.2.8, 2.2.11,
# 2.2.12, 2.2.28 to 2.2.30).
PLAIN_STRUCTURE_SIZE: Final = 4
PLAIN_BODY: Final = b"\4\0\0\0"


class MessageBody(Generic[S]):
    """The fixed part of a body, which begins with its StructureSize.

    Arguments:
        kind: the struct of the fields after the StructureSize.
        form: as in Layout.
        structure_size: the constant of the message; the form has to agree with it.
    """

    def __init__(self, kind: type[S], form: str, structure_size: int) -> None:
        self._layout = Layout(kind, form)
        self._name = kind.__name__
        self.structure_size = structure_size
        self.size = _SIZE.size + self._layout.size
        if self.size != structure_size & ~1:
            raise ValueError(f"{self._name} has {self.size} bytes, not {structure_size}")

    @property
    def end(self) -> int:
        """The first offset of a variable part, counted from the header's first byte."""
        return HEADER_BYTES + self.size

    def read(self, message: memoryview) -> S:
        """Parse the fixed part of a message that begins with its header."""
        if len(message) < self.end:
            raise MalformedMessage(f"{self._name} needs {self.size} bytes")
        (size,) = _SIZE.unpack_from(message, HEADER_BYTES)
        if size != self.structure_size:
            raise MalformedMessage(f"{self._name} has StructureSize {size}")
        return self._layout.read(message, HEADER_BYTES + _SIZE.size)

    def write(self, value: S) -> bytes:
        """The bytes of the fixed part, without a header."""
        return _SIZE.pack(self.structure_size) + self._layout.write(value)


def utf16(data: bytes | memoryview) -> str:
    """Unpaired surrogates are kept: the rules of names refuse them."""
    if len(data) % 2:
        raise MalformedMessage(f"a text of {len(data)} bytes is no UTF-16")
    return bytes(data).decode("utf-16-le", "surrogatepass")


def utf16_bytes(text: str) -> bytes:
    """Without a terminator."""
    return text.encode("utf-16-le", "surrogatepass")


def padded(data: bytes, alignment: int = 8) -> bytes:
    """The bytes, followed by zeros up to the next multiple of `alignment`."""
    return data + bytes(-len(data) % alignment)
