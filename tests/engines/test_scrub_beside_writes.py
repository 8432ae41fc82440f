"""The scrub beside writes, deletes, compaction and checkpoints: none of them looks like damage."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import cast

import pytest

from strongroom.engines.base import Step
from strongroom.engines.embedded.records.scrub_reader import ScrubReader
from strongroom.engines.embedded.records.segment_sums import SegmentSum
from strongroom.engines.embedded.scrub import bodies
from strongroom.engines.embedded.store import EmbeddedEngine, EmbeddedOptions
from strongroom.engines.embedded.upkeep.check import check
from strongroom.testing.contract.subject import commit, content, face, hidden, pieces, put
from tests.effort import scaled
from tests.engines.scrubs import Wall, findings_of, opened, record, scrub_of

_OPTIONS = EmbeddedOptions(ballast_bytes=4096, segment_bytes=128 * 1024, compact=False)
_OPERATIONS = 1200
_KEPT = 60


class _Work:
    """A seeded run of writes and deletes. Most contents live briefly, so segments are compacted."""

    def __init__(self, store: EmbeddedEngine, seed: int) -> None:
        self._store = store
        self._random = random.Random(seed)
        self._contents: list[int] = []
        self.done = 0

    async def run(self, count: int) -> None:
        """Do so many operations."""
        for _ in range(count):
            self.done += 1
            await self._one(self.done)

    async def _one(self, number: int) -> None:
        choice = self._random.random()
        if choice < 0.25:
            key = self._random.randrange(200)
            await put(self._store, (record(key), self._random.randbytes(400 + 40 * (key % 7))))
        elif choice < 0.3:
            await put(self._store, (hidden(b"%d" % (number % 5)), self._random.randbytes(30_000)))
        elif choice < 0.35:
            await put(self._store, (face(b"", b"%04d" % self._random.randrange(200)), None))
        elif choice < 0.7 and len(self._contents) < _KEPT:
            await self._add()
        elif self._contents:
            at = self._random.randrange(len(self._contents))
            await commit(self._store, Step(record(0).partition, drop=(self._contents.pop(at),)))
        if number % 10 == 9:
            await self._store.compact_once()
        if number % 400 == 399:
            await self._store._committer.between_groups(self._store._checkpointer._truncate)

    async def _add(self) -> None:
        size_bytes = self._random.choice((5_000, 20_000, 70_000, 300_000, 1_500_000))
        if self._random.random() < 0.8:
            size_bytes //= 10
        data = self._random.randbytes(size_bytes)
        written = await self._store.contents.write(pieces(data), size_bytes)
        if self._random.random() < 0.1:
            self._store.contents.discard(written.id)
            return
        await commit(self._store, Step(record(0).partition, adopt=(written.id,)))
        self._contents.append(written.id)


def test_writes_deletes_and_compaction_make_no_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between any two pieces of a pass, some of what it is about to read moves or goes."""
    monkeypatch.setattr(bodies, "PIECE_BYTES", 64 * 1024)
    missing: list[str] = []
    read_piece = bodies.BodyReading.read_piece

    def note_missing(reading: bodies.BodyReading) -> bodies.ReadBodies:
        found = read_piece(reading)
        missing.extend(found.doubtful.values())
        return found

    monkeypatch.setattr(bodies.BodyReading, "read_piece", note_missing)

    async def prove(seed: int) -> None:
        path = tmp_path / f"data{seed}"
        async with opened(path, _OPTIONS) as store:
            work = _Work(store, seed)
            await work.run(200)
            scrub = scrub_of(store, Wall())

            async def work_instead(seconds: float) -> None:
                await work.run(20)

            scrub._sleep = work_instead
            while work.done < _OPERATIONS:
                await scrub.one_pass()
                assert findings_of(scrub) == {}
            await scrub.close()
        assert list(check(path)) == []

    for seed in range(scaled(2)):
        asyncio.run(prove(seed))
    assert missing  # what has moved or gone was looked for at its old place


def test_writes_on_another_thread_make_no_finding(tmp_path: Path) -> None:
    """The same without an order: both go on at the same time."""

    async def prove() -> None:
        path = tmp_path / "data"
        async with opened(path, _OPTIONS) as store:
            scrub = scrub_of(store, Wall())
            work = asyncio.create_task(_Work(store, 7).run(_OPERATIONS // 2))
            while not work.done():
                await scrub.one_pass()
                assert findings_of(scrub) == {}
            await work
            await scrub.close()

    asyncio.run(prove())


class _Reader:
    """The records as they are before and after a segment is removed."""

    def __init__(self, *answers: SegmentSum) -> None:
        self._answers = list(answers)

    def segment_sum(self, segment: int) -> SegmentSum:
        assert segment == 5
        return self._answers.pop(0)


def test_a_segment_that_goes_between_the_looks_at_it_is_no_damage(tmp_path: Path) -> None:
    full, empty = SegmentSum(5, 10, 10, 10, sealed=True), SegmentSum(5, 0, 0, 0, sealed=False)
    gone, path = str(tmp_path / "gone"), tmp_path / "segment"
    path.write_bytes(bytes(9))
    for answers, file, problem in (
        ((full, empty), gone, None),
        ((full, full), gone, "the file is missing"),
        ((full,), str(path), "9 bytes long, but contents reach to 10"),
        ((empty,), str(path), None),
    ):
        reader = cast("ScrubReader", _Reader(*answers))
        assert bodies.problem_of_segment(reader, 5, file) == problem


def test_what_is_damaged_is_found_beside_writes(tmp_path: Path) -> None:
    """Damage one content that nobody drops, while the others come and go."""

    async def prove() -> None:
        path = tmp_path / "data"
        async with opened(path, _OPTIONS) as store:
            data = bytes(range(256)) * 100
            written = await store.contents.write(pieces(data), len(data))
            await commit(store, Step(record(0).partition, adopt=(written.id,)))
            assert await content(store, written.id) == data
            [segment] = path.joinpath("segments").iterdir()
            with segment.open("r+b") as file:
                file.seek(segment.read_bytes().index(data) + 100)
                file.write(b"\xff")
            scrub = scrub_of(store, Wall())
            work = asyncio.create_task(_Work(store, 1).run(_OPERATIONS // 3))
            while not work.done():
                await scrub.one_pass()
                assert [place.number for place in findings_of(scrub)] == [written.id]
            await work
            await scrub.close()

    asyncio.run(prove())
