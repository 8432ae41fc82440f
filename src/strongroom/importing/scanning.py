"""Reads a LokiJS database record by record, with bounded memory.

Lives here: finding the collections and the bytes of each record in a file of JSON. Must not live
here: what the records mean (documents.py). Sources: RFC 8259, and the form in which LokiJS saves.
A database is an object whose member `collections` is an array of objects. Each of these has a
member `name`, and after it a member `data`, an array of the records.

A database may be larger than the memory. The bytes of one record are in memory at a time, and the
few that were read ahead. A record is only delimited here, and is judged when it is decoded. So a
damaged record does not hide those behind it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from typing import Final, NamedTuple, Protocol

import msgspec

RECORD_BYTES_MAX: Final = 64 * 1024 * 1024
_READ_BYTES: Final = 1024 * 1024
# A complete string, a bracket, or the first quotation mark of a string that goes on.
_TOKEN: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]"]', re.DOTALL)
_OUTSIDE: Final = re.compile(rb'[{}\[\]"]')
_INSIDE: Final = re.compile(rb'["\\]')
_PLAIN_END: Final = re.compile(rb"[,\]}\s]")
_SPACE: Final = b" \t\r\n"
_OPENING: Final = b"{["
_STRING: Final = msgspec.json.Decoder(str)


class DatabaseDamaged(Exception):
    """The file is not what LokiJS writes; the text says from which byte on."""


class ByteFile(Protocol):
    """A file that is read from its beginning to its end."""

    def read(self, size: int, /) -> bytes: ...


class ScannedRecord(NamedTuple):
    """A record: its collection, its number in it from 0, and its JSON. `data` None = it is longer
    than RECORD_BYTES_MAX."""

    collection: str
    number: int
    data: bytes | None


def records(
    file: ByteFile, wanted: Callable[[str], bool], advanced: Callable[[int], None]
) -> Iterator[ScannedRecord]:
    """Yield the records of some collections, in the order of the file.

    Arguments:
        wanted: whether the records of the collection of this name are wanted.
        advanced: called with the number of bytes that were read.

    Raises: DatabaseDamaged, after the records before the damage.
    """
    stream = _Stream(file, advanced)
    for name in stream.members():
        if name != "collections":
            stream.skip_value()
            continue
        for _ in stream.items():
            yield from _collection(stream, wanted)
    stream.expect_end()


def _collection(stream: _Stream, wanted: Callable[[str], bool]) -> Iterator[ScannedRecord]:
    collection: str | None = None
    for member in stream.members():
        if member == "name":
            collection = stream.string()
        elif member == "data" and collection is None:
            raise stream.damage("a collection has records before its name")
        elif member == "data" and collection is not None and wanted(collection):
            for number, _ in enumerate(stream.items()):
                yield ScannedRecord(collection, number, stream.value())
        else:
            stream.skip_value()


class _Stream:
    """A cursor in a file of JSON."""

    def __init__(self, file: ByteFile, advanced: Callable[[int], None]) -> None:
        self._file = file
        self._advanced = advanced
        self._buffer = b""
        self._at = 0
        self._before = 0  # the offset of the buffer in the file

    def damage(self, problem: str) -> DatabaseDamaged:
        return DatabaseDamaged(f"{problem}, at byte {self._before + self._at}")

    def members(self) -> Iterator[str]:
        """Yield the name of each member of the object that begins here. The caller takes the
        value before the next name."""
        for _ in self._elements(b"{", b"}"):
            name = self.string()
            self._take(b":")
            yield name

    def items(self) -> Iterator[None]:
        """Yield for each element of the array that begins here. The caller takes the element."""
        return self._elements(b"[", b"]")

    def _elements(self, opening: bytes, closing: bytes) -> Iterator[None]:
        self._take(opening)
        if self._peek() == closing:
            self._at += 1
            return
        while True:
            yield
            byte = self._peek()
            if byte not in (b",", closing):
                raise self.damage(f"expected , or {closing.decode()}")
            self._at += 1
            if byte == closing:
                return

    def string(self) -> str:
        if self._peek() != b'"':
            raise self.damage("expected a string")
        data = self.value()
        try:
            return _STRING.decode(data or b"")
        except (msgspec.MsgspecError, ValueError) as error:
            raise self.damage(f"not a string ({error})") from error

    def value(self) -> bytes | None:
        """Take a value and return its JSON. Return None for one longer than RECORD_BYTES_MAX."""
        first = self._peek()
        if first not in (b"{", b"[", b'"'):
            return self._plain()
        depth, at = 0, self._at
        while True:
            # The loop below ends at the end of what was read, or at a string that goes on there.
            for token in _TOKEN.finditer(self._buffer, at):
                byte, end = self._buffer[token.start()], token.end()
                if byte == 0x22 and end - token.start() == 1:
                    at = token.start()
                    break
                at = end
                if byte != 0x22:
                    depth += 1 if byte in _OPENING else -1
                if depth <= 0:
                    data, self._at = self._buffer[self._at : at], at
                    return data
            if len(self._buffer) - self._at > RECORD_BYTES_MAX:
                self._skip_rest(depth, at)
                return None
            at -= self._at
            # Each read doubles a long record, so that reading it takes time in proportion.
            self._fill(max(_READ_BYTES, len(self._buffer) - self._at))
            at += self._at

    def skip_value(self) -> None:
        """Take a value of any length."""
        if self._peek() not in (b"{", b"[", b'"'):
            self._plain()
        else:
            self._skip_rest(0, self._at)

    def _skip_rest(self, depth: int, at: int) -> None:
        """Take the rest of a value from `at` on, which is outside of a string."""
        self._at, is_string = at, False
        while True:
            match = (_INSIDE if is_string else _OUTSIDE).search(self._buffer, self._at)
            if match is None:
                self._at = len(self._buffer)
                self._fill(_READ_BYTES)
                continue
            self._at = match.end()
            byte = self._buffer[match.start()]
            if byte == 0x5C:
                if self._at == len(self._buffer):
                    self._fill(_READ_BYTES)
                self._at += 1
            elif byte == 0x22:
                is_string = not is_string
            else:
                depth += 1 if byte in _OPENING else -1
            if not is_string and depth <= 0:
                return

    def _plain(self) -> bytes:
        """Take a number, true, false or null."""
        while (match := _PLAIN_END.search(self._buffer, self._at)) is None:
            if len(self._buffer) - self._at > _READ_BYTES:
                raise self.damage("expected a value")
            self._fill(_READ_BYTES)
        data, self._at = self._buffer[self._at : match.start()], match.start()
        if not data:
            raise self.damage("expected a value")
        return data

    def expect_end(self) -> None:
        """Check that only white space follows. Raises DatabaseDamaged."""
        while True:
            if self._buffer[self._at :].strip(_SPACE):
                raise self.damage("more follows the end of the database")
            self._at = len(self._buffer)
            if not self._read(_READ_BYTES):
                return

    def _take(self, expected: bytes) -> None:
        if self._peek() != expected:
            raise self.damage(f"expected {expected.decode()}")
        self._at += 1

    def _peek(self) -> bytes:
        """Return the next byte that is no white space, which is not taken."""
        while True:
            while self._at < len(self._buffer) and self._buffer[self._at] in _SPACE:
                self._at += 1
            if self._at < len(self._buffer):
                return self._buffer[self._at : self._at + 1]
            self._fill(_READ_BYTES)

    def _fill(self, size_bytes: int) -> None:
        if not self._read(size_bytes):
            raise self.damage("the file ends too early")

    def _read(self, size_bytes: int) -> bool:
        """Read on, and forget what was taken. Return False at the end of the file."""
        more = self._file.read(size_bytes)
        self._advanced(len(more))
        self._before += self._at
        self._buffer, self._at = self._buffer[self._at :] + more, 0
        return bool(more)


def in_names(names: Collection[str]) -> Callable[[str], bool]:
    return lambda name: name in names
