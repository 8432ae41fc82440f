"""List Handles and Force Close Handles on services in memory."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from strongroom.engines.base import Unavailable
from strongroom.errors import file as file_errors
from strongroom.operations.file import handle as operations
from strongroom.semantics.core.listing import START
from strongroom.semantics.file import accesses
from strongroom.semantics.file.accesses import Use
from strongroom.services.core.runner import Services
from strongroom.services.file.handles.listing import CloseHandles, HandlePage, ListHandles
from strongroom.wire.file.list_directory import ListedHandle, write_handles
from tests.services import container_calls as given
from tests.services import file_calls
from tests.services import handle_calls as do
from tests.services.handle_calls import STAT, WaitingRequest, mounted
from tests.services.handles.test_handle_locks import lock
from tests.services.service_engine import settle


async def handles(on: Services, path: str = "", **more: Any) -> HandlePage:
    page: HandlePage = await file_calls.run(on, operations.LIST_HANDLES, path, ListHandles(**more))
    return page


async def force(on: Services, path: str = "", **more: Any) -> int:
    wanted = CloseHandles(**more)
    closed = await file_calls.run(on, operations.FORCE_CLOSE_HANDLES, path, wanted)
    assert closed.failed == 0
    return int(closed.count)


def test_handles_are_listed_by_path_and_below_it() -> None:
    """F-HDL-02."""

    async def scenario() -> None:
        on = await file_calls.services()
        ann = await mounted(on)
        folder = await ann.mkdir("d")
        one = await ann.create("d/f", access=accesses.READ_DATA | accesses.DELETE)
        looks = await ann.handle("D/F", STAT)
        root = await ann.handle("")
        assert {row.id for row in (await handles(on)).rows} == {root.id}
        assert {row.id for row in (await handles(on, "d")).rows} == {folder.id}
        below = (await handles(on, "d", is_recursive=True)).rows
        assert [row.id for row in below] == sorted(row.id for row in below)
        assert {row.id for row in below} == {folder.id, one.id, looks.id}
        shown = {row.id: row for row in (await handles(on, "d/f")).rows}
        assert shown[one.id].rights == ("Read", "Delete") and shown[looks.id].rights == ()
        assert shown[one.id].path == "d/f" and shown[one.id].parent_id == folder.node_id
        assert 0 < one.id < 1 << 63 and shown[one.id].opened >= 0
        assert await given.refused(handles(on, "none")) == (404, "ResourceNotFound")
        found, start = set[int](), START
        while True:
            page = await handles(on, is_recursive=True, max_results=1, start=start)
            found |= {row.id for row in page.rows}
            if page.marker is None:
                break
            start = page.marker
        assert found == {folder.id, one.id, looks.id, root.id}

    given.run(scenario)


def test_a_forced_close_ends_everything_that_depends_on_the_handle() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann, bob = await mounted(on, "ann"), await mounted(on, "bob")
        one = await ann.create("f", deletes_on_close=True)
        other = await bob.handle("f")
        await lock(on, one, 0, 10)
        request = WaitingRequest()
        waiting = asyncio.ensure_future(do.status(lock(on, other, 0, 10, request=request)))
        await request.has_waited.wait()
        assert await force(on, "f", handle=5) == 0
        assert await force(on, "f", handle=other.id) == 1
        assert await waiting == file_errors.STATUS_RANGE_NOT_LOCKED
        assert await do.status(bob.read(other)) == file_errors.STATUS_FILE_CLOSED
        assert await force(on, is_recursive=True) == 1
        assert one.is_closed and await file_calls.names(on) == []
        assert await force(on, is_recursive=True) == 0
        assert do.nothing_is_left(on) and file_calls.problems(on) == []

    given.run(scenario)


def test_a_close_that_is_forced_waits_for_the_write_that_is_under_way() -> None:
    """A handle excludes others until all of its writes are durable."""

    async def scenario() -> None:
        on = await file_calls.services()
        ann, bob = await mounted(on, "ann"), await mounted(on, "bob")
        one = await ann.create("f", share=Use.NONE)
        began, goes_on = asyncio.Event(), asyncio.Event()
        update = on.store.update

        async def slow(*args: Any, **more: Any) -> Any:
            began.set()
            await goes_on.wait()
            return await update(*args, **more)

        on.store.update = slow  # type: ignore[method-assign]  # a double
        writing = asyncio.ensure_future(ann.write(one, 0, b"whole"))
        await began.wait()
        closing = asyncio.ensure_future(force(on, "f"))
        await settle()
        assert await do.status(bob.open("f")) == file_errors.STATUS_SHARING_VIOLATION
        goes_on.set()
        assert await closing == 1
        await writing
        assert await file_calls.read(on, "f") == b"whole"
        await bob.handle("f")

    given.run(scenario)


@pytest.mark.parametrize("fails", [False, True])
def test_a_write_that_is_cancelled_keeps_others_away_until_it_has_happened_or_not(
    fails: bool,
) -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann, bob = await mounted(on, "ann"), await mounted(on, "bob")
        one = await ann.create("f", share=Use.NONE)
        began, goes_on = asyncio.Event(), asyncio.Event()
        update = on.store.update

        async def slow(*args: Any, **more: Any) -> Any:
            began.set()
            await goes_on.wait()
            if fails:
                raise Unavailable("cut off")
            return await update(*args, **more)

        on.store.update = slow  # type: ignore[method-assign]  # a double
        writing = asyncio.ensure_future(ann.write(one, 0, b"whole"))
        await began.wait()
        writing.cancel()
        leaving = asyncio.ensure_future(ann.leave())
        await settle()
        assert not leaving.done()
        assert await do.status(bob.open("f")) == file_errors.STATUS_SHARING_VIOLATION
        goes_on.set()
        await leaving
        assert writing.cancelled()
        assert await file_calls.read(on, "f") == (b"" if fails else b"whole")
        await bob.handle("f")

    given.run(scenario)


def test_the_document_of_handles() -> None:
    row = ListedHandle(7, "a&b/f", 3, 2, 1, "127.0.0.1:5", 638_000_000_000_000_000, None, ("Read",))
    text = b"".join(write_handles([row], "next")).decode()
    assert "<Path>a&amp;b/f</Path><FileId>3</FileId><ParentId>2</ParentId>" in text
    assert "<AccessRightList><AccessRight>Read</AccessRight></AccessRightList>" in text
    assert text.endswith("<NextMarker>next</NextMarker></EnumerationResults>")
