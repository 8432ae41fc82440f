"""The embedded engine keeps maps across restarts."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

from strongroom.clock import ManualClock
from strongroom.engines.embedded.store import open_store
from strongroom.engines.embedded.upkeep.check import Inspection
from strongroom.store.core import extents
from strongroom.store.core.extents.model import LEAF_BYTES, SECTOR_BYTES
from tests.store.volumes import Model, Volume


def contents(directory: Path) -> set[int]:
    """Return the contents that a closed store owns, after a check without findings."""
    with Inspection(directory) as inspection:
        assert list(inspection.findings()) == []
        return set(inspection.content_ids())


def test_content_snapshots_and_pending_clears_outlive_a_restart(tmp_path: Path) -> None:
    async def prove() -> None:
        chance = random.Random(5)
        clock = ManualClock()
        store = await open_store(tmp_path / "data", clock, test_clock=True)
        volume = Volume(store)
        model = Model(0, 20 * LEAF_BYTES)
        await volume.create(1 << 40)
        states: dict[int, Model] = {}
        for turn in range(4):
            for _ in range(25):
                offset = chance.randrange(18 * LEAF_BYTES)
                data = chance.randbytes(chance.choice([1, 512, 4096, 9000, 2 * LEAF_BYTES]))
                await volume.write(offset, data)
                model.write(offset, data)
            await volume.clear(turn * 3 * LEAF_BYTES + 11, 50_000)
            model.clear(turn * 3 * LEAF_BYTES + 11, 50_000)
            stamp = await volume.snapshot()
            states[stamp] = model.snapshot(stamp)
            if turn == 2:
                await volume.clear(13 * LEAF_BYTES + 5, 1 << 39)
                model.clear(13 * LEAF_BYTES + 5, 1 << 39)
            await store.close()
            store = await open_store(tmp_path / "data", clock, test_clock=True)
            volume = Volume(store)
            assert await volume.read(0, 20 * LEAF_BYTES) == model.data
        for stamp, state in states.items():
            assert await volume.read(0, 20 * LEAF_BYTES, stamp) == state.data
        oldest = min(states)
        _, version = await volume.head()
        asked = extents.RangeQuery(0, 20 * LEAF_BYTES, 10_000, SECTOR_BYTES)
        found = await extents.list_changes(store, volume.place, oldest, version, asked)
        written = [(one.start, one.end) for one in found.ranges if not one.is_clear]
        cleared = [(one.start, one.end) for one in found.ranges if one.is_clear]
        assert (written, cleared) == model.changes(oldest, states[oldest], SECTOR_BYTES)
        assert await volume.sweep()
        needed = (await volume.check()).needed
        await store.close()
        assert contents(tmp_path / "data") == needed
        store = await open_store(tmp_path / "data", clock, test_clock=True)
        volume = Volume(store)
        for stamp in states:
            await volume.delete_snapshot(stamp)
        await volume.apply(extents.end(store, volume.place), 0)
        assert await volume.sweep()
        assert await volume.hidden() == []
        await store.close()
        assert contents(tmp_path / "data") == set()

    asyncio.run(prove())
