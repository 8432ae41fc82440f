"""SQLite's log restarts in the same file, however busy the writers are."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

import pytest

from strongroom.engines.embedded.log import checkpoints
from strongroom.testing.contract.subject import face, put, value
from tests.engines.disks.disk import Disk
from tests.engines.embedded_stores import store_on

PAGES = 64
# A machine with much else to do may let the log grow before the first checkpoint ends. Writers then
# go on until they wrote ten times as much as it ever had; a log that only grows is never so short.
ROUNDS, ROUNDS_MAX, WRITERS = 200, 800, 8
BODY = bytes(range(256)) * 128


@pytest.mark.parametrize("with_readers", [False, True])
def test_the_log_stays_short_while_writers_never_pause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_readers: bool
) -> None:
    monkeypatch.setattr(checkpoints, "PASSIVE_PAGES", PAGES)
    log = tmp_path / "data" / "records.sqlite-wal"

    async def prove() -> None:
        sizes: list[int] = []
        rounds: dict[int, int] = {}

        def is_short() -> bool:
            return max(sizes) < len(sizes) * len(BODY) / 10

        async with store_on(Disk(tmp_path)) as store:

            async def write(writer: int) -> None:
                key = face(b"%d" % writer)
                for number in range(ROUNDS_MAX):
                    if number >= ROUNDS and is_short():
                        break
                    rounds[writer] = number
                    await put(store, (key, b"%d " % number + BODY))
                    sizes.append(log.stat().st_size)
                    if with_readers:
                        # The record is not cached: a snapshot of the file is taken, and held for a
                        # while.
                        assert await value(store, face(b"absent %d %d" % (writer, number))) is None

            await asyncio.gather(*map(write, range(WRITERS)))
            for writer, last in rounds.items():
                assert await value(store, face(b"%d" % writer)) == b"%d " % last + BODY
        assert is_short(), "it is written over, not only written on"
        falls = sum(after < before for before, after in itertools.pairwise(sizes))
        assert falls == 0, "nor is it cut: a sync then has to make the file longer again"

    asyncio.run(prove())
