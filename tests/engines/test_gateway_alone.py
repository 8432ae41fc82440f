"""The gateway of an embedded store: `wait_for_earlier_commits` waits for undecided updates, and no
call costs a sync."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from strongroom.engines.base import Unavailable
from strongroom.testing.contract.subject import face, put, value
from tests.engines.disks.disk import Disk
from tests.engines.embedded_stores import Gate, store_on
from tests.engines.subjects import EmbeddedSubject


def test_quiet_waits_for_a_commit_whose_sync_is_under_way(tmp_path: Path) -> None:
    async def prove() -> None:
        disk = Disk(tmp_path)
        gate = Gate()
        async with store_on(disk) as store:
            await put(store, (face(), b"0"))
            disk.fault = gate
            gate.shut()
            try:
                writing = asyncio.create_task(put(store, (face(), b"1")))
                assert await asyncio.to_thread(gate.reached.wait, 30)
                quiet = asyncio.create_task(
                    store.gateways.wait_for_earlier_commits(await store.now())
                )
                queued = asyncio.create_task(put(store, (face(b"later"), b"")))
                for _ in range(20):
                    await asyncio.sleep(0.001)
                assert not quiet.done(), "the commit under way is not decided"
            finally:
                gate.open()
            await quiet
            assert await value(store, face()) == b"1"
            assert await writing < await queued

    asyncio.run(prove())


def test_the_contract_of_one_gateway_costs_no_sync(tmp_path: Path) -> None:
    async def prove() -> None:
        disk = Disk(tmp_path)
        gate = Gate()
        async with store_on(disk) as store:
            stamp = await put(store, (face(), b""))
            disk.fault = gate
            for _ in range(50):
                await store.gateways.wait_for_earlier_commits(stamp)
                hold = await store.gateways.hold(b"name")
                assert hold is not None
                hold.release()
                mark = store.gateways.begin_reading()
                await store.gateways.horizon()
                mark.end()
            assert gate.syncs == 0

    asyncio.run(prove())


def test_quiet_ends_when_the_store_stops(tmp_path: Path) -> None:
    async def prove() -> None:
        subject = EmbeddedSubject(tmp_path)
        await subject.start()
        stamp = await put(subject.store, (face(), b""))
        subject.break_next_commit()
        writing = asyncio.create_task(put(subject.store, (face(), b"")))
        await asyncio.gather(writing, return_exceptions=True)
        with pytest.raises(Unavailable):
            await subject.store.gateways.wait_for_earlier_commits(stamp)
        await subject.stop()

    asyncio.run(prove())
