"""A full disk: deletes still work in the space kept back, and freed space is used."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from strongroom.engines.base import Full, Step
from strongroom.engines.embedded.upkeep.check import check
from strongroom.testing.contract.subject import (
    Refused,
    commit,
    content,
    face,
    hidden,
    pieces,
    place,
    put,
    put_until_full,
    refuse,
    value,
)
from tests.engines.disks.disk import Disk
from tests.engines.embedded_stores import BALLAST_BYTES, store_on

_COUNT = 150


def _fill(disk: Disk) -> None:
    disk.capacity_bytes = disk.used_bytes()


def _ballast(disk: Disk) -> int:
    path = Path(disk.root, "data", "ballast")
    return path.stat().st_size if path.exists() else 0


def test_deletions_go_on_and_a_restart_works(tmp_path: Path) -> None:
    async def prove() -> None:
        disk = Disk(tmp_path)
        async with store_on(disk, log_ahead=False) as store:
            for number in range(_COUNT):
                await put(store, (hidden(b"%d" % number), bytes(5_000)))
            _fill(disk)
            await put_until_full(store)
            assert _ballast(disk) == BALLAST_BYTES, "what grows may not use the ballast"
            for number in range(_COUNT - 1):
                await put(store, (hidden(b"%d" % number), None))
            assert _ballast(disk) == BALLAST_BYTES, "the log is written over: it takes no space"
            await put(store, (face(b"other"), b"in the place of what was deleted"))
            with pytest.raises(Refused):
                await refuse(store, face())
        async with store_on(disk) as store:
            assert await value(store, hidden(b"%d" % (_COUNT - 1))) == bytes(5_000)
            assert await value(store, hidden(b"0")) is None
            assert await store.now() > 0
        disk.capacity_bytes = None
        async with store_on(disk) as store:
            assert _ballast(disk) == BALLAST_BYTES
            await put(store, (face(b"more"), b"works"))
        assert list(check(tmp_path / "data")) == []

    asyncio.run(prove())


def test_in_one_group_only_what_grows_is_refused(tmp_path: Path) -> None:
    async def prove() -> None:
        disk = Disk(tmp_path)
        async with store_on(disk, log_ahead=False) as store:
            for number in range(10):
                await put(store, (hidden(b"%d" % number), bytes(5_000)))
            _fill(disk)
            await put_until_full(store)
            answers = await asyncio.gather(
                *(put(store, (hidden(b"%d" % one), None)) for one in range(5)),
                *(put(store, (face(b"%d" % one), bytes(60_000))) for one in range(5)),
                *(refuse(store, face()) for _ in range(5)),
                return_exceptions=True,
            )
            assert [type(one) for one in answers] == [int] * 5 + [Full] * 5 + [Refused] * 5
            assert await value(store, hidden(b"0")) is None
            assert await value(store, face(b"0")) is None

    asyncio.run(prove())


def test_a_body_that_does_not_fit_leaves_only_dead_space(tmp_path: Path) -> None:
    async def prove() -> None:
        disk = Disk(tmp_path)
        async with store_on(disk, compact=True) as store:
            kept = await store.contents.write(pieces(b"kept"), 4)
            await commit(store, Step(place(), adopt=(kept.id,)))
            disk.capacity_bytes = disk.used_bytes() + 100_000
            for known in (None, 500_000):
                with pytest.raises(Full):
                    await store.contents.write(pieces(bytes(500_000)), known)
            assert await content(store, kept.id) == b"kept"
            disk.capacity_bytes = None
            again = await store.contents.write(pieces(bytes(500_000)), 500_000)
            await commit(store, Step(place(), adopt=(again.id,), drop=(kept.id,)))
            assert await content(store, again.id) == bytes(500_000)
        assert list(check(tmp_path / "data")) == []

    asyncio.run(prove())
