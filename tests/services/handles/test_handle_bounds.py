"""The bounds of the state that all SMB clients together may create, and its counters."""

from __future__ import annotations

from typing import Any

import pytest

from strongroom.engines.base import Full
from strongroom.errors import file as file_errors
from strongroom.semantics.file import accesses, byte_ranges
from strongroom.semantics.file.accesses import Disposition
from strongroom.semantics.file.byte_ranges import LockTable, RangeLock
from strongroom.semantics.file.permissions import PERMISSION_BYTES_MAX
from strongroom.services.file.handles import information, locking, opening
from strongroom.services.file.handles.notifying import RequestedWatch, watch
from strongroom.services.file.opens import changes
from strongroom.services.file.opens.changes import Watches, added
from strongroom.services.file.opens.opens import Opens
from strongroom.store.core.extents.model import LEAF_BYTES
from tests.services import container_calls as given
from tests.services import file_calls
from tests.services import handle_calls as do
from tests.services.handle_calls import WaitingRequest, mounted
from tests.services.handles.test_handle_breaks import held, pass_time, waits
from tests.services.handles.test_handle_locks import lock, pair, unlock
from tests.services.handles.test_handle_watches import asked

FULL = file_errors.STATUS_INSUFFICIENT_RESOURCES


def test_handles_of_all_files_and_clients_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "_ALL_HANDLES_MAX", 3)

    async def scenario() -> None:
        on = await file_calls.services()
        ann, bob = await mounted(on, "ann"), await mounted(on, "bob")
        first = await ann.create("a")
        await ann.handle("")
        await bob.create("b")
        for path, disposition in (("a", Disposition.OPEN), ("c", Disposition.CREATE)):
            assert await do.status(bob.open(path, disposition=disposition)) == FULL
        assert await file_calls.names(on) == ["a", "b"], "nothing is created for a refused open"
        await ann.close(first)
        await bob.create("c")

    given.run(scenario)


def test_locks_of_a_file_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_ranges, "LOCKS_MAX", 3)

    async def scenario() -> None:
        on = await file_calls.services()
        _, one, _, other = await pair(on)
        for offset in range(3):
            await lock(on, one, offset, 1)
        assert await do.status(lock(on, other, 9, 1)) == FULL
        assert await do.status(lock(on, other, 9, 1, request=WaitingRequest())) == FULL
        await unlock(on, one, 0, 1)
        await lock(on, other, 9, 1)

    given.run(scenario)


def test_a_series_of_locks_beyond_the_bound_takes_none() -> None:
    most = byte_ranges.LOCKS_MAX
    wanted = [RangeLock(offset, 1, False, 7) for offset in range(most + 1)]
    refused = byte_ranges.lock(LockTable(), wanted)
    assert refused == byte_ranges.LocksRefused(file_errors.TOO_MANY_LOCKS)
    assert isinstance(byte_ranges.lock(LockTable(), wanted[:most]), byte_ranges.LocksGranted)


def test_locks_of_all_files_are_bounded_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locking, "_ALL_LOCKS_MAX", 3)

    async def scenario() -> None:
        on = await file_calls.services()
        ann, one, bob, other = await pair(on)
        opens = on.held.of(Opens)
        await lock(on, one, 0, 1)
        request = WaitingRequest()
        waiting = await waits(lock(on, other, 0, 1, request=request), request.has_waited)
        await lock(on, await ann.create("g"), 0, 1)
        assert opens.counts.locks == 3
        assert await do.status(lock(on, one, 5, 1)) == FULL
        await unlock(on, one, 0, 1)
        await waiting
        assert opens.counts.locks == 2
        await ann.leave()
        await bob.leave()
        assert opens.counts.locks == 0

    given.run(scenario)


def test_watches_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "WATCHES_MAX", 2)

    async def scenario() -> None:
        on = await file_calls.services()
        ann = await mounted(on)
        first, second, third = [await ann.handle("") for _ in range(3)]
        tasks = [await asked(on, one) for one in (first, second, second)]
        refused = watch(on, third, RequestedWatch(0xFFF, True, 4096), WaitingRequest())
        assert await do.status(refused) == FULL
        await ann.close(first)
        await asked(on, third)
        assert (await tasks[0]).is_closed

    given.run(scenario)


def test_changes_that_are_kept_for_all_watches_are_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(changes, "_ALL_KEPT_MAX", 5)

    async def scenario() -> None:
        on = await file_calls.services()
        ann = await mounted(on)
        roots = [await ann.handle("") for _ in range(3)]
        first = [await asked(on, root) for root in roots]
        await file_calls.create(on, "first")
        for task in first:
            await task
        for number in range(3):
            on.held.of(Watches).report(
                roots[0].access.generation, added((f"x{number}",), is_directory=False)
            )
        watches = [on.held.of(Watches).of(root) for root in roots]
        assert sum(len(one.kept) for one in watches if one is not None) <= 5
        answers = [await (await asked(on, root)) for root in roots]
        assert any(one.must_enumerate for one in answers)
        # Delivered changes and closed handles make room again.
        again = await asked(on, roots[0])
        await file_calls.create(on, "later")
        assert [path for _, path in (await again).changes] == [("later",)]
        for root in roots:
            await ann.close(root)
        assert on.held.of(Watches)._limit.left == 5

    given.run(scenario)


def test_it_is_counted_how_breaks_end() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        breaks = on.held.of(Opens).counts
        ann = await mounted(on, "ann", answers=True)
        await ann.open("f", disposition=Disposition.CREATE, lease="a", wanted="RWH")
        bob = await mounted(on, "bob")
        await bob.open("f")
        assert (breaks.asked, breaks.acknowledged, breaks.timed_out) == (1, 1, 0)
        await ann.leave()
        await bob.leave()
        await file_calls.delete(on, "f")
        _, first = await held(on, "RWH")
        request = WaitingRequest()
        second = await waits(bob.open("f", request=request), request.has_waited)
        await pass_time(on, 36)
        await second
        assert (breaks.asked, breaks.acknowledged, breaks.timed_out) == (2, 1, 1)
        assert first.handle.may(accesses.READ_DATA)

    given.run(scenario)


@pytest.mark.parametrize("offset", [0, 100])
def test_a_write_that_the_disk_has_no_room_for_is_refused_as_that(
    offset: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole leaves are stored when they arrive, and the others before the commit."""

    async def scenario() -> None:
        on = await file_calls.services()
        ann = await mounted(on)
        handle = await ann.create("f")

        async def full(*given: Any) -> Any:
            raise Full

        for name in ("write", "write_all"):
            monkeypatch.setattr(on.store.contents, name, full)
        written = ann.write(handle, offset, b"x" * LEAF_BYTES)
        assert await do.status(written) == file_errors.STATUS_DISK_FULL
        await ann.close(handle)
        assert do.nothing_is_left(on) and file_calls.problems(on) == []

    given.run(scenario)


def test_a_descriptor_that_no_record_can_hold_is_refused() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann = await mounted(on)
        handle = await ann.create("f")
        text = "O:BAG:BAD:" + "(A;;FA;;;BA)" * 5456 + "(A;;0x1;;;BA)" * 4
        assert len(text) == PERMISSION_BYTES_MAX - 2
        stored = information.set_security(on, handle, lambda _: text, WaitingRequest())
        invalid = file_errors.FILE_INVALID_PERMISSION.ntstatus
        assert await do.status(stored) == invalid
        assert await do.status(ann.create("g", permission=text)) == invalid

    given.run(scenario)
