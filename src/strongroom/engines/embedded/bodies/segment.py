"""The state of one segment file, and a reserved room in it where a body is written.

Lives here: the two structs. Must not live here: which body may be written where (segments.py).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import BinaryIO

import msgspec

from strongroom.engines.embedded.records.sqlite import Location


@dataclass(slots=True, eq=False)
class Segment:
    """One segment file. `busy` counts reservations, syncs, and contents that no commit adopted
    yet."""

    id: int
    path: str
    end: int = 0
    live_bytes: int = 0
    sealed: bool = False
    descriptor: int | None = None
    past_cache: int | None = None  # a second one, whose writes bypass the page cache
    reader: BinaryIO | None = None
    pins: int = 0
    busy: int = 0
    named: bool = False  # its directory entry is durable
    gone: bool = False  # no row refers to it any more: unlink it with the last pin
    damaged: bool = False  # a checksum failed: never delete it
    syncing: bool = False
    next_sync: asyncio.Future[None] | None = None
    has_tail: bool = False  # a reservation of its tail is under way
    # Rooms that were given up while others lay behind them: the start of each, by its end.
    given_up: dict[int, int] = field(default_factory=dict)


class Reservation(msgspec.Struct, frozen=True):
    """A place to write in a segment, from `offset` on. A tail begins aligned, and no other body is
    written there until it is finished. Elsewhere the next reservation begins directly after this
    one."""

    segment: Segment
    offset: int
    is_tail: bool

    def location(self, length: int, crc64: int) -> Location:
        """An empty content is located at offset 0: the bytes before this reservation belong to
        others, and may be lost."""
        return Location(self.segment.id, self.offset if length else 0, length, crc64)
