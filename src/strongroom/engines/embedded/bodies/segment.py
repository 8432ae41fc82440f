"""One segment file as the store knows it, and a place in it where a body is written.

Lives here: the two structs. Must not live here: who may write where (segments.py).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import BinaryIO

from strongroom.engines.embedded.records.sqlite import Location


@dataclass(slots=True, eq=False)
class Segment:
    """One file. `busy` counts reservations, syncs, and contents that nothing adopted yet."""

    id: int
    path: str
    end: int = 0
    live_bytes: int = 0
    sealed: bool = False
    descriptor: int | None = None
    past_cache: int | None = None  # another one, whose writes go past the page cache
    reader: BinaryIO | None = None
    pins: int = 0
    busy: int = 0
    named: bool = False  # its directory entry is durable
    gone: bool = False  # no row points here any more: unlink it with the last pin
    damaged: bool = False  # a checksum failed: never delete it
    syncing: bool = False
    next_sync: asyncio.Future[None] | None = None


@dataclass(frozen=True, slots=True)
class Room:
    """A place to write in a segment, from `offset` on. In a tail, which begins aligned, nobody else
    writes until it is finished; elsewhere the next room begins right behind this one."""

    segment: Segment
    offset: int
    is_tail: bool

    def location(self, length: int, crc64: int) -> Location:
        """Where a content of `length` bytes lies that was written here.

        An empty one lies at the front: the bytes before this room are others', and may be lost.
        """
        return Location(self.segment.id, self.offset if length else 0, length, crc64)
