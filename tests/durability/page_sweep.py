"""Sweeps over the pages of records.sqlite: one page at a time is damaged, and everything is asked.

Lives here: which pages are in use, the damage, and the judge. The short sweep is in
tests/hostile/test_damaged_pages.py, the long one in tests/proof. Must not live here: the data
(kept_data.py).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import apsw
import pytest

from strongroom.app import DataUnusable
from strongroom.engines.base import EngineError
from strongroom.engines.embedded.records.bound_pages import PAGE_BYTES
from strongroom.engines.embedded.records.checksummed_pages import connect
from strongroom.engines.embedded.upkeep.backup import backup, restore
from strongroom.engines.embedded.upkeep.check import check
from strongroom.testing import InProcessServer
from tests.conformance.answer import expect
from tests.durability.kept_data import Services, fill, questions, text_of

_RECORDS: Final = "records.sqlite"
_SPARE: Final = 6
_NEXT_TRUNK = slice(32, 36)  # of the first page


@dataclass(frozen=True, slots=True)
class Pages:
    """The numbers of the pages of a database."""

    used: list[int]
    free: list[int]


@dataclass(frozen=True, slots=True)
class Asked:
    """What requests to a server with a damaged page were answered."""

    right: int = 0
    refused: int = 0


Harm = Callable[[bytearray, bytes], None]
"""harm(the page, another page that is in use)"""


def zero(page: bytearray, other: bytes) -> None:
    """The page reads as zeros."""
    page[:] = bytes(len(page))


def replace(page: bytearray, other: bytes) -> None:
    """The page reads as another page."""
    page[:] = other


def flip(page: bytearray, other: bytes) -> None:
    """One bit of the page is flipped."""
    page[sum(other[:64]) * 31 % len(page)] ^= 1 << other[-1] % 8


HARMS: Final[tuple[Harm, ...]] = (zero, replace, flip)


def filled(home: Path) -> Path:
    """Fill a directory whose database has free pages too. Return it."""
    data = home / "data"
    with InProcessServer.start(data=data, test_clock=False) as server:
        on = Services(server)
        expect(on.queues.put("/spare"), 201)
        for number in range(_SPARE):
            body = f"<QueueMessage><MessageText>{text_of(f'spare {number}', 40_000)}"
            body += "</MessageText></QueueMessage>"
            expect(on.queues.send("POST", "/spare/messages", {}, body.encode()), 201)
        fill(on)
        expect(on.queues.delete("/spare/messages"), 204)
        on.close()
    return data


def pages_of(path: Path) -> Pages:
    """Return which pages of a database are in use, and which are free and hold nothing."""
    connection = connect(str(path / _RECORDS), None, 1024)
    rows = connection.execute("SELECT DISTINCT pageno FROM dbstat").fetchall()
    count = int(str(connection.execute("PRAGMA page_count").get))
    connection.close()
    records = (path / _RECORDS).read_bytes()
    used = {1, *(int(str(row[0])) for row in rows), *_trunks(records)}
    return Pages(sorted(used), [one for one in range(1, count + 1) if one not in used])


def _trunks(records: bytes) -> Iterator[int]:
    """Yield the pages that list free ones."""
    number = int.from_bytes(records[_NEXT_TRUNK], "big")
    while number:
        yield number
        start = (number - 1) * PAGE_BYTES
        number = int.from_bytes(records[start : start + 4], "big")


def damaged(source: Path, target: Path, number: int, harm: Harm, other: int) -> Path:
    """Copy a directory, and damage a page of the copy."""
    shutil.copytree(source, target, copy_function=_copy_or_link)
    records = bytearray((source / _RECORDS).read_bytes())
    start, other_start = ((one - 1) * PAGE_BYTES for one in (number, other))
    page = records[start : start + PAGE_BYTES]
    harm(page, bytes(records[other_start : other_start + PAGE_BYTES]))
    records[start : start + PAGE_BYTES] = page
    (target / _RECORDS).write_bytes(records)
    return target


def _copy_or_link(source: str, target: str) -> None:
    """Copy a file; link the ballast, which is the same everywhere."""
    if source.endswith("ballast"):
        os.link(source, target)
    else:
        shutil.copyfile(source, target)


def expect_found(path: Path, copy: Path) -> None:
    """Doctor finds the damage, and no backup is made."""
    assert _finds(path), "doctor says that a damaged directory is whole"
    with pytest.raises((EngineError, apsw.Error)):
        backup(path, copy)
    assert not copy.exists()


def expect_backup_refused(path: Path, copy: Path) -> None:
    """Doctor finds the damage of a backup, and it is not restored."""
    assert _finds(path), "doctor says that a damaged backup is whole"
    with pytest.raises((EngineError, apsw.Error)):
        restore(path, copy)
    assert not copy.exists()


def _finds(path: Path) -> bool:
    try:
        return bool(list(check(path)))
    except (EngineError, apsw.Error):
        return True


def ask_everything(path: Path) -> Asked:
    """Serve the directory and make every request. Each must be answered rightly, or refused as an
    internal error. The server may also refuse to start."""
    try:
        server = InProcessServer.start(data=path, test_clock=False)
    except DataUnusable:
        return Asked()
    right = refused = 0
    with server:
        on = Services(server)
        for one in questions(on):
            answer = one.ask()
            assert answer in (None, one.right), f"{one.name}: {str(answer)[:200]}"
            refused += answer is None
            right += answer is not None
        on.close()
    return Asked(right, refused)
