"""NDR 2.0: the encoding of arguments and results of remote calls.

Lives here: numbers, unique pointers and strings. Must not live here: any call. Source: DCE 1.1
Remote Procedure Call, chapter 14 "Transfer Syntax NDR"; [MS-RPCE] section 2.2.4.
"""

from __future__ import annotations

import struct
from typing import Final

from strongroom.wire.smb.structures import MalformedMessage

_FIRST_REFERENT: Final = 0x2_0000
_U32: Final = struct.Struct("<I")
_STRING: Final = struct.Struct("<III")


class NdrReader:
    """Decodes the values of a stub in order. Raises: MalformedMessage for truncated values."""

    def __init__(self, stub: bytes) -> None:
        self._stub = stub
        self._at = 0

    def number(self) -> int:
        """Return the next number of 32 bits, aligned."""
        self._at += -self._at % 4
        if len(self._stub) - self._at < _U32.size:
            raise MalformedMessage("a number is cut off")
        (value,) = _U32.unpack_from(self._stub, self._at)
        self._at += _U32.size
        return int(value)

    def string(self) -> str:
        """Return the next conformant and varying string in UTF-16, without its terminator."""
        _, offset, count = self.number(), self.number(), self.number()
        end = self._at + 2 * count
        if offset or end > len(self._stub):
            raise MalformedMessage("a string is cut off")
        text = self._stub[self._at : end].decode("utf-16-le", "surrogatepass")
        self._at = end
        return text.split("\0", 1)[0]

    def unique_string(self) -> str | None:
        """Return the next string behind a unique pointer; None for a null pointer."""
        return self.string() if self.number() else None


class NdrWriter:
    """Encodes values in NDR. `write_deferred` then appends the strings that pointers refer to."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._deferred: list[str] = []
        self._referent = _FIRST_REFERENT

    @property
    def data(self) -> bytes:
        """Return the stub so far."""
        return bytes(self._data)

    def number(self, value: int) -> None:
        """Write a number of 32 bits."""
        self._data += bytes(-len(self._data) % 4) + _U32.pack(value)

    def pointer(self) -> None:
        """Write a pointer that is not null; the caller writes its referent next."""
        self.number(self._referent)
        self._referent += 4

    def null(self) -> None:
        """Write a null pointer."""
        self.number(0)

    def text(self, value: str) -> None:
        """Write a pointer to a string, which the next `write_deferred` writes."""
        self.pointer()
        self._deferred.append(value)

    def write_deferred(self) -> None:
        """Write the strings of pending pointers, in order."""
        for text in self._deferred:
            data = (text + "\0").encode("utf-16-le", "surrogatepass")
            count = len(data) // 2
            self._data += bytes(-len(self._data) % 4)
            self._data += _STRING.pack(count, 0, count) + data
        self._deferred.clear()
