"""Rooms in segments that are given up: what ends where, with segments that only count."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from strongroom.engines.embedded.bodies.segments import SegmentStore
from strongroom.engines.embedded.disk.directory import DataDirectory
from strongroom.engines.embedded.disk.files import OsFiles
from strongroom.engines.embedded.disk.threads import started_pool

_SEGMENT_BYTES = 1000


@asynccontextmanager
async def _segments(root: Path) -> AsyncIterator[SegmentStore]:
    home = DataDirectory(str(root), OsFiles(), test_clock=True)
    threads = started_pool(1, "test")
    segments = SegmentStore(
        home.layout,
        OsFiles(),
        threads,
        iter(range(1, 9)).__next__,
        on_sealed=lambda _: asyncio.get_running_loop().create_future(),
        on_dead_space=lambda: None,
        on_broken=lambda _: None,
        segment_bytes=_SEGMENT_BYTES,
    )
    try:
        yield segments
    finally:
        segments.stop()
        threads.shutdown()
        segments.close()
        home.close()


def test_rooms_given_up_in_any_order_end_where_the_first_began(tmp_path: Path) -> None:
    async def prove() -> None:
        async with _segments(tmp_path) as segments:
            kept, *rooms = [segments.reserve(100) for _ in range(4)]
            segment = kept.segment
            for room, end in zip((rooms[0], rooms[2], rooms[1]), (400, 300, 100), strict=True):
                segments.give_back(room, 100)
                assert segment.end == end
            assert segment.given_up == {}
            assert segment.busy == 1
            assert segments.reserve(50).offset == 100

    asyncio.run(prove())


def test_a_full_segment_whose_last_room_is_given_up_takes_bodies_again(tmp_path: Path) -> None:
    async def prove() -> None:
        async with _segments(tmp_path) as segments:
            segments.reserve(100)
            last = segments.reserve(_SEGMENT_BYTES)
            segments.give_back(last, _SEGMENT_BYTES)
            again = segments.reserve(10)
            assert (again.segment, again.offset) == (last.segment, 100)

    asyncio.run(prove())


def test_nothing_is_cut_under_a_tail_that_is_being_written(tmp_path: Path) -> None:
    """A room in front of the tail is given up."""

    async def prove() -> None:
        async with _segments(tmp_path) as segments:
            early = segments.reserve(100)
            last = segments.reserve(_SEGMENT_BYTES)
            segments.give_back(last, _SEGMENT_BYTES)
            tail = segments.reserve(None)
            assert tail.segment is early.segment
            descriptor = segments.handles.writing(tail.segment)
            segments.handles.files.write_at(descriptor, b"tail", tail.offset)
            segments.give_back(early, 100)
            assert os.fstat(descriptor).st_size == tail.offset + 4
            segments.finish_tail(tail, 4)
            assert tail.segment.end == tail.offset + 4

    asyncio.run(prove())


def test_a_tail_that_is_given_up_is_cut_before_another_body_comes(tmp_path: Path) -> None:
    async def prove() -> None:
        async with _segments(tmp_path) as segments:
            tail = segments.reserve(None)
            descriptor = segments.handles.writing(tail.segment)
            segments.handles.files.write_at(descriptor, bytes(500), 0)
            cutting = segments.give_back_tail(tail)
            assert segments.reserve(10).segment is not tail.segment
            await cutting
            assert os.fstat(descriptor).st_size == 0
            assert segments.reserve(None).segment is tail.segment

    asyncio.run(prove())
