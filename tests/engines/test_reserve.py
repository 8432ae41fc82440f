"""The reserve: how much of it each purpose may use, when it is refilled, and that a disk which
becomes full at any time loses no acknowledged write."""

from __future__ import annotations

import asyncio
import errno
import itertools
import zlib
from collections.abc import Awaitable
from pathlib import Path

import apsw
import pytest

from strongroom.engines.base import EngineError, Full, Step
from strongroom.engines.embedded import EmbeddedEngine
from strongroom.engines.embedded.disk.files import OsFiles
from strongroom.engines.embedded.space.ballast import Ballast
from strongroom.engines.embedded.space.reserve import Reserve, is_full
from strongroom.engines.embedded.upkeep.check import check
from strongroom.testing.contract.subject import (
    commit,
    content,
    face,
    hidden,
    pieces,
    place,
    put,
    value,
)
from strongroom.values import Health, Purpose
from tests.effort import scaled, stride
from tests.engines.disks.disk import Disk
from tests.engines.embedded_stores import BALLAST_BYTES, SEGMENT_BYTES, store_on

_RENEWALS = scaled(12_000)
_TRIES = 400


def _fill(disk: Disk) -> None:
    """Let another program take all free space."""
    disk.capacity_bytes = disk.used_bytes()


def _held_bytes(disk: Disk) -> int:
    path = Path(disk.root, "data", "ballast")
    return path.stat().st_size if path.exists() else 0


async def _until_refused(store: EmbeddedEngine, purpose: Purpose) -> Full:
    """Put more and more records of this purpose until one is refused."""
    for number in itertools.count():
        try:
            await put(store, (hidden(b"%d %d" % (purpose, number)), bytes(60_000)), purpose=purpose)
        except Full as full:
            return full
        assert number < _TRIES, "the disk does not fill"
    raise AssertionError


async def _until_whole(disk: Disk, length: int = BALLAST_BYTES) -> None:
    for _ in range(_TRIES):
        if _held_bytes(disk) >= length:
            return
        await asyncio.sleep(0.05)
    raise AssertionError("the reserve is not kept back again")


def test_half_of_it_is_for_deletes_alone(tmp_path: Path) -> None:
    async def prove() -> None:
        disk = Disk(tmp_path)
        async with store_on(disk, log_ahead=False) as store:
            await put(store, (hidden(b"kept"), bytes(60_000)))
            _fill(disk)
            assert "leases" in str(await _until_refused(store, Purpose.GROWTH))
            assert _held_bytes(disk) == BALLAST_BYTES
            full = await _until_refused(store, Purpose.UPKEEP)
            assert full.purpose is Purpose.UPKEEP
            assert "deletes still work" in str(full)
            assert _held_bytes(disk) == BALLAST_BYTES // 2
            for number in range(3):
                job = (hidden(b"job %d" % number), bytes(60_000))
                await put(store, job, purpose=Purpose.FREEING)
            assert _held_bytes(disk) < BALLAST_BYTES // 2
            await put(store, (hidden(b"kept"), b"1" * 60_000))
            with pytest.raises(Full):
                await put(store, (hidden(b"kept"), bytes(60_001)), purpose=Purpose.UPKEEP)
            assert "Reads still work" in str(await _until_refused(store, Purpose.FREEING))
            assert _held_bytes(disk) == 0
            assert await value(store, hidden(b"kept")) == b"1" * 60_000
        _fill(disk)
        async with store_on(disk) as store:
            assert await value(store, hidden(b"kept")) == b"1" * 60_000

    asyncio.run(prove())


@pytest.mark.parametrize("together", [1, 50])
def test_a_lease_is_renewed_for_as_long_as_the_disk_is_full(tmp_path: Path, together: int) -> None:
    async def prove() -> None:
        disk = Disk(tmp_path)
        async with store_on(disk, log_ahead=False) as store:
            for number in range(100):
                await put(store, (hidden(b"%d" % number), bytes(5_000)))
            for number in range(together):
                await put(store, (face(b"%d" % number), b"%08d" % 0))
            _fill(disk)
            for number in range(_RENEWALS // together):
                await asyncio.gather(
                    *(put(store, (face(b"%d" % one), b"%08d" % number)) for one in range(together))
                )
            assert _held_bytes(disk) > BALLAST_BYTES // 2
            for number in range(100):
                await put(store, (hidden(b"%d" % number), None))
            for number in range(together):
                await put(store, (face(b"%d" % number), None))
            assert await value(store, hidden(b"0")) is None
        assert list(check(tmp_path / "data")) == []

    asyncio.run(prove())


def test_it_is_kept_back_again_by_itself_first_half_of_it(tmp_path: Path) -> None:
    async def prove() -> None:
        disk = Disk(tmp_path)
        async with store_on(disk, log_ahead=False) as store:
            _fill(disk)
            await _until_refused(store, Purpose.FREEING)
            assert _held_bytes(disk) == 0
            disk.capacity_bytes = disk.used_bytes() + BALLAST_BYTES // 2 + (1 << 20)
            await _until_whole(disk, BALLAST_BYTES // 2)
            await put(store, (hidden(b"u"), b"a lease"), purpose=Purpose.UPKEEP)
            with pytest.raises(Full):
                await put(store, (hidden(b"g"), b"more"))
            disk.capacity_bytes = None
            await _until_whole(disk)
            await put(store, (hidden(b"g"), b"more"))
            written = await store.contents.write(pieces(bytes(1000)), 1000)
            await commit(store, Step(place(), adopt=(written.id,)))

    asyncio.run(prove())


def test_a_file_of_the_reserve_that_an_operator_removes_stops_nothing(tmp_path: Path) -> None:
    async def prove() -> None:
        disk = Disk(tmp_path)
        async with store_on(disk, log_ahead=False) as store:
            await put(store, (hidden(b"kept"), bytes(60_000)))
            _fill(disk)
            path = tmp_path / "data" / "ballast"
            path.unlink()
            disk.unlinked(str(path))
            _fill(disk)
            await _until_refused(store, Purpose.FREEING)
            disk.capacity_bytes = None
            await _until_whole(disk)
            await put(store, (face(b"more"), bytes(60_000)))

    asyncio.run(prove())


def test_a_new_directory_is_served_where_the_reserve_finds_no_space(tmp_path: Path) -> None:
    """Even the reserve's file cannot be created, for example because a quota counts files."""

    async def prove() -> None:
        disk = Disk(tmp_path)
        disk.fault = lambda operation, path: (
            errno.EDQUOT if operation == "create" and path.endswith("ballast") else None
        )
        async with store_on(disk) as store:
            assert await store.health(5.0) is Health.FULL
            await put(store, (face(b"lease"), None), purpose=Purpose.FREEING)
            disk.fault = None
            await _until_whole(disk)
            assert await store.health(5.0) is Health.SERVING

    asyncio.run(prove())


def test_records_are_taken_again_where_others_were_deleted(tmp_path: Path) -> None:
    """The database file never shrinks, so the space of deleted records does not return to the
    disk."""

    names = [hidden(b"%d" % number) for number in range(BALLAST_BYTES // 60_000 + 1)]

    async def prove() -> None:
        disk = Disk(tmp_path)
        async with store_on(disk, log_ahead=False) as store:
            for name in names:
                await put(store, (name, bytes(60_000)))
        async with store_on(disk, log_ahead=False) as store:
            _fill(disk)
            await _until_refused(store, Purpose.GROWTH)
            await put(store, (names[0], None))
            with pytest.raises(Full):
                await put(store, (face(b"new"), bytes(60_000)))
            for name in names:
                await put(store, (name, None))
            for _ in range(_TRIES):
                try:
                    await put(store, (face(b"new"), bytes(60_000)))
                    break
                except Full:
                    await asyncio.sleep(0.05)
            assert await value(store, face(b"new")) == bytes(60_000)
            assert _held_bytes(disk) < BALLAST_BYTES
            with pytest.raises(Full):
                await store.contents.write(pieces(bytes(1000)), 1000)

    asyncio.run(prove())


def test_what_stands_in_the_log_has_its_room_in_the_database(tmp_path: Path) -> None:
    """So the log can be overwritten, even if the disk became full since."""

    async def prove() -> None:
        disk = Disk(tmp_path)
        records, log = (Path(disk.root, "data", f"records.sqlite{end}") for end in ("", "-wal"))
        async with store_on(disk, log_ahead=False) as store:
            for number in range(200):
                await put(store, (hidden(b"%d" % number), bytes(5_000)))
            assert disk.size_bytes(str(records)) >= 200 * 5_000
            _fill(disk)
            before = disk.size_bytes(str(log)) + disk.size_bytes(str(records))
            for _ in range(3):
                for number in range(200):
                    await put(store, (hidden(b"%d" % number), b"1" * 5_000))
            for number in range(200):
                await put(store, (hidden(b"%d" % number), None))
            assert disk.size_bytes(str(log)) + disk.size_bytes(str(records)) <= before
            assert _held_bytes(disk) == BALLAST_BYTES
        assert list(check(tmp_path / "data")) == []

    asyncio.run(prove())


def test_compaction_uses_it_where_that_frees_a_segment(tmp_path: Path) -> None:
    async def prove() -> None:
        disk = Disk(tmp_path)
        async with store_on(disk) as store:
            written = [
                await store.contents.write(pieces(bytes([n]) * 20_000), 20_000) for n in range(7)
            ]
            kept, *others = written
            await commit(store, Step(place(), adopt=tuple(one.id for one in written)))
            _fill(disk)
            await commit(store, Step(place(), drop=tuple(one.id for one in others)))
            used_bytes = disk.used_bytes() - _held_bytes(disk)
            assert await store.compact_once()
            assert await content(store, kept.id) == bytes([0]) * 20_000
            for _ in range(_TRIES):
                if disk.used_bytes() - _held_bytes(disk) <= used_bytes - SEGMENT_BYTES + 30_000:
                    break
                await asyncio.sleep(0.02)
            else:
                raise AssertionError("the segment is not gone")
        assert list(check(tmp_path / "data")) == []

    asyncio.run(prove())


def test_its_bytes_can_be_neither_compressed_nor_shared(tmp_path: Path) -> None:
    path = tmp_path / "ballast"
    assert Ballast(OsFiles(), str(path), 4 << 20).fill(4 << 20)
    text = path.read_bytes()
    assert len(zlib.compress(text, 1)) > len(text)
    blocks = {text[at : at + 4096] for at in range(0, len(text), 4096)}
    assert len(blocks) == len(text) // 4096


def test_compaction_gives_up_nothing_for_a_segment_that_it_cannot_move(tmp_path: Path) -> None:
    ballast = Ballast(OsFiles(), str(tmp_path / "ballast"), 1 << 20)
    assert ballast.fill(1 << 20)
    reserve = Reserve(ballast)
    with pytest.raises(Full):
        reserve.check_copy(ballast.free_bytes() + (1 << 30))
    assert ballast.held_bytes() == 1 << 20


def test_what_sqlite_says_of_a_full_disk() -> None:
    too_short = apsw.IOError()
    too_short.extendedresult = apsw.SQLITE_IOERR_SHMSIZE  # type: ignore[attr-defined]  # no stub
    full: tuple[Exception, ...] = (too_short, apsw.FullError(), OSError(errno.EDQUOT, ""))
    for error in full:
        assert is_full(error)
    others: tuple[Exception, ...] = (apsw.IOError(), apsw.CantOpenError(), OSError(errno.EIO, ""))
    for error in others:
        assert not is_full(error)


async def _script(store: EmbeddedEngine, done: dict[bytes, bytes | None]) -> None:
    """Make writes of every kind; `done` records the acknowledged ones. Writes that must still work
    do."""
    for number in range(30):
        name, text = b"growth %d" % number, bytes([number]) * 3_000
        if await _try(put(store, (hidden(name), text))):
            done[name] = text
        await _try(_adopt(store))
        await put(store, (hidden(b"same"), b"%08d" % number))
        done[b"same"] = b"%08d" % number
        lease = b"lease %d" % number
        await put(store, (hidden(lease), b"held"), purpose=Purpose.UPKEEP)
        done[lease] = b"held"
        if number % 2:
            name = b"first %d" % number
            await put(store, (hidden(name), None), purpose=Purpose.FREEING)
            done[name] = None


async def _try(growing: Awaitable[object]) -> bool:
    """Return whether a growing update was accepted; otherwise it was refused as Full."""
    try:
        await growing
    except Full as full:
        if full.purpose is not Purpose.GROWTH:
            raise
        return False
    return True


async def _adopt(store: EmbeddedEngine) -> None:
    written = await store.contents.write(pieces(bytes(2_000)), 2_000)
    await commit(store, Step(place(), adopt=(written.id,)))


async def _prepared(store: EmbeddedEngine) -> dict[bytes, bytes | None]:
    done: dict[bytes, bytes | None] = {b"same": bytes(8)}
    await put(store, (hidden(b"same"), bytes(8)))
    for number in range(30):
        name = b"first %d" % number
        done[name] = bytes(5_000)
        await put(store, (hidden(name), bytes(5_000)))
    return done


async def _all_there(store: EmbeddedEngine, done: dict[bytes, bytes | None]) -> None:
    for name, expected in done.items():
        assert await value(store, hidden(name)) == expected, name


class _FullFrom:
    """The disk is full from its `after`th change on."""

    def __init__(self, disk: Disk, after: int) -> None:
        self._disk = disk
        self._left = after

    def __call__(self, operation: str, path: str) -> int | None:
        self._left -= 1
        if self._left == 0:
            _fill(self._disk)
        return None


class _RefusesOnce:
    """One write finds no space, the `after`th; the later ones do."""

    def __init__(self, after: int) -> None:
        self._left = after

    def __call__(self, operation: str, path: str) -> int | None:
        if operation not in ("write", "create", "truncate"):
            return None
        self._left -= 1
        return errno.ENOSPC if self._left == 0 else None


@pytest.mark.parametrize("cut", [None, 0, 1, 2], ids=["end", "lost", "kept", "torn"])
def test_a_disk_that_becomes_full_at_any_moment(tmp_path: Path, cut: int | None) -> None:
    """The store ends normally or by a power cut, restarts on the full disk, and everything can be
    read and deleted."""

    async def prove(root: Path, after: int) -> None:
        disk = Disk(root)
        async with store_on(disk, log_ahead=False) as store:
            done = await _prepared(store)
            disk.fault = _FullFrom(disk, after)
            await _script(store, done)
            if cut is not None:
                image = root / "image"
                image.mkdir()
                disk.after_power_cut(image, cut)
        if cut is not None:
            disk = Disk(image)
        _fill(disk)
        async with store_on(disk, log_ahead=False) as store:
            await _all_there(store, done)
            for name in done:
                await put(store, (hidden(name), None), purpose=Purpose.FREEING)
                assert await value(store, hidden(name)) is None
        assert list(check(Path(disk.root, "data"))) == []

    for after in range(1, 400, 30 * stride()):
        root = tmp_path / str(after)
        root.mkdir()
        asyncio.run(prove(root, after))


def test_one_write_that_finds_no_space(tmp_path: Path) -> None:
    """The write may be anywhere: at the start, in a commit, a checkpoint, the ballast, or at the
    end."""

    async def prove(root: Path, after: int) -> None:
        disk = Disk(root)
        async with store_on(disk, log_ahead=False) as store:
            done = await _prepared(store)
        disk.fault = _RefusesOnce(after)
        try:
            async with store_on(disk, log_ahead=False) as store:
                await _all_there(store, done)
                await _script(store, done)
                await _all_there(store, done)
        except EngineError as error:
            raise AssertionError(f"write {after}: {error}") from error
        disk.fault = None
        async with store_on(disk) as store:
            await _all_there(store, done)
        assert list(check(Path(disk.root, "data"))) == []

    for after in [*range(1, 30, stride()), *range(30, 400, 30 * stride())]:
        root = tmp_path / str(after)
        root.mkdir()
        asyncio.run(prove(root, after))
