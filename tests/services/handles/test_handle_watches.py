"""Watches of directories on services in memory: changes by SMB and by REST, in order."""

from __future__ import annotations

import asyncio

from strongroom.errors import file as file_errors
from strongroom.operations.file import file
from strongroom.semantics.file import accesses
from strongroom.semantics.file.attributes import Attribute
from strongroom.services.core.runner import Services
from strongroom.services.file.handles import information, renaming
from strongroom.services.file.handles.model import Handle, RequestedAttributes, RequestedRename
from strongroom.services.file.handles.notifying import NotifyResult, RequestedWatch, watch
from strongroom.services.file.opens.changes import Aspect, Watches, added
from strongroom.services.file.rest.files import SetFileProperties
from tests.services import container_calls as given
from tests.services import file_calls
from tests.services import handle_calls as do
from tests.services.file.test_file_renames import move
from tests.services.handle_calls import WaitingRequest, mounted

NAMES = Aspect.FILE_NAME | Aspect.DIRECTORY_NAME
EVERYTHING = 0xFFF
ROOM = 4096


async def asked(
    on: Services,
    handle: Handle,
    aspects: int = EVERYTHING,
    *,
    tree: bool = True,
    room: int = ROOM,
    request: WaitingRequest | None = None,
) -> asyncio.Task[NotifyResult]:
    """Start a request that waits."""
    request = request or WaitingRequest()
    wanted = RequestedWatch(int(aspects), tree, room)
    task = asyncio.ensure_future(watch(on, handle, wanted, request))
    async with asyncio.timeout(60):
        await request.has_waited.wait()
    return task


def shown(found: NotifyResult) -> list[str]:
    return [f"{action} {'/'.join(path)}" for action, path in found.changes]


async def next_of(on: Services, handle: Handle, task: asyncio.Task[NotifyResult]) -> list[str]:
    """Return all changes until no more are stored."""
    seen = shown(await task)
    kept = on.held.of(Watches).of(handle)
    assert kept is not None
    while kept.kept:
        seen += shown(await (await asked(on, handle)))
    return seen


def test_changes_of_both_protocols_are_told_in_their_order() -> None:
    """smb.md 2.9."""

    async def scenario() -> None:
        on = await file_calls.services()
        ann, bob = await mounted(on, "ann"), await mounted(on, "bob")
        root = await ann.handle("")
        task = await asked(on, root)
        await file_calls.mkdir(on, "d")
        assert shown(await task) == ["1 d"]
        await file_calls.create(on, "d/f", 3)
        await file_calls.put(on, "d/f", 0, b"abc")
        await file_calls.run(on, file.SET_FILE_PROPERTIES, "d/f", SetFileProperties())
        await move(on, "d/f", "d/g")
        await move(on, "d/g", "h")
        await file_calls.delete(on, "h")
        told = await next_of(on, root, await asked(on, root))
        assert told == ["1 d/f", "3 d/f", "4 d/f", "5 d/g", "2 d/g", "1 h", "2 h"]
        one = await bob.create("d/s")
        await bob.write(one, 0, b"x")
        await information.set_end_of_file(on, one, 0, WaitingRequest())
        hidden = RequestedAttributes(attributes=int(Attribute.HIDDEN))
        await information.set_basic(on, one, hidden)
        await renaming.rename(on, one, RequestedRename(("d", "t")), WaitingRequest())
        await bob.dispose(one)
        await bob.close(one)
        await file_calls.rmdir(on, "d")
        told = await next_of(on, root, await asked(on, root))
        assert told == ["1 d/s", "3 d/s", "4 d/s", "5 d/t", "2 d/t", "2 d"]
        await ann.leave()
        await bob.leave()
        assert do.nothing_is_left(on)

    given.run(scenario)


def test_a_watch_is_of_its_directory_and_of_what_it_asked_for_first() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann = await mounted(on)
        for name in ("d", "e", "d/inner"):
            await file_calls.mkdir(on, name)
        folder = await ann.handle("D")
        task = await asked(on, folder, NAMES & ~Aspect.DIRECTORY_NAME, tree=False)
        await file_calls.create(on, "f")
        await file_calls.create(on, "e/f")
        await file_calls.create(on, "d/inner/f")
        await file_calls.mkdir(on, "d/more")
        await file_calls.create(on, "d/f", 3)
        assert shown(await task) == ["1 f"]
        # Another filter, and the tree: the first request's values stay.
        task = await asked(on, folder, EVERYTHING, tree=True)
        await file_calls.put(on, "d/f", 0, b"abc")
        await file_calls.create(on, "d/inner/g")
        await file_calls.delete(on, "d/f")
        assert shown(await task) == ["2 f"]

    given.run(scenario)


def test_requests_are_answered_in_turn_and_too_much_is_not_told() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann = await mounted(on)
        root = await ann.handle("")
        first, second = await asked(on, root), await asked(on, root)
        cancelled = WaitingRequest()
        third = await asked(on, root, request=cancelled)
        await file_calls.create(on, "a")
        assert shown(await first) == ["1 a"]
        assert not second.done()
        cancelled.cancelled.set_result(None)
        assert await do.status(third) == file_errors.STATUS_CANCELLED
        await file_calls.create(on, "b")
        assert shown(await second) == ["1 b"]
        await file_calls.create(on, "c")
        small = await asked(on, root, room=12)
        assert (await small).must_enumerate
        for number in range(1100):
            on.held.of(Watches).report(
                root.access.generation, added((f"x{number}",), is_directory=False)
            )
        assert (await (await asked(on, root))).must_enumerate
        last = await asked(on, root)
        await file_calls.create(on, "d")
        assert shown(await last) == ["1 d"]

    given.run(scenario)


def test_no_answer_has_more_room_than_that_of_the_first_request() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann = await mounted(on)
        root = await ann.handle("")
        first = await asked(on, root, room=1)
        await file_calls.create(on, "a")
        assert (await first).must_enumerate
        later = await asked(on, root)
        await file_calls.create(on, "b")
        assert (await later).must_enumerate

    given.run(scenario)


def test_the_end_of_a_handle_or_of_its_directory_ends_its_requests() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann, bob = await mounted(on, "ann"), await mounted(on, "bob")
        root = await ann.handle("")
        task = await asked(on, root)
        await ann.close(root)
        assert (await task).is_closed
        folder = await ann.mkdir("d")
        task = await asked(on, folder)
        other = await bob.handle("d")
        await bob.dispose(other)
        assert await do.status(task) == file_errors.STATUS_DELETE_PENDING
        plain = await ann.create("f")
        wanted = RequestedWatch(EVERYTHING, False, ROOM)
        refused = watch(on, plain, wanted, WaitingRequest())
        assert await do.status(refused) == file_errors.STATUS_INVALID_PARAMETER
        looks = await ann.handle("", accesses.READ_ATTRIBUTES)
        refused = watch(on, looks, wanted, WaitingRequest())
        assert await do.status(refused) == file_errors.STATUS_ACCESS_DENIED
        await ann.leave()
        await bob.leave()
        assert on.held.of(Watches)._watches == {}

    given.run(scenario)
