"""A folder of bodies: what is durable, what is refused, and what an error of the disk becomes."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import stat
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest import mock
from uuid import UUID

import pytest

from strongroom.engines.base import EngineError, Full
from strongroom.engines.bodies import folder_files, layout, threaded
from strongroom.engines.bodies.base import BodiesAway, BodiesBroken, BodiesUnfit, BodyMissing
from strongroom.engines.bodies.folder_files import FolderWriting
from strongroom.engines.bodies.layout import MARK, BodyFolder, name_of
from strongroom.engines.bodies.mark import BodiesMark
from strongroom.engines.bodies.places import make_place_ready, open_place
from strongroom.engines.bodies.threaded import ThreadedBodies
from strongroom.platform import files
from tests.engines.bodies.contract import (
    IMPATIENT,
    OWN,
    SECOND,
    THIRD,
    found,
    made,
    read,
    settled,
    write,
)
from tests.engines.bodies.places import TriedFolder

BODY = os.urandom(3 * 1024 * 1024 + 7)


def _try(path: Path, trial: Callable[[ThreadedBodies], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with made(TriedFolder(path)) as bodies:
            await trial(bodies)

    asyncio.run(whole())


def test_only_the_owner_may_read_what_is_there(tmp_path: Path) -> None:
    async def trial(bodies: ThreadedBodies) -> None:
        await write(bodies, 7, b"secret")

    _try(tmp_path, trial)
    for one in tmp_path.rglob("*"):
        wanted = 0o700 if one.is_dir() else 0o600
        assert stat.S_IMODE(one.stat().st_mode) == wanted, one


def test_an_open_body_stays_readable_and_a_missing_one_is_said_to_be_missing(
    tmp_path: Path,
) -> None:
    async def trial(bodies: ThreadedBodies) -> None:
        await write(bodies, 7, BODY)
        body = await bodies.open(7)
        await bodies.remove([7])
        assert await body.read(5, 100) == BODY[5:105]
        body.close()
        with pytest.raises(BodyMissing):
            await bodies.open(7)

    _try(tmp_path, trial)


def _synced(tmp_path: Path) -> list[str]:
    """Return what is synced for a body, in order."""
    synced: list[str] = []
    sync_data, sync_file = os.fdatasync, os.fsync

    def data(descriptor: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        sync_data(descriptor)

    def file(descriptor: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        sync_file(descriptor)

    async def trial(bodies: ThreadedBodies) -> None:
        assert str(tmp_path / "bodies") in synced
        assert synced[-1] == str(tmp_path)
        synced.clear()
        await write(bodies, 7, BODY)

    with mock.patch.object(folder_files, "sync_data", data), mock.patch("os.fsync", file):
        _try(tmp_path, trial)
    return synced


def test_everything_is_synced_before_a_body_counts(tmp_path: Path) -> None:
    """The file, then the folder that has its name. All folders were synced with the mark."""
    body = tmp_path / name_of(7)
    assert _synced(tmp_path) == [str(body), str(body.parent)]


@pytest.mark.parametrize("skipped", ["the file", "its folder"])
def test_a_sync_that_is_skipped_would_be_found(tmp_path: Path, skipped: str) -> None:
    def sync(writing: FolderWriting) -> None:
        if skipped == "its folder":
            folder_files.sync_data(writing._descriptor)  # type: ignore[attr-defined]
        else:
            writing._root.sync(writing._folder)

    body = tmp_path / name_of(7)
    with mock.patch.object(FolderWriting, "finish", sync):
        assert _synced(tmp_path) != [str(body), str(body.parent)]


def _failing(number: int) -> Callable[..., None]:
    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


def test_a_failed_sync_ends_the_gateway_and_nothing_is_acknowledged(tmp_path: Path) -> None:
    async def trial(bodies: ThreadedBodies) -> None:
        told: list[EngineError] = []
        bodies.on_broken(told.append)
        failing = mock.patch.object(folder_files, "sync_data", _failing(errno.EIO))
        with failing, pytest.raises(BodiesBroken):
            await write(bodies, 7, BODY)
        assert len(told) == 1
        with pytest.raises(BodiesBroken):
            await bodies.begin(8)

    _try(tmp_path, trial)


def test_a_sync_that_fails_when_nobody_waits_any_more_ends_the_gateway_too(tmp_path: Path) -> None:
    """Its upload was cut. The next sync of the folder would not tell the error again."""
    goes_on = threading.Event()

    def fail(_: int) -> None:
        goes_on.wait(60)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    async def trial(bodies: ThreadedBodies) -> None:
        told: list[EngineError] = []
        bodies.on_broken(told.append)
        writing = await bodies.begin(7)
        with mock.patch.object(folder_files, "sync_data", fail):
            finishing = asyncio.ensure_future(writing.finish())
            await asyncio.sleep(0.05)
            finishing.cancel()
            writing.give_up()
            goes_on.set()
            await settled(bodies)
        assert [type(one) for one in told] == [BodiesBroken]
        with pytest.raises(BodiesBroken):
            await bodies.begin(8)

    _try(tmp_path, trial)


@pytest.mark.parametrize("where", ["sync_data", "write_all"])
def test_a_full_disk_refuses_the_body_and_nothing_else(tmp_path: Path, where: str) -> None:
    async def trial(bodies: ThreadedBodies) -> None:
        with mock.patch.object(folder_files, where, _failing(errno.ENOSPC)), pytest.raises(Full):
            await write(bodies, 7, BODY)
        await write(bodies, 8, BODY)

    _try(tmp_path, trial)


def _failing_closes(reused: list[int]) -> Callable[[int], None]:
    """The first close fails as with NFS: the descriptor is closed, and its number belongs to
    another file at once."""
    close = os.close

    def fail(descriptor: int) -> None:
        if reused:
            close(descriptor)
            return
        reused.append(descriptor)
        other = os.open(os.devnull, os.O_RDONLY)
        os.dup2(other, descriptor)
        close(other)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    return fail


@pytest.mark.parametrize("finishes", [True, False])
def test_a_close_that_fails_closes_no_other_file(tmp_path: Path, finishes: bool) -> None:
    reused: list[int] = []

    async def trial(bodies: ThreadedBodies) -> None:
        writing = await bodies.begin(7)
        await writing.write(BODY)
        with mock.patch("os.close", _failing_closes(reused)):
            if finishes:
                with pytest.raises(BodiesBroken):
                    await writing.finish()
            writing.give_up()
            await asyncio.gather(*bodies._tasks)

    _try(tmp_path, trial)
    os.close(reused[0])
    assert [one for one in (tmp_path / "bodies").rglob("*") if one.is_file()] == []


@pytest.mark.parametrize("number", [errno.ESTALE, errno.EIO, errno.ETIMEDOUT])
def test_a_read_that_fails_is_unavailable(tmp_path: Path, number: int) -> None:
    async def trial(bodies: ThreadedBodies) -> None:
        await write(bodies, 7, BODY)
        body = await bodies.open(7)
        failing = mock.patch.object(folder_files, "pread", _failing(number))
        with failing, pytest.raises(BodiesAway):
            await body.read(0, 1)
        assert await body.read(0, 1) == BODY[:1]
        body.close()

    _try(tmp_path, trial)


def test_a_mount_point_that_lost_its_folder_is_away_and_stays_empty(tmp_path: Path) -> None:
    """The folder is taken away and an empty one lies in its place, as below a mount point."""
    mounted, aside = tmp_path / "shared", tmp_path / "aside"
    mounted.mkdir()

    async def trial(bodies: ThreadedBodies) -> None:
        await write(bodies, 7, BODY)
        writing = await bodies.begin(8)
        mounted.rename(aside)
        mounted.mkdir()
        with pytest.raises(BodiesAway, match="mount"):
            await bodies.look()
        for call in (bodies.begin(9), bodies.open(7), bodies.remove([7])):
            with pytest.raises(BodiesAway):
                await call
        await writing.write(BODY)
        await writing.finish()
        assert list(mounted.iterdir()) == []
        mounted.rmdir()
        aside.rename(mounted)
        assert await bodies.look() == OWN
        assert await read(bodies, 8) == BODY

    _try(mounted, trial)


def test_a_mark_that_was_given_up_is_not_put_later(tmp_path: Path) -> None:
    """Its call hangs in the system and goes on when others may have written the mark."""
    hanging, sync_file = threading.Event(), files.sync_file

    def sync(descriptor: int) -> None:
        hanging.wait()
        sync_file(descriptor)

    async def trial(bodies: ThreadedBodies) -> None:
        late = mock.patch.object(layout, "sync_file", sync)
        soon = mock.patch.object(threaded, "_PUT_MARK_S", 0.1)
        with late, soon:
            with pytest.raises(BodiesAway, match="does not answer"):
                await bodies.put_mark(SECOND)
            hanging.set()
            assert await bodies.look() == OWN
        await bodies.put_mark(SECOND)
        assert await bodies.look() == SECOND

    _try(tmp_path, trial)
    assert {one.name for one in tmp_path.iterdir()} == {MARK, "bodies"}


def test_writers_of_marks_do_not_share_a_file(tmp_path: Path) -> None:
    """A second gateway has made its file and written nothing, when the first one goes on."""
    asyncio.run(make_place_ready(f"file://{tmp_path}", OWN))
    first, second = BodyFolder(str(tmp_path)), BodyFolder(str(tmp_path))
    synced, made, renamed = threading.Event(), threading.Event(), threading.Event()
    sync_file, write_all = files.sync_file, folder_files.write_all

    def sync(descriptor: int) -> None:
        sync_file(descriptor)
        if not synced.is_set():
            synced.set()
            made.wait(30)

    def write(descriptor: int, data: bytes, offset: int) -> None:
        if data == SECOND.text():
            made.set()
            renamed.wait(30)
        write_all(descriptor, data, offset)

    def put(folder: BodyFolder, mark: BodiesMark) -> None:
        with contextlib.suppress(FileNotFoundError):
            folder.put_mark(mark, lambda: False)

    with (
        mock.patch.object(layout, "sync_file", sync),
        mock.patch.object(layout, "write_all", write),
        ThreadPoolExecutor(2) as threads,
    ):
        one = threads.submit(put, first, THIRD)
        synced.wait(30)
        other = threads.submit(put, second, SECOND)
        one.result()
        try:
            assert BodyFolder(str(tmp_path)).mark in (OWN, THIRD)
        finally:
            renamed.set()
        other.result()
    assert BodyFolder(str(tmp_path)).mark == SECOND


@pytest.mark.parametrize("odd", ["notes.txt", "bodies/5e/0000000000000007"])
def test_a_folder_with_other_things_is_left_alone(tmp_path: Path, odd: str) -> None:
    file = tmp_path / odd
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("mine")
    with pytest.raises(BodiesUnfit, match="not empty"):
        asyncio.run(make_place_ready(f"file://{tmp_path}", OWN))
    assert {one for one in tmp_path.rglob("*") if one.is_file()} == {file}


def test_a_folder_that_was_half_made_is_made_whole(tmp_path: Path) -> None:
    for name in ("00", "5e"):
        (tmp_path / "bodies" / name).mkdir(parents=True)

    async def trial(bodies: ThreadedBodies) -> None:
        await write(bodies, 7, BODY)
        assert await read(bodies, 7) == BODY

    _try(tmp_path, trial)
    before = sorted(tmp_path.rglob("*"))
    asyncio.run(make_place_ready(f"file://{tmp_path}", OWN))
    assert sorted(tmp_path.rglob("*")) == before


def test_a_folder_without_a_mark_or_with_a_strange_one_is_refused(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    for path, words in ((tmp_path, "no mark"), (missing, "No such file")):
        with pytest.raises(BodiesUnfit, match=words):
            asyncio.run(open_place(f"file://{path}"))
    asyncio.run(make_place_ready(f"file://{tmp_path}", OWN))
    mark = tmp_path / MARK
    text = mark.read_text()
    for changed, words in (
        ("?", "cannot be read"),
        (text.replace('"format":1', '"format":2'), "2"),
    ):
        mark.write_text(changed)
        with pytest.raises(BodiesUnfit, match=words):
            asyncio.run(open_place(f"file://{tmp_path}"))
    mark.write_text(text)
    other = BodiesMark(UUID(int=9), UUID(int=2), UUID(int=3))
    with pytest.raises(BodiesUnfit, match="another store"):
        asyncio.run(make_place_ready(f"file://{tmp_path}", other))


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir])
def test_what_is_no_file_is_a_missing_body_and_hangs_nothing(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    async def trial(bodies: ThreadedBodies) -> None:
        make(tmp_path / name_of(7))
        with pytest.raises(BodyMissing):
            await bodies.open(7)
        assert await found(bodies) == {}

    _try(tmp_path, trial)


def test_a_body_that_is_given_up_while_the_folder_hangs_is_removed_later(tmp_path: Path) -> None:
    """All threads hang for longer than anybody waits. Its descriptor would stay open for ever."""
    goes_on = threading.Event()

    async def trial(bodies: ThreadedBodies) -> None:
        writing = await bodies.begin(7)
        hanging = [bodies.begun(goes_on.wait) for _ in range(bodies.limits.threads)]
        with mock.patch.object(bodies, "limits", IMPATIENT):
            writing.give_up()
            await asyncio.sleep(3 * IMPATIENT.call_s)
        goes_on.set()
        await asyncio.gather(*hanging)
        await settled(bodies)
        assert await found(bodies) == {}
        assert _descriptors_below(tmp_path / "bodies") == []

    _try(tmp_path, trial)


def _descriptors_below(path: Path) -> list[str]:
    """Return the files below a folder that this process has open."""
    found = []
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):
            found.append(os.readlink(f"/proc/self/fd/{number}"))
    return [one for one in found if one.startswith(f"{path}/")]
