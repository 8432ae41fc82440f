"""Handles on services in memory, whose names change by requests that are cut off, or go with their
share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from strongroom.engines.base import CommitUnknown
from strongroom.errors import file as file_errors
from strongroom.operations.file import share
from strongroom.services.core.runner import Services
from strongroom.services.file.handles.model import Handle
from strongroom.services.sweeper import Sweeper
from tests.services import container_calls as given
from tests.services import file_calls
from tests.services import handle_calls as do
from tests.services.file.test_file_renames import move
from tests.services.handle_calls import mounted
from tests.services.handles.test_handle_names import rename
from tests.services.handles.test_handle_watches import asked, shown
from tests.services.service_engine import settle


class SlowCommits:
    """Commits are carried out, and are known only when the test releases them."""

    def __init__(self, on: Services, patched: pytest.MonkeyPatch) -> None:
        self.has_come = asyncio.Event()
        self.may_go = asyncio.Event()
        self._update = on.store.update
        patched.setattr(on.store, "update", self._update_late)

    async def _update_late(self, *given: Any) -> Any:
        result = await self._update(*given)
        self.has_come.set()
        await self.may_go.wait()
        return result


@pytest.mark.parametrize("times", [1, 2])
def test_handles_follow_a_rename_whose_request_is_cut_off(
    times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once at its time limit, and again when its client leaves."""

    async def scenario() -> None:
        on = await file_calls.services()
        ann = await mounted(on)
        handle = await ann.create("f")
        with monkeypatch.context() as patched:
            slow = SlowCommits(on, patched)
            moving = asyncio.ensure_future(move(on, "f", "g"))
            await slow.has_come.wait()
            for _ in range(times):
                moving.cancel()
                await settle()
                assert not moving.done()
            slow.may_go.set()
            with pytest.raises(asyncio.CancelledError):
                await moving
        assert (await ann.info(handle)).path == ("g",)
        await rename(ann, handle, "h")
        await ann.close(handle)
        assert await file_calls.names(on) == ["h"]
        assert do.nothing_is_left(on) and file_calls.problems(on) == []

    given.run(scenario)


def test_a_rename_in_a_share_that_is_gone_with_its_names_is_refused() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann = await mounted(on)
        handle = await ann.create("f")
        await file_calls.run(on, share.DELETE_SHARE, "")
        on.store.advance(1)
        await Sweeper(on).run_once()
        expected = file_errors.SHARE_GONE.ntstatus
        assert await do.status(rename(ann, handle, "g")) == expected

    given.run(scenario)


async def created_slowly(
    on: Services, path: str, meanwhile: Callable[[], Awaitable[object]], patched: pytest.MonkeyPatch
) -> tuple[Handle, asyncio.Future[Any]]:
    """Create a file by a handle. What happens `meanwhile` begins when its name is visible, before
    its handle is open."""
    ann, slow = await mounted(on, "ann"), SlowCommits(on, patched)
    creating = asyncio.ensure_future(ann.create(path))
    await slow.has_come.wait()
    patched.undo()
    other = asyncio.ensure_future(meanwhile())
    await settle()
    slow.may_go.set()
    handle = await asyncio.wait_for(creating, 10)
    await asyncio.wait((other,), timeout=10)
    return handle, other


@pytest.mark.parametrize("over_rest", [True, False])
def test_a_directory_is_not_renamed_while_a_file_is_created_below_it(
    over_rest: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        bob = await mounted(on, "bob")
        folder = await bob.mkdir("d")

        def meanwhile() -> Awaitable[object]:
            if over_rest:
                return move(on, "d", "e", whole=True)
            return rename(bob, folder, "e")

        handle, renaming = await created_slowly(on, "d/f", meanwhile, monkeypatch)
        assert await do.status(renaming) == file_errors.DIRECTORY_IN_USE.ntstatus
        assert handle.path == ("d", "f")
        assert await file_calls.names(on, "d") == ["f"]

    given.run(scenario)


@pytest.mark.parametrize("over_rest", [True, False])
def test_a_rename_onto_a_file_that_is_being_created_and_its_creation_end(
    over_rest: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        bob = await mounted(on, "bob")
        source = await bob.create("g")

        def meanwhile() -> Awaitable[object]:
            if over_rest:
                return move(on, "g", "f", replaces=True)
            return rename(bob, source, "f", replaces=True)

        handle, renaming = await created_slowly(on, "f", meanwhile, monkeypatch)
        refused = file_errors.SHARING_VIOLATION if over_rest else file_errors.TARGET_IN_USE
        assert await do.status(renaming) == refused.ntstatus
        assert handle.path == ("f",)

    given.run(scenario)


CHANGES: dict[str, tuple[Callable[[Services], Awaitable[object]], str]] = {
    "a new file": (lambda on: file_calls.create(on, "g"), "1 g"),
    "a new directory": (lambda on: file_calls.mkdir(on, "d"), "1 d"),
    "a deleted file": (lambda on: file_calls.delete(on, "f"), "2 f"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_watch_is_told_of_a_name_whose_request_is_cut_off(
    change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann = await mounted(on)
        await file_calls.create(on, "f")
        told = await asked(on, await ann.handle(""))
        begin, expected = CHANGES[change]
        slow = SlowCommits(on, monkeypatch)
        changing = asyncio.ensure_future(begin(on))
        await slow.has_come.wait()
        changing.cancel()
        slow.may_go.set()
        with pytest.raises(asyncio.CancelledError):
            await changing
        await settle()
        assert told.done() and shown(await told) == [expected]

    given.run(scenario)


def test_a_rename_finds_a_file_whose_last_rename_has_an_unknown_outcome(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann = await mounted(on)
        await file_calls.mkdir(on, "D")
        handle = await ann.create("f")
        update = on.store.update

        async def lost(*given: Any) -> Any:
            await update(*given)
            raise CommitUnknown("the answer is lost")

        with monkeypatch.context() as patched:
            patched.setattr(on.store, "update", lost)
            with pytest.raises(CommitUnknown):
                await move(on, "f", "d/g")
        await asyncio.wait_for(rename(ann, handle, "D/h"), 10)
        assert (await ann.info(handle)).path == ("D", "h")
        assert await file_calls.names(on, "D") == ["h"]

    given.run(scenario)
