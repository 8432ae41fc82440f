"""NDR 2.0: the encoding of arguments and results of remote calls.

Numbers, unique pointers, strings and SIDs. Source: DCE 1.1 Remote Procedure Call, chapter 14
"Transfer Syntax NDR"; [MS-RPCE] section 2.2.4.
"""

from __future__ import annotations

import struct
from typing import Final

from strongroom.wire.smb.information.sids import Sid, read_sid, write_sid
from strongroom.wire.smb.structures import MalformedMessage

_FIRST_REFERENT: Final = 0x2_0000
_U32: Final = struct.Struct("<I")
_STRING: Final = struct.Struct("<III")


class UnknownHandle(MalformedMessage):
    """A call names a handle that the server did not give out."""


class NdrReader:
    """Decodes the values of a stub in order. Raises: MalformedMessage for truncated values."""

    def __init__(self, stub: bytes) -> None:
        self._stub = stub
        self._at = 0

    def number(self) -> int:
        """32 bits, aligned."""
        self._at += -self._at % 4
        if len(self._stub) - self._at < _U32.size:
            raise MalformedMessage("a number is cut off")
        (value,) = _U32.unpack_from(self._stub, self._at)
        self._at += _U32.size
        return int(value)

    def short(self) -> int:
        """16 bits, aligned."""
        return int.from_bytes(self.raw(2, 2), "little")

    def raw(self, count: int, alignment: int) -> bytes:
        at = self._at + -self._at % alignment
        if len(self._stub) - at < count:
            raise MalformedMessage(f"{count} bytes are cut off")
        self._at = at + count
        return self._stub[at : self._at]

    def sid(self) -> Sid:
        """The next SID, an RPC_SID: its conformance comes first."""
        conformance = self.number()
        value = read_sid(memoryview(self._stub)[self._at :])
        if len(value.sub_authorities) != conformance:
            raise MalformedMessage("a SID is not as long as its array")
        self._at += value.size
        return value

    def string(self) -> str:
        """The next conformant and varying string in UTF-16, without its terminator."""
        _, offset, count = self.number(), self.number(), self.number()
        end = self._at + 2 * count
        if offset or end > len(self._stub):
            raise MalformedMessage("a string is cut off")
        text = self._stub[self._at : end].decode("utf-16-le", "surrogatepass")
        self._at = end
        return text.split("\0", 1)[0]

    def unique_string(self) -> str | None:
        """The next string behind a unique pointer; None for a null pointer."""
        return self.string() if self.number() else None


class NdrWriter:
    """Encodes values in NDR. `write_deferred` then appends the strings and SIDs that pointers refer
    to."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._deferred: list[bytes] = []
        self._referent = _FIRST_REFERENT

    @property
    def data(self) -> bytes:
        return bytes(self._data)

    def number(self, value: int) -> None:
        """32 bits, aligned."""
        self._data += bytes(-len(self._data) % 4) + _U32.pack(value)

    def pointer(self) -> None:
        """Write a pointer that is not null; the caller writes its referent next."""
        self.number(self._referent)
        self._referent += 4

    def null(self) -> None:
        self.number(0)

    def text(self, value: str) -> None:
        """Write a pointer to a string, which the next `write_deferred` writes."""
        self.pointer()
        self._deferred.append(_string(value + "\0"))

    def counted_text(self, value: str) -> None:
        """Write an RPC_UNICODE_STRING: both lengths in bytes, and a pointer to a string that
        `write_deferred` writes, without a terminator."""
        made = _string(value)
        size = len(made) - _STRING.size
        self.number(size | size << 16)
        self.pointer()
        self._deferred.append(made)

    def sid(self, value: Sid) -> None:
        """Write a pointer to a SID, which the next `write_deferred` writes."""
        self.pointer()
        self._deferred.append(_U32.pack(len(value.sub_authorities)) + write_sid(value))

    def short(self, value: int) -> None:
        """16 bits, aligned."""
        self._data += bytes(-len(self._data) % 2) + value.to_bytes(2, "little")

    def raw(self, data: bytes) -> None:
        """Aligned to 4."""
        self._data += bytes(-len(self._data) % 4) + data

    def array_pointer(self, count: int) -> None:
        """Write a pointer to an array; null for one without elements."""
        if count:
            self.pointer()
        else:
            self.null()

    def write_deferred(self) -> None:
        """Write what pending pointers refer to, in order."""
        for made in self._deferred:
            self.raw(made)
        self._deferred.clear()


def _string(text: str) -> bytes:
    """A conformant and varying string."""
    data = text.encode("utf-16-le", "surrogatepass")
    return _STRING.pack(len(data) // 2, 0, len(data) // 2) + data
