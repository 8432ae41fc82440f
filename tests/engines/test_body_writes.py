"""Bodies of any length, in any pieces, many at once: each is read back whole, whichever way it was
written, even if the file system refuses to bypass its cache."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import hashlib
import os
import random
import threading
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from strongroom.clock import ManualClock
from strongroom.engines.base import Busy, Full, Step, StorageEngine, Unavailable
from strongroom.engines.checksum import crc64
from strongroom.engines.embedded.bodies import buffers
from strongroom.engines.embedded.bodies.buffers import (
    ALIGNMENT_BYTES,
    BUFFER_BYTES,
    LENT_MAX,
    SMALL_BUFFER_BYTES,
    Buffers,
    aligned,
)
from strongroom.engines.embedded.bodies.segments import LARGE_BODY_BYTES
from strongroom.engines.embedded.disk.files import OsFiles
from strongroom.engines.embedded.store import EmbeddedEngine, EmbeddedOptions, open_store
from strongroom.engines.embedded.upkeep.check import check
from strongroom.testing.contract.subject import commit, content, pieces, place

_SIZES = (
    0, 1, ALIGNMENT_BYTES - 1, ALIGNMENT_BYTES, ALIGNMENT_BYTES + 1,
    BUFFER_BYTES - 1, BUFFER_BYTES, BUFFER_BYTES + 1,
    LARGE_BODY_BYTES - 1, LARGE_BODY_BYTES, LARGE_BODY_BYTES + 1, 6 * BUFFER_BYTES + 17,
)  # fmt: skip


_LARGE = bytes(LARGE_BODY_BYTES)


async def _open(root: Path, on: OsFiles | None = None) -> EmbeddedEngine:
    options = EmbeddedOptions(files=on, ballast_bytes=64 * 1024)
    return await open_store(root / "data", ManualClock(), test_clock=True, options=options)


def _body(size_bytes: int, seed: int) -> bytes:
    return random.Random(seed).randbytes(size_bytes)


async def _put(
    store: StorageEngine, number: int, body: bytes, known: bool, piece_bytes: int
) -> int:
    said = len(body) if known else None
    written = await store.contents.write(pieces(body, piece_bytes), said, md5=True)
    assert (written.size_bytes, written.crc64) == (len(body), crc64(body))
    assert written.md5 == hashlib.md5(body).digest()
    await commit(store, Step(place(b"%d" % number), adopt=(written.id,)))
    return written.id


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("piece_bytes", [1 << 30, 70_001])
def test_bodies_of_every_length_come_back(known: bool, piece_bytes: int, tmp_path: Path) -> None:
    async def prove() -> None:
        bodies = {number: _body(size, number) for number, size in enumerate(_SIZES * 2)}
        store = await _open(tmp_path)
        writing = [_put(store, *item, known, piece_bytes) for item in bodies.items()]
        ids = dict(zip(bodies, await asyncio.gather(*writing), strict=True))
        for reopened in (False, True):
            if reopened:
                await store.close()
                store = await _open(tmp_path)
            for number, body in bodies.items():
                assert await content(store, ids[number]) == body
        await store.close()
        assert list(check(tmp_path / "data")) == []

    asyncio.run(prove())


@pytest.mark.parametrize("off_by", [-1, 1])
@pytest.mark.parametrize("size_bytes", [100_000, LARGE_BODY_BYTES, 5 * LARGE_BODY_BYTES])
def test_a_body_of_another_length_leaves_nothing(
    off_by: int, size_bytes: int, tmp_path: Path
) -> None:
    async def prove() -> None:
        store = await _open(tmp_path)
        with pytest.raises(ValueError, match="than declared"):
            await store.contents.write(pieces(bytes(size_bytes + off_by), 300_000), size_bytes)
        body = _body(size_bytes, 1)
        assert await content(store, await _put(store, 1, body, True, 300_000)) == body
        await store.close()

    asyncio.run(prove())


def test_a_file_system_may_refuse_at_the_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = 0
    then = os.pwritev

    def refusing(descriptor: int, data: Sequence[memoryview], offset: int) -> int:
        nonlocal refused
        if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_DIRECT:
            refused += 1
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return then(descriptor, data, offset)

    async def prove() -> None:
        store = await _open(tmp_path)
        for number in range(3):
            body = _body(2 * LARGE_BODY_BYTES + 5, number)
            assert await content(store, await _put(store, number, body, True, 300_000)) == body
        await store.close()

    monkeypatch.setattr(os, "pwritev", refusing)
    asyncio.run(prove())
    assert refused == 1, "it is asked once a file"


def test_a_file_system_may_refuse_at_the_opening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    then = os.open

    def refusing(path: str, flags: int, *rest: Any, **named: Any) -> int:
        if flags & os.O_DIRECT:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return then(path, flags, *rest, **named)

    async def prove() -> None:
        store = await _open(tmp_path)
        body = _body(2 * LARGE_BODY_BYTES + 5, 1)
        assert await content(store, await _put(store, 1, body, True, 300_000)) == body
        await store.close()

    monkeypatch.setattr(os, "open", refusing)
    asyncio.run(prove())


def test_other_refusals_are_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(descriptor: int, data: Sequence[memoryview], offset: int) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    async def prove() -> None:
        store = await _open(tmp_path)
        monkeypatch.setattr(os, "pwritev", failing)
        with pytest.raises(Unavailable):
            await store.contents.write(pieces(bytes(LARGE_BODY_BYTES)), LARGE_BODY_BYTES)
        await store.close()

    asyncio.run(prove())
    with pytest.raises(OSError, match="No such file"):
        OsFiles().open_past_cache(str(tmp_path / "none"))


@pytest.mark.parametrize("most_bytes", [1, ALIGNMENT_BYTES, 3 * ALIGNMENT_BYTES])
def test_short_writes_are_gone_on_with(
    most_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def short(descriptor: int, data: Sequence[memoryview], offset: int) -> int:
        return os.pwrite(descriptor, b"".join(data)[:most_bytes], offset)

    monkeypatch.setattr(os, "pwritev", short)
    path = tmp_path / "file"
    path.touch()
    body = _body(2 * ALIGNMENT_BYTES, 3)
    descriptor = os.open(path, os.O_WRONLY)
    views = [memoryview(body)[:ALIGNMENT_BYTES], memoryview(body)[ALIGNMENT_BYTES:]]
    OsFiles().write_aligned(descriptor, views, ALIGNMENT_BYTES)
    os.close(descriptor)
    assert path.read_bytes() == bytes(ALIGNMENT_BYTES) + body


def _open_segments() -> int:
    count = 0
    for one in Path("/proc/self/fd").iterdir():
        try:
            count += "/segments/" in os.readlink(one)
        except FileNotFoundError:
            continue
    return count


def test_a_crowd_of_uploads_leaves_few_files_open(tmp_path: Path) -> None:
    async def prove() -> None:
        store = await _open(tmp_path)
        body = bytes(LARGE_BODY_BYTES)
        ids = await asyncio.gather(*(_put(store, one, body, True, 1 << 30) for one in range(40)))
        segments = tmp_path / "data" / "segments"
        assert len(list(segments.iterdir())) == 40
        await _put(store, 99, b"", False, 1)  # every sync before it is over
        assert _open_segments() <= 10
        for number, content_id in enumerate(ids):
            await commit(store, Step(place(b"%d" % number), drop=(content_id,)))
        for _ in range(500):
            if len(list(segments.iterdir())) <= 10:
                break
            await asyncio.sleep(0.01)
        assert len(list(segments.iterdir())) <= 10, "dead bytes stay in so many open segments"
        await store.close()

    asyncio.run(prove())


def test_so_does_a_crowd_that_goes_away_during_its_sync(tmp_path: Path) -> None:
    async def prove() -> None:
        store = await _open(tmp_path)
        going = [asyncio.create_task(_put(store, one, _LARGE, True, 1 << 30)) for one in range(40)]
        for _ in range(10_000):
            if _open_segments() >= 40:
                break
            await asyncio.sleep(0)
        for one in going:
            one.cancel()
        await asyncio.gather(*going, return_exceptions=True)
        for _ in range(500):
            if _open_segments() <= 10:
                break
            await asyncio.sleep(0.01)
        assert _open_segments() <= 10
        await store.close()
        assert _open_segments() == 0

    asyncio.run(prove())


class _FewDirectories(OsFiles):
    """A process that sometimes has no descriptor left when a directory is to be synced."""

    left = 1000

    def sync_directory(self, path: str) -> None:
        self.left -= 1
        if self.left < 0:
            self.left = 1
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), path)
        super().sync_directory(path)


def test_too_many_open_files_at_a_sync_refuse_and_stop_nothing(tmp_path: Path) -> None:
    async def prove() -> None:
        files = _FewDirectories()
        store = await _open(tmp_path, files)
        files.left = refused = 0
        for number in range(6):
            try:
                content_id = await _put(store, number, _LARGE, True, 1 << 30)
            except Busy:
                refused += 1
            else:
                assert await content(store, content_id) == _LARGE
        assert 0 < refused < 6
        await store.close()

    asyncio.run(prove())


def test_buffers_are_shared_out_and_kept() -> None:
    pool = Buffers()
    assert pool.share() > 1
    for _ in range(1000):
        pool.begin()
    assert pool.share() == 1, "everybody can go on"
    taken = [pool.take() for _ in range(1000)]
    large = [one for one in taken if len(one) == BUFFER_BYTES]
    assert len(large) == LENT_MAX == pool.lent, "a crowd has no more large buffers than that"
    assert {len(one) for one in taken[LENT_MAX:]} == {SMALL_BUFFER_BYTES}
    pool.give(taken)
    assert pool.lent == 0
    assert pool.take() in large, "what was given back is used again"
    assert 0 < len(pool._kept) < LENT_MAX
    while_busy = len(pool._kept)
    for _ in range(1000):
        pool.end()
    assert 0 < len(pool._kept) < while_busy, "what a crowd needed is not kept when it has gone"
    pool.drop()
    assert not pool._kept


def test_a_crowd_larger_than_the_pool_is_written_in_small_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buffers, "LENT_MAX", 3)

    async def prove() -> None:
        store = await _open(tmp_path)
        sizes = [LARGE_BODY_BYTES + 17 * number for number in range(12)]
        bodies = [_body(size, size) for size in sizes]
        ids = await asyncio.gather(
            *(_put(store, n, body, True, 70_001) for n, body in enumerate(bodies))
        )
        for content_id, body in zip(ids, bodies, strict=True):
            assert await content(store, content_id) == body
        assert store.contents._bodies._buffers.lent == 0
        await store.close()
        assert list(check(tmp_path / "data")) == []

    asyncio.run(prove())


def test_a_client_that_sends_no_more_holds_one_buffer(tmp_path: Path) -> None:
    async def prove() -> None:
        store = await _open(tmp_path)
        stalls = asyncio.Event()

        async def body() -> AsyncIterator[bytes]:
            for _ in range(9):
                yield bytes(BUFFER_BYTES)
            yield b"x"
            await stalls.wait()

        writing = asyncio.create_task(store.contents.write(body(), 4 * LARGE_BODY_BYTES))
        pool = store.contents._bodies._buffers
        while pool.lent != 1:  # noqa: ASYNC110 - bounded below
            await asyncio.sleep(0.01)
        for ended in (asyncio.Event(), stalls):
            ended.set()
            await asyncio.sleep(0.05)
            assert pool.lent == (0 if ended is stalls else 1)
        with pytest.raises(ValueError, match="shorter"):
            await writing
        await store.close()

    asyncio.run(asyncio.wait_for(prove(), 30))


@pytest.mark.parametrize(
    ("size_bytes", "pages"),
    [(0, 0), (1, 1), (ALIGNMENT_BYTES, 1), (ALIGNMENT_BYTES + 1, 2)],
)
def test_aligned(size_bytes: int, pages: int) -> None:
    assert aligned(size_bytes) == pages * ALIGNMENT_BYTES


class _Counted(OsFiles):
    """Counts writes and syncs, and fails or holds up a write when told to."""

    def __init__(self) -> None:
        self.writes = self.syncs = 0
        self.failing: OSError | None = None
        self.gate: threading.Event | None = None

    def write_at(self, descriptor: int, data: bytes | memoryview, offset: int) -> None:
        self.writes += 1
        if self.gate is not None:
            assert self.gate.wait(60)
        if self.failing is not None:
            raise self.failing
        super().write_at(descriptor, data, offset)

    def sync(self, descriptor: int) -> None:
        self.syncs += 1
        super().sync(descriptor)


def _leaves(count: int) -> list[bytes]:
    return [_body(64 * 1024, number) for number in range(count)]


def _busy(store: EmbeddedEngine) -> int:
    return sum(segment.busy for segment in store._segments.by_id.values())


def test_several_bodies_take_one_write_and_one_sync(tmp_path: Path) -> None:
    async def prove() -> None:
        files = _Counted()
        store = await _open(tmp_path, files)
        await store.contents.write_all([b"opens a segment"])
        files.writes = files.syncs = 0
        await store.contents.write_all(_leaves(16))
        assert (files.writes, files.syncs) == (1, 1)
        await store.close()

    asyncio.run(prove())


def test_several_bodies_that_do_not_fit_into_one_segment_come_back(tmp_path: Path) -> None:
    async def prove() -> None:
        options = EmbeddedOptions(segment_bytes=300 * 1024, ballast_bytes=64 * 1024)
        store = await open_store(tmp_path / "data", ManualClock(), test_clock=True, options=options)
        bodies = _leaves(16)
        ids = [one.id for one in await store.contents.write_all(bodies)]
        await commit(store, Step(place(), adopt=tuple(ids)))
        assert len(store._segments.by_id) > 2
        assert [await content(store, one) for one in ids] == bodies
        await store.close()

    asyncio.run(prove())
    assert list(check(tmp_path / "data")) == []


def test_a_batch_that_finds_no_space_gives_its_room_up(tmp_path: Path) -> None:
    async def prove() -> None:
        files = _Counted()
        store = await _open(tmp_path, files)
        files.failing = OSError(errno.ENOSPC, "no space")
        for count in (1, 16):
            with pytest.raises(Full):
                await store.contents.write_all(_leaves(count))
            await asyncio.sleep(0)  # what is done when a thread's write is over
            assert _busy(store) == 0
        files.failing = None
        assert len(await store.contents.write_all(_leaves(2))) == 2
        await store.close()

    asyncio.run(prove())


def test_a_batch_that_is_cancelled_keeps_its_room_until_its_write_is_over(tmp_path: Path) -> None:
    async def prove() -> None:
        files = _Counted()
        store = await _open(tmp_path, files)
        files.writes, files.gate = 0, threading.Event()
        writing = asyncio.ensure_future(store.contents.write_all(_leaves(16)))
        while not files.writes:  # noqa: ASYNC110 - a thread counts them
            await asyncio.sleep(0.001)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        assert _busy(store) == 16
        files.gate.set()
        while _busy(store):  # noqa: ASYNC110 - a thread ends it
            await asyncio.sleep(0.001)
        await store.close()

    asyncio.run(prove())


def test_live_bytes_are_counted_before_a_segment_is_forgotten_in_the_same_group(
    tmp_path: Path,
) -> None:
    """Otherwise its row would come back, with fewer bytes than none."""

    async def prove() -> None:
        store = await _open(tmp_path)
        (one,) = await store.contents.write_all([_body(20_000, 1)])
        await commit(store, Step(place(), adopt=(one.id,)))
        (segment,) = store._segments.by_id
        dropped = asyncio.ensure_future(commit(store, Step(place(), drop=(one.id,))))
        await asyncio.sleep(0)
        forgotten = store._committer.work(lambda _: store._writer.forget_segment(segment))
        await dropped
        assert await forgotten
        assert store._writer.segments() == []
        await store.close()

    asyncio.run(prove())
