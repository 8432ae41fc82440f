"""Stores to be scrubbed: what is in them, how they are damaged, and a scrub that does not pause.

Lives here: what several test modules share. Must not live here: tests.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from strongroom.clock import ManualClock
from strongroom.engines.base import Ref, Step
from strongroom.engines.embedded.scrub.kept import DamagedPlace, KeptFinding
from strongroom.engines.embedded.scrub.scrub import Scrub
from strongroom.engines.embedded.store import EmbeddedEngine, EmbeddedOptions, open_store
from strongroom.testing.contract.subject import commit, face, hidden, pieces, put

DAY_S: Final = 86400.0
OPTIONS: Final = EmbeddedOptions(ballast_bytes=4096, segment_bytes=256 * 1024, compact=False)
LARGE_BYTES: Final = 3 * 1024 * 1024 + 17


class Wall:
    """A wall clock that tests move."""

    def __init__(self, now_s: float = 1_800_000_000.0) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        return self.now_s


async def no_pause(seconds: float) -> None:
    """Let others run, but do not wait."""
    await asyncio.sleep(0)


def scrub_of(store: EmbeddedEngine, wall: Wall, days: float = 30) -> Scrub:
    """Return a scrub that does not pause."""
    scrub = Scrub(store.scrub_source, days * DAY_S, wall)
    scrub._sleep = scrub._pieces._sleep = no_pause
    return scrub


@asynccontextmanager
async def opened(path: Path, options: EmbeddedOptions = OPTIONS) -> AsyncIterator[EmbeddedEngine]:
    """Open a store, and close it."""
    store = await open_store(path, ManualClock(), options=options)
    try:
        yield store
    finally:
        await store.close()


def record(number: int) -> Ref:
    """Return the address of a record of `fill`."""
    return face(b"", b"%04d" % number)


async def fill(store: EmbeddedEngine, records: int = 300) -> list[int]:
    """Store records, two of them long, small contents in several segments, and a large one. Return
    the ids of the contents."""
    for number in range(records):
        await put(store, (record(number), b"<marker %04d>" % number * 30))
    await put(store, (hidden(b"long"), bytes(range(256)) * 200))
    await put(store, (face(b"", b"long"), bytes(range(256)) * 100))
    return [
        await add_content(store, b"<content %02d>" % number, size_bytes)
        for number, size_bytes in enumerate([*[20_000 + 7 * one for one in range(40)], LARGE_BYTES])
    ]


async def add_content(store: EmbeddedEngine, start: bytes, size_bytes: int) -> int:
    """Store a content that begins with `start`. Return its id."""
    data = start + os.urandom(size_bytes - len(start))
    written = await store.contents.write(pieces(data), size_bytes)
    await commit(store, Step(record(0).partition, adopt=(written.id,)))
    return written.id


def flip(path: Path, marker: bytes, after: int = 20) -> None:
    """Change a bit of the byte `after` bytes behind the first place of `marker` in a file."""
    data = path.read_bytes()
    offset = data.index(marker) + after
    with path.open("r+b", buffering=0) as file:
        file.seek(offset)
        file.write(bytes([data[offset] ^ 1]))


def flip_content(path: Path, number: int, after: int = 20) -> None:
    """Damage a content of `fill`, by its number."""
    marker = b"<content %02d>" % number
    found = [one for one in (path / "segments").iterdir() if marker in one.read_bytes()]
    flip(found[0], marker, after)


def findings_of(scrub: Scrub) -> dict[DamagedPlace, KeptFinding]:
    """Return what is damaged, as far as the scrub knows."""
    return {one.place: one for one in scrub._state.findings.all()}
