"""Listing with prefix, delimiter and marker: one page, built from records as they are read.

Names are compared as UTF-8 bytes. Source: "List Blobs". The caller reads `records_wanted` records
between `first` and `until`, and feeds the result, until `done`:

    page = PageBuilder(prefix, delimiter, max_results, decode_marker(marker))
    while not page.done:
        page.feed(*read(page.first, page.until, page.records_wanted))
    page.items, page.marker

A position inside a common prefix means that the prefix has not been listed yet: no record of it
read so far is visible. Once it is listed, the position lies after all of its names, so a million
blobs below one prefix cost one read. A caller that has read enough may call `cut`: a page may be
short, even empty, if it carries a marker.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Final, Generic, TypeVar

from strongroom import limits
from strongroom.errors.core import invalid_query

T = TypeVar("T")

Position = tuple[bytes, bytes]
"""(name, key below the name): where reading goes on; need not be a record."""

START: Final[Position] = (b"", b"")
# Larger than any byte of UTF-8: name + this sorts after all names that begin with the name.
_BEHIND: Final = b"\xff"
_MARKER_VERSION: Final = b"\x01"
_KEY_BYTES_MAX: Final = 1024
_MARKER_CHARS_MAX: Final = 8192
# A name in UTF-8 has at most three bytes for each UTF-16 character.
_NAME_BYTES_MAX: Final = 3 * limits.BLOB_NAME_CHARS_MAX
_READ_RECORDS_MIN: Final = 100
# The largest page, and one more record, which shows where the next page begins.
READ_RECORDS_MAX: Final = limits.LIST_RESULTS_MAX + 1


class Prefix(str):
    """A BlobPrefix item: the common beginning of names, up to and including the delimiter."""

    __slots__ = ()


class PageBuilder(Generic[T]):
    """One page under construction.

    Arguments:
        prefix: only names that begin with it are listed.
        delimiter: names that contain it after the prefix are listed as one `Prefix`; empty = none.
        max_results: how many items the page may hold, at least 1.
        start: where the page begins (`START`, a decoded marker, or the result of `start_at`).
    """

    def __init__(self, prefix: str, delimiter: str, max_results: int, start: Position) -> None:
        self._prefix = prefix.encode("utf-8", "surrogatepass")
        self._delimiter = delimiter.encode("utf-8", "surrogatepass")
        self._max_results = max_results
        self._read_records = _READ_RECORDS_MIN
        self.listed_prefix: bytes | None = None
        """The last item if that is a prefix, during one read. The page needs no record below it."""
        self.items: list[T | Prefix] = []
        """What the page lists, in order."""
        self.first: Position = max(start, (self._prefix, b""))
        """Where to read next, this position included."""
        self.until: Position | None = (self._prefix + _BEHIND, b"") if prefix else None
        """Where reading ends, this position excluded."""
        self.done = False
        """Whether the page is complete."""
        self.marker: Position | None = None
        """Once `done`: where the next page begins, None when nothing is left."""
        self._finish_if_beyond()

    @property
    def records_wanted(self) -> int:
        """How many records to read next: few while listed prefixes let the read skip names, else
        the missing ones."""
        missing = self._max_results - len(self.items) + 1
        return min(
            self._read_records if self._delimiter else max(missing, _READ_RECORDS_MIN),
            READ_RECORDS_MAX,
        )

    def feed(
        self, records: Iterable[tuple[bytes, bytes, T | None]], resume: Position | None
    ) -> None:
        """Add the records that were read from `first` on.

        Arguments:
            records: (name, key, item) in order; item None = it is not visible in this list.
            resume: where the read stopped, None = it reached the end.
        """
        self.add(records)
        self.resume_at(resume)

    def add(self, records: Iterable[tuple[bytes, bytes, T | None]]) -> bool:
        """Add some of the records that were read from `first` on; call `resume_at` after the last.
        Return whether the page is complete."""
        listed = self.listed_prefix
        for name, key, item in records:
            if listed is not None and name.startswith(listed):
                continue
            group = self._group(name) if self._delimiter else None
            if item is not None:
                if len(self.items) == self._max_results:
                    self._finish((name, key))
                    return True
                self.items.append(item if group is None else Prefix(group.decode("utf-8")))
                self.listed_prefix = listed = group
        return False

    def resume_at(self, resume: Position | None) -> None:
        """Set where to read next, `resume`, unless the page is complete; see `feed`."""
        listed, self.listed_prefix = self.listed_prefix, None
        if self.done:
            return
        if resume is None:
            self._finish(None)
            return
        behind = None if listed is None else (listed + _BEHIND, b"")
        if behind is not None and resume < behind:
            self.first, self._read_records = behind, _READ_RECORDS_MIN
        else:
            self.first, self._read_records = resume, min(self._read_records * 4, READ_RECORDS_MAX)
        self._finish_if_beyond()

    def cut(self) -> None:
        if not self.done:
            self._finish(self.first)

    def _group(self, name: bytes) -> bytes | None:
        at = name.find(self._delimiter, len(self._prefix))
        return None if at < 0 else name[: at + len(self._delimiter)]

    def _finish_if_beyond(self) -> None:
        nothing_so_long = len(self._prefix) > _NAME_BYTES_MAX
        if nothing_so_long or (self.until is not None and self.first >= self.until):
            self._finish(None)

    def _finish(self, marker: Position | None) -> None:
        self.done, self.marker = True, marker


def start_at(start: Position, name: str) -> Position:
    """Where a page begins that lists only names from `name` on, `name` included.

    Arguments:
        start: the position in its marker; the later of the two counts.
        name: the first name that may be listed; empty = any.
    """
    # No name is as long as this, so the rest of the text makes no difference.
    first = name.encode("utf-8", "surrogatepass")[: _NAME_BYTES_MAX + len(_BEHIND)]
    return max(start, (first, b""))


def encode_marker(position: Position | None) -> str:
    """NextMarker: an opaque text for a position; empty when there is none."""
    if position is None:
        return ""
    name, key = position
    raw = _MARKER_VERSION + len(name).to_bytes(2, "big") + name + key
    return base64.urlsafe_b64encode(raw).decode("ascii")


def decode_marker(marker: str | None) -> Position:
    """The position in a marker of `encode_marker`; the start for None or empty text."""
    if not marker:
        return START
    try:
        if len(marker) > _MARKER_CHARS_MAX:
            raise ValueError(marker)
        raw = base64.b64decode(marker, altchars=b"-_", validate=True)
        size = int.from_bytes(raw[1:3], "big")
        name, key = raw[3 : 3 + size], raw[3 + size :]
        if raw[:1] != _MARKER_VERSION or len(name) != size or len(raw) < 3:
            raise ValueError(marker)
        if size > _NAME_BYTES_MAX + len(_BEHIND) or len(key) > _KEY_BYTES_MAX:
            raise ValueError(marker)
    except ValueError:
        reason = "The value is not a marker that a listing has returned."
        raise invalid_query("marker", marker, reason) from None
    return name, key
