"""The requests that the console can show: the newest ones in short, and few of them in full.

Lives here: the rings, the form in which a request is kept, and the bounds on its bytes. Must not
live here: what of it may be shown (masking.py), and to whom (scope.py).

The rings of all requests are blocks of memory with places of one size. Objects of their own would
spread over the heap, and each request would then use memory that is in no cache. A full request has
the heads as they were sent, which costs less than their fields. Nothing is decoded before somebody
reads it.
"""

from __future__ import annotations

import sys
from array import array
from collections import deque
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Final, NamedTuple

import msgspec

from strongroom.limits import KIB

SHORT_MAX: Final = 10_000
FULL_MAX: Final = 500
REFUSED_MAX: Final = 500
SHORT_BYTES_MAX: Final = 256
FULL_BYTES_MAX: Final = 4 * KIB
# Each has its length beside it.
PACKED_BYTES_MAX: Final = SHORT_BYTES_MAX - 2
# What a refused request has beside heads and text: its objects, and the record in short.
HEADS_BYTES_MAX: Final = FULL_BYTES_MAX - SHORT_BYTES_MAX - KIB // 2
_ANSWER_HEAD_BYTES_MAX: Final = KIB
TEXT_CHARS_MAX: Final = KIB

# Longer than any valid name, so that a cut name is never a valid one.
_NAME_CHARS_MAX: Final = 64
_WHO_CHARS_MAX: Final = 40
_METHOD_CHARS_MAX: Final = 8
_CODE_CHARS_MAX: Final = 60
CUT: Final = "\N{HORIZONTAL ELLIPSIS}"


class ShortRecord(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A request in short.

    Attributes:
        began: wall time in ticks.
        seconds: from the request's head to the last byte of the answer.
        service: the letter of the service; "" = none.
        account: as the URL names it; "" = none.
        container: the container, queue, table or share.
        path: as it was sent, without the query.
        who: how the request was authenticated, in few words.
        code: of the error; "" = none.
        through_console: whether it came through the console's port.
    """

    began: int
    seconds: float
    status: int
    method: str
    operation: str
    service: str
    account: str
    container: str | None
    path: str
    who: str
    code: str = ""
    through_console: bool = False


ShortFields = tuple[int, float, int, str, str, str, str, str | None, str, str, str, bool]
"""The fields of a ShortRecord, in order."""


class RefusalNote(msgspec.Struct, frozen=True, gc=False):
    """Why a request was refused: the function that did, and the texts of the error."""

    rule: CodeType | None
    text: str


BETWEEN_HEADS: Final = b"\r\n\r\n"
"""Stands between the heads of a request and its answer."""
BETWEEN_HEADS_TLS: Final = b"\r\n\r\n\r\n"
"""The same of a request that came over TLS."""
CUT_MARK: Final = b"\0"
"""Ends a head that was cut. No head contains it."""


class FullRecord(msgspec.Struct, frozen=True):
    """A request in full.

    Attributes:
        request_head, answer_head: the heads as they were sent, perhaps cut; b"" = unknown.
        refusal: None if it was not refused, or by nothing that is known.
    """

    number: int
    short: ShortRecord
    request_head: bytes
    answer_head: bytes
    tls: bool
    refusal: RefusalNote | None


encode_short: Final = msgspec.msgpack.Encoder().encode
"""Returns ShortFields as bytes."""
_decode: Final = msgspec.msgpack.Decoder(ShortRecord).decode


def packed(fields: ShortFields) -> bytes:
    """Return a record in short as bytes, at most PACKED_BYTES_MAX; long texts are cut."""
    try:
        encoded = encode_short(fields)
    except UnicodeEncodeError:  # half of a surrogate pair, which is no character
        encoded = b""
    if encoded and len(encoded) <= PACKED_BYTES_MAX:
        return encoded
    return _packed_shorter(fields)


def _packed_shorter(fields: ShortFields) -> bytes:
    began, seconds, status, method, operation, service, account, container, path, who, code, by = (
        fields
    )
    first = (began, seconds, status, _cut(method, _METHOD_CHARS_MAX), operation, service)
    last = _cut(who, _WHO_CHARS_MAX), _cut(code, _CODE_CHARS_MAX), by
    names = (
        _cut(account, _NAME_CHARS_MAX),
        None if container is None else _cut(container, _NAME_CHARS_MAX),
    )
    room = PACKED_BYTES_MAX - len(encode_short((*first, *names, "", *last))) - 2
    if room < 0:
        # Names of several bytes a character; no valid name has any.
        first, names, last = (*first[:3], "", *first[4:]), ("", None), ("", "", by)
        room = PACKED_BYTES_MAX - len(encode_short((*first, *names, "", *last))) - 2
    shown = path.encode("utf-8", "replace")
    if len(shown) > room:
        shown = shown[: max(0, room - 3)] + CUT.encode()
    return encode_short((*first, *names, shown.decode("utf-8", "ignore"), *last))


def _cut(text: str, chars_max: int) -> str:
    return text[:chars_max].encode("utf-8", "replace").decode("utf-8")


def joined(request_head: bytes, answer_head: bytes, tls: bool) -> bytes:
    """Return both heads of a request in one piece, cut to HEADS_BYTES_MAX."""
    return _joined(request_head, answer_head, tls, HEADS_BYTES_MAX)


def _joined(request_head: bytes, answer_head: bytes, tls: bool, bytes_max: int) -> bytes:
    between = BETWEEN_HEADS_TLS if tls else BETWEEN_HEADS
    answer_head = _cut_head(answer_head, _ANSWER_HEAD_BYTES_MAX)
    room = bytes_max - len(answer_head) - len(between)
    return _cut_head(request_head, room) + between + answer_head


def _cut_head(head: bytes, bytes_max: int) -> bytes:
    return head if len(head) < bytes_max else head[: bytes_max - 1] + CUT_MARK


def _cut_note(note: RefusalNote) -> RefusalNote:
    """Return a note whose text takes TEXT_CHARS_MAX bytes at most."""
    text = note.text.encode("utf-8", "replace").decode("utf-8")
    # Beyond ASCII, a character may take four bytes.
    return RefusalNote(note.rule, text[: TEXT_CHARS_MAX if text.isascii() else TEXT_CHARS_MAX // 4])


class _Refused(NamedTuple):
    """A refused request, which is kept in full for longer than others."""

    number: int
    short: bytes
    heads: bytes
    note: RefusalNote | None


class KeptRequests:
    """The rings of the requests that are kept. Each request has a number.

    Attributes:
        newest: the number of the newest request, from 1 on; 0 = none yet.
        catch_up: adds what is held back for a moment; readers call it first.
    """

    def __init__(
        self,
        short_max: int = SHORT_MAX,
        full_max: int = FULL_MAX,
        refused_max: int = REFUSED_MAX,
    ) -> None:
        self.newest = 0
        self.catch_up: Callable[[], None] = lambda: None
        self._short_max, self._full_max = short_max, full_max
        self._shorts = bytearray(short_max * PACKED_BYTES_MAX)
        self._short_bytes = array("H", bytes(2 * short_max))
        self._heads = bytearray(full_max * HEADS_BYTES_MAX)
        self._heads_bytes = array("H", bytes(2 * full_max))
        self._refused: deque[_Refused] = deque(maxlen=refused_max)

    @property
    def oldest(self) -> int:
        """The number of the oldest request that is kept in short; newest + 1 = there is none."""
        return max(1, self.newest - self._short_max + 1)

    def add(self, short: bytes, heads: bytes) -> None:
        """Keep a request. The oldest one is forgotten.

        Arguments:
            short: of `packed`, at most PACKED_BYTES_MAX.
            heads: of `joined`, at most HEADS_BYTES_MAX.
        """
        self.newest = number = self.newest + 1
        place, size_bytes = number % self._short_max, len(short)
        start = place * PACKED_BYTES_MAX
        self._shorts[start : start + size_bytes] = short
        self._short_bytes[place] = size_bytes
        place, size_bytes = number % self._full_max, len(heads)
        start = place * HEADS_BYTES_MAX
        self._heads[start : start + size_bytes] = heads
        self._heads_bytes[place] = size_bytes

    def add_refused(
        self,
        short: bytes,
        request_head: bytes,
        answer_head: bytes,
        tls: bool,
        note: RefusalNote | None,
    ) -> None:
        """Keep a request that was refused, in full for longer than others."""
        room = HEADS_BYTES_MAX - TEXT_CHARS_MAX
        heads = _joined(request_head, answer_head, tls, room)
        self.add(short, heads)
        kept = None if note is None else _cut_note(note)
        self._refused.append(_Refused(self.newest, short, heads, kept))

    def after(self, number: int) -> Iterator[tuple[int, ShortRecord]]:
        """Yield the requests with higher numbers, oldest first.

        The iterator ends with those that were kept when it began, and skips what is forgotten
        while it is suspended.
        """
        last = self.newest
        number = max(number + 1, self.oldest)
        while number <= last:
            number = max(number, self.oldest)
            yield number, self._short_at(number)
            number += 1

    def before(self, number: int) -> Iterator[tuple[int, ShortRecord]]:
        """Yield the requests with lower numbers, newest first."""
        number = min(number, self.newest + 1) - 1
        while number >= self.oldest:
            yield number, self._short_at(number)
            number -= 1

    def short(self, number: int) -> ShortRecord | None:
        return self._short_at(number) if self.oldest <= number <= self.newest else None

    def full(self, number: int) -> FullRecord | None:
        """Return a request in full; None if it is no longer kept so."""
        for kept in self._refused:
            if kept.number == number:
                return _full_record(number, _decode(kept.short), kept.heads, kept.note)
        if not max(1, self.newest - self._full_max + 1) <= number <= self.newest:
            return None
        place = number % self._full_max
        start = place * HEADS_BYTES_MAX
        heads = bytes(self._heads[start : start + self._heads_bytes[place]])
        return _full_record(number, self._short_at(number), heads, None)

    def size_bytes(self) -> int:
        """Return how many bytes the kept requests take, by adding up their objects."""
        blocks = (self._shorts, self._short_bytes, self._heads, self._heads_bytes)
        refused = sum(
            sys.getsizeof(one) + sum(map(sys.getsizeof, one)) + _size_bytes(one.note)
            for one in self._refused
        )
        return sum(map(sys.getsizeof, blocks)) + refused

    def _short_at(self, number: int) -> ShortRecord:
        place = number % self._short_max
        start = place * PACKED_BYTES_MAX
        return _decode(self._shorts[start : start + self._short_bytes[place]])


def _full_record(
    number: int, short: ShortRecord, heads: bytes, note: RefusalNote | None
) -> FullRecord:
    tls = BETWEEN_HEADS_TLS in heads
    request_head, _, answer_head = heads.partition(BETWEEN_HEADS_TLS if tls else BETWEEN_HEADS)
    return FullRecord(number, short, request_head, answer_head, tls, note)


def _size_bytes(note: RefusalNote | None) -> int:
    return 0 if note is None else sys.getsizeof(note.text)
