"""What test_platforms.py runs in a process of deprived.py. Each function ends, or raises."""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import os
import pkgutil
import sys
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Final

import strongroom
from strongroom.clock import SystemClock
from strongroom.engines.base import Step
from strongroom.engines.embedded.disk.directory import DirectoryInUse, DirectoryLayout, FileLock
from strongroom.engines.embedded.store import EmbeddedEngine, EmbeddedOptions, open_store
from strongroom.engines.embedded.upkeep.backup import backup, restore
from strongroom.engines.embedded.upkeep.check import check
from strongroom.platform import IS_POSIX
from strongroom.platform import files as system
from strongroom.platform.event_loops import new_event_loop
from strongroom.platform.file_of_bytes import file_of_bytes
from strongroom.testing.contract.subject import Subject, commit, content, pieces, place
from strongroom.testing.engine_contract import (
    CONTRACT,
    SHARED_CONTRACT,
    STOPPING_CONTRACT,
    prove,
)
from tests.engines.subjects import EmbeddedSubject, MemorySubject

# Its calls exist on one kind of system, and the other one never imports it.
_OF_POSIX: Final = "strongroom.platform.posix"
_OPTIONS: Final = EmbeddedOptions(segment_bytes=256 * 1024, ballast_bytes=1024 * 1024)
_SIZES: Final = (1_000, 100_000, 700_000, 5)


def _run(work: Coroutine[object, object, None]) -> None:
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(work)


def import_all() -> None:
    """Import every module of the package, and print how many they are."""
    count = 0
    for found in pkgutil.walk_packages(strongroom.__path__, "strongroom."):
        if found.name == "strongroom.__main__" or (found.name == _OF_POSIX and not IS_POSIX):
            continue
        importlib.import_module(found.name)
        count += 1
    print(count)


def contract(directory: str) -> None:
    """Prove the contract of engines, over both engines."""
    for case in CONTRACT + STOPPING_CONTRACT:
        path = Path(directory, case.__name__)
        path.mkdir()
        subjects: tuple[Subject, ...] = (EmbeddedSubject(path), MemorySubject())
        for subject in subjects:
            _run(prove(case, subject))
    for shared in SHARED_CONTRACT:
        _run(prove(shared, MemorySubject()))
    print(len(CONTRACT + STOPPING_CONTRACT + SHARED_CONTRACT))


def life(directory: str) -> None:
    """Let a store on real files live: bodies, removals, compaction, a backup, a restore."""
    data, copy, restored = (os.path.join(directory, name) for name in ("data", "copy", "restored"))
    _run(_first_day(data))
    backup(data, copy)
    restore(copy, restored)
    for one in (data, restored):
        assert list(check(one)) == []
    _run(_second_day(restored))
    lock = FileLock(DirectoryLayout(data).backup_lock)
    assert lock.acquire(shared=True), "a released lock was kept"
    assert FileLock(DirectoryLayout(data).backup_lock).acquire(shared=True), "shared locks meet"
    assert not FileLock(DirectoryLayout(data).backup_lock).acquire(), "a shared lock was ignored"
    lock.release()


def _body(number: int) -> bytes:
    return hashlib.shake_128(b"%d" % number).digest(_SIZES[number % len(_SIZES)])


async def _first_day(data: str) -> None:
    store = await open_store(data, SystemClock(), options=_OPTIONS)
    try:
        ids = {}
        for number in range(24):
            body = _body(number)
            known = len(body) if number % 3 else None
            written = await store.contents.write(pieces(body, 60_000), known)
            ids[number] = written.id
            await commit(store, Step(place(b"%d" % number), adopt=(written.id,)))
            assert await content(store, written.id) == body
        before = len(os.listdir(DirectoryLayout(data).segments))
        for number in range(4, 24):
            await commit(store, Step(place(b"%d" % number), drop=(ids.pop(number),)))
        while await store.compact_once():
            pass
        await _until_fewer_segments(data, before)
        for number, found in ids.items():
            assert await content(store, found) == _body(number)
        await _refuses_a_second(data)
    finally:
        await store.close()


async def _second_day(data: str) -> None:
    store = await open_store(data, SystemClock(), options=_OPTIONS)
    written = await store.contents.write(pieces(_body(2)), None)
    await commit(store, Step(place(b"new"), adopt=(written.id,)))
    await store.close()


async def _until_fewer_segments(data: str, before: int) -> None:
    for _ in range(500):
        # At most two are open at the end: that of new bodies, and that of the last copies.
        if len(os.listdir(DirectoryLayout(data).segments)) <= before // 2:
            return
        await asyncio.sleep(0.01)
    raise AssertionError("the segments of removed bodies stay")


async def _refuses_a_second(data: str) -> None:
    try:
        store: EmbeddedEngine = await open_store(data, SystemClock(), options=_OPTIONS)
    except DirectoryInUse:
        return
    await store.close()
    raise AssertionError("two servers have one directory open")


def files_in_use(directory: str) -> None:
    """Remove and rename files that are open, and replace one that another program has open."""
    first, second = (os.path.join(directory, name) for name in ("first", "second"))
    for path in (first, second):
        descriptor = system.open_file(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        assert system.pwrite(descriptor, os.path.basename(path).encode(), 0) > 0
        os.close(descriptor)
    with system.open_reader(first) as reading:
        system.rename(first, first + ".moved")
        system.unlink(first + ".moved")
        assert system.pread(reading.fileno(), 100, 1) == b"irst"
    third = os.path.join(directory, "third")
    Path(third).write_text("a scanner reads this")
    scanning = open(third, "rb")  # noqa: SIM115
    threading.Timer(0.1, scanning.close).start()
    system.rename(second, third)
    assert Path(third).read_text() == "second"
    if not IS_POSIX:
        _plain_open_keeps_a_name(third)


def _plain_open_keeps_a_name(path: str) -> None:
    """Show that the simulation has the rule that the package works around."""
    with open(path, "rb"):
        try:
            os.unlink(path)
        except PermissionError:
            return
    raise AssertionError("Windows would not remove a file that Python has open")


def bytes_as_files(directory: str) -> None:
    """Let a library that reads files only read bytes, and print who else may use them."""
    with file_of_bytes(b"secret") as path:
        assert Path(path).read_bytes() == Path(path).read_bytes() == b"secret"
        assert not os.stat(path).st_mode & 0o077 or path.startswith("/proc/self/fd/")
    assert not os.path.exists(path)
    mine = Path(directory, "mine")
    mine.touch(0o600)
    with mine.open("rb") as file:
        assert system.rights_of_others(file.fileno()) == ""
        mine.chmod(0o642)
        assert system.rights_of_others(file.fileno()) == ("rw" if IS_POSIX else "")


def hold(directory: str) -> None:
    """Open a store, say so, and keep it open; or say that another one has it."""

    async def held() -> None:
        try:
            await open_store(directory, SystemClock(), options=_OPTIONS)
        except DirectoryInUse:
            print("in use", flush=True)
            return
        print("held", flush=True)
        await asyncio.to_thread(sys.stdin.read)

    _run(held())


def command(*arguments: str) -> None:
    """Run the program `strongroom`."""
    from strongroom.cli import main

    # A thread that waits for input, as the console of Windows has one, is no reason to stay.
    assert threading.current_thread() is threading.main_thread()
    sys.argv = ["strongroom", *arguments]
    main()
