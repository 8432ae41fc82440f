"""Handles on services in memory: the deletions at their end, and their time."""

from __future__ import annotations

import pytest

from strongroom.errors import file as file_errors
from strongroom.semantics.file import oplocks
from strongroom.semantics.file.accesses import Disposition
from strongroom.services.core.runner import Services
from strongroom.services.file.handles import closing
from strongroom.services.file.opens.opens import Opens
from tests.services import container_calls as given
from tests.services import file_calls
from tests.services import handle_calls as do
from tests.services.handle_calls import mounted

PENDING = file_errors.STATUS_DELETE_PENDING


async def deleted_on_close(on: Services) -> None:
    ann, bob = await mounted(on, "ann"), await mounted(on, "bob")
    one = await ann.create("f", deletes_on_close=True)
    other = await bob.handle("f")
    await ann.close(one)
    assert await do.status(bob.open("f")) == PENDING
    assert await do.status(bob.open("f", disposition=Disposition.CREATE)) == PENDING
    assert await given.refused(file_calls.look(on, "f")) == (409, "SMBDeletePending")
    assert await file_calls.names(on) == []
    listed, _ = await do.listed(on, await bob.handle(""))
    assert listed == [".", "..", "f"]
    assert (await bob.info(other)).is_delete_pending
    await bob.leave()
    assert await given.refused(file_calls.look(on, "f")) == (404, "ResourceNotFound")
    assert do.nothing_is_left(on) and file_calls.problems(on) == []


def test_what_is_deleted_on_close_is_pending_until_the_last_handle_goes() -> None:
    """smb.md 3.4 and 4.4."""

    async def scenario() -> None:
        await deleted_on_close(await file_calls.services())

    given.run(scenario)


def test_what_is_deleted_on_close_asks_those_who_cache_their_handles_to_close() -> None:
    """smb.md 3.4, and smbtorture, lease.unlink. The operation does not wait for them."""

    async def scenario() -> None:
        on = await file_calls.services()
        ann, bob = await mounted(on, "ann", answers=False), await mounted(on, "bob")
        await ann.close(await ann.create("f"))
        cached = await ann.handle("f", lease="a", wanted="RH")
        await bob.close(await bob.handle("f", lease="b", wanted="RH", deletes_on_close=True))
        assert [(one.to, one.needs_answer) for _, one in ann.notices] == [(oplocks.R, True)]
        await ann.close(cached)
        assert await given.refused(file_calls.look(on, "f")) == (404, "ResourceNotFound")
        assert do.nothing_is_left(on)

    given.run(scenario)


def test_a_deletion_on_close_takes_nothing_from_its_own_key() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann = await mounted(on, "ann", answers=False)
        one = await ann.create("f", lease="a", wanted="RH")
        await ann.close(await ann.handle("f", lease="a", wanted="RH", deletes_on_close=True))
        assert ann.notices == []
        await ann.close(one)
        assert do.nothing_is_left(on)

    given.run(scenario)


def test_the_end_of_a_download_deletes_what_was_pending() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        await file_calls.write(on, "f", b"text")
        ann = await mounted(on)
        one = await ann.handle("f", deletes_on_close=True)
        download = await file_calls.begin(on, "f")
        await ann.close(one)
        assert await given.refused(file_calls.look(on, "f")) == (409, "SMBDeletePending")
        assert await file_calls.drain(download) == b"text"
        await on.held.of(Opens).tasks.wait()
        assert await given.refused(file_calls.look(on, "f")) == (404, "ResourceNotFound")

    given.run(scenario)


def test_directories_on_close_go_only_if_they_are_empty() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann = await mounted(on)
        full = await ann.mkdir("full", deletes_on_close=True)
        empty = await ann.mkdir("empty", deletes_on_close=True)
        await ann.close(await ann.create("full/f"))
        assert await given.refused(file_calls.rmdir(on, "empty")) == (409, "SharingViolation")
        await ann.close(full)
        await ann.close(empty)
        assert await file_calls.names(on) == ["full"]
        await file_calls.delete(on, "full/f")
        await file_calls.rmdir(on, "full")
        assert do.nothing_is_left(on) and file_calls.problems(on) == []

    given.run(scenario)


def test_a_close_that_waits_for_nothing_is_done_at_once() -> None:
    """It takes no further turn of the event loop."""

    async def scenario() -> None:
        on = await file_calls.services()
        ann = await mounted(on)
        await ann.create("kept")
        handle = await ann.handle("kept")
        with pytest.raises(StopIteration):
            closing.close(on, handle).send(None)
        assert handle.is_closed and handle.id not in on.held.of(Opens).handles

    given.run(scenario)
