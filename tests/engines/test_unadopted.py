"""Contents between their write and their commit, with segments that only count."""

from __future__ import annotations

import asyncio
from pathlib import Path

from strongroom.engines.embedded.bodies.segments import SegmentStore
from strongroom.engines.embedded.bodies.unadopted import Unadopted
from strongroom.engines.embedded.disk.directory import DataDirectory
from strongroom.engines.embedded.disk.files import OsFiles
from strongroom.engines.embedded.disk.threads import started_pool


def test_a_content_is_forgotten_once_and_never_under_a_commit(tmp_path: Path) -> None:
    async def prove() -> None:
        home = DataDirectory(str(tmp_path), OsFiles(), test_clock=True)
        threads = started_pool(1, "test")
        segments = SegmentStore(
            home.layout,
            OsFiles(),
            threads,
            iter(range(1, 9)).__next__,
            on_sealed=lambda _: asyncio.get_running_loop().create_future(),
            on_dead_space=lambda: None,
            on_broken=lambda _: None,
        )
        bodies = Unadopted(segments)
        room = segments.reserve(100)

        def write(content: int) -> None:
            bodies.keep(content, segments.reserve(100).location(100, 0))

        for content in (1, 2, 3, 4):
            write(content)
        assert room.segment.busy == 5
        bodies.discard(1)
        bodies.discard(1)
        assert bodies.location(1) is None
        assert room.segment.busy == 4
        for content in (2, 3, 4):
            bodies.begin_adoption(content)
        bodies.discard(2)
        bodies.discard(3)
        assert bodies.location(2) is not None, "its commit may yet happen"
        bodies.adoption_committed([2], [(room.segment.id, 100)])
        bodies.adoption_rolled_back([3, 4])
        assert (bodies.location(2), bodies.location(3)) == (None, None)
        assert bodies.location(4) is not None, "nobody has discarded it"
        assert (room.segment.busy, room.segment.live_bytes) == (2, 100)
        bodies.discard(4)
        assert room.segment.busy == 1
        segments.close()
        threads.shutdown()
        home.close()

    asyncio.run(prove())
