"""A full disk, and records on damaged pages: a write of such a record raises DataDamaged, and no
other write is affected."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from strongroom.engines.base import DataDamaged, Full, Record, Ref
from strongroom.engines.embedded import EmbeddedEngine
from strongroom.testing.contract.subject import face, hidden, put, value
from strongroom.values import Purpose
from tests.engines.disks.disk import Disk
from tests.engines.embedded_stores import store_on

_DAMAGED = face(b"damaged")
_MARK = b"<the end of the value>"
_WITHIN_S = 20.0


async def _leave_damage(disk: Disk) -> None:
    """Store two records, and damage one of them."""
    async with store_on(disk, log_ahead=False) as store:
        await put(store, (hidden(b"other"), b"old"))
        await put(store, (_DAMAGED, bytes(60_000) + _MARK))
    _damage(Path(disk.root, "data", "records.sqlite"))


def _damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[data.index(_MARK)] ^= 1
    path.write_bytes(data)


async def _use_half(store: EmbeddedEngine) -> None:
    for number in range(400):
        try:
            record = (hidden(b"lease %d" % number), bytes(60_000))
            await put(store, record, purpose=Purpose.UPKEEP)
        except Full:
            return
    raise AssertionError("the disk does not fill")


async def _write_it_among_others(store: EmbeddedEngine) -> None:
    async with asyncio.timeout(_WITHIN_S):
        answers = await asyncio.gather(
            put(store, (hidden(b"other"), b"new")),
            put(store, (_DAMAGED, b"short")),
            put(store, (hidden(b"other"), b"end")),
            return_exceptions=True,
        )
    assert [type(one) for one in answers] == [int, DataDamaged, int], answers
    assert await value(store, hidden(b"other")) == b"end"


def test_it_is_read_to_judge_whether_it_grows(tmp_path: Path) -> None:
    """The record is read before the write while part of the reserve is in use."""

    async def prove() -> None:
        disk = Disk(tmp_path)
        await _leave_damage(disk)
        async with store_on(disk, log_ahead=False) as store:
            disk.capacity_bytes = disk.used_bytes()
            await _use_half(store)
            await _write_it_among_others(store)

    asyncio.run(prove())


def test_it_is_read_to_judge_what_it_is_written_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record is read when its commit found no space. It is damaged just then: earlier, the
    write would have failed."""

    async def prove() -> None:
        disk = Disk(tmp_path)
        async with store_on(disk, log_ahead=False) as store:
            await put(store, (hidden(b"other"), b"old"))
            await put(store, (_DAMAGED, bytes(60_000)))
            get = store._writer.get

            def damaged(ref: Ref) -> Record | None:
                if ref == _DAMAGED:
                    raise DataDamaged("the checksum of its page differs")
                return get(ref)

            monkeypatch.setattr(store._writer, "get", damaged)
            disk.capacity_bytes = disk.used_bytes()
            async with asyncio.timeout(_WITHIN_S):
                with pytest.raises(DataDamaged):
                    await put(store, (_DAMAGED, b"short"))
                await put(store, (hidden(b"other"), b"new"))

    asyncio.run(prove())
