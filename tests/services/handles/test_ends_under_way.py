"""Handles that are closed while they are being opened, and interrupted CLOSEs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from strongroom.engines.base import Record, Ref, Unavailable
from strongroom.errors import file as file_errors
from strongroom.operations.file import share
from strongroom.semantics.file.accesses import Disposition
from strongroom.services.core.runner import Services
from strongroom.services.file.handles import closing
from strongroom.services.file.handles.model import RequestedDurability
from strongroom.services.file.opens.opens import Opens
from strongroom.store.core import keys
from tests.services import container_calls as given
from tests.services import file_calls
from tests.services import handle_calls as do
from tests.services.handle_calls import mounted
from tests.services.handles.test_durable_handles import GUID
from tests.services.service_engine import ServiceEngine, settle

CLOSED = file_errors.STATUS_FILE_CLOSED


class Held:
    """Blocks one kind of call until the test releases it."""

    def __init__(self) -> None:
        self.has_come = asyncio.Event()
        self.may_go = asyncio.Event()

    async def __call__(self) -> None:
        self.has_come.set()
        await self.may_go.wait()


async def closed_by_force(on: Services, held: Held) -> asyncio.Future[int]:
    """Close the only handle, which is being opened."""
    await asyncio.wait_for(held.has_come.wait(), 60)
    (handle,) = on.held.of(Opens).handles.values()
    end = asyncio.ensure_future(closing.close_all(on, [handle]))
    await settle()
    return end


@pytest.mark.parametrize("disposition", [Disposition.OPEN, Disposition.CREATE])
@pytest.mark.parametrize("fails", [False, True])
def test_a_close_by_force_waits_for_the_open(
    disposition: Disposition, fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann, held = await mounted(on, "ann"), Held()
        if disposition is Disposition.OPEN:
            await ann.close(await ann.create("f"))

        async def read(refs: Sequence[Ref]) -> Sequence[Record | None]:
            if on.held.of(Opens).handles and not held.has_come.is_set():
                await held()
                if fails:
                    raise Unavailable("the engine stops")
            return await read_really(refs)

        read_really = on.store.read
        monkeypatch.setattr(on.store, "read", read)
        opening = asyncio.ensure_future(
            ann.open("f", disposition=disposition, durable=RequestedDurability(GUID), wanted="RWH")
        )
        end = await closed_by_force(on, held)
        assert not end.done()
        held.may_go.set()
        if fails:
            with pytest.raises(Unavailable):
                await opening
        else:
            assert await do.status(ann.read((await opening).handle)) == CLOSED
        await end
        assert do.nothing_is_left(on)

    given.run(scenario)


@pytest.mark.parametrize("fails", [False, True])
def test_a_close_that_is_cut_off_closes(fails: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The read of the attributes may end in any way: no client can name the handle any more."""

    async def scenario() -> None:
        on = await file_calls.services()
        ann, held = await mounted(on, "ann"), Held()
        handle = await ann.create("f")

        async def read(refs: Sequence[Ref]) -> Sequence[Record | None]:
            await held()
            raise Unavailable("the engine is late")

        with monkeypatch.context() as patched:
            patched.setattr(on.store, "read", read)
            end = asyncio.ensure_future(ann.close(handle, wants_attributes=True))
            await asyncio.wait_for(held.has_come.wait(), 60)
            if fails:
                held.may_go.set()
                assert await end is None
            else:
                end.cancel()
                await asyncio.gather(end, return_exceptions=True)
        await on.held.of(Opens).tasks.wait()
        assert do.nothing_is_left(on)

    given.run(scenario)


@pytest.mark.parametrize("damaged", ["attributes", "names below"])
def test_a_handle_of_what_is_damaged_is_closed(damaged: str) -> None:
    """Else nobody else could open or delete it, as long as the process runs."""

    async def scenario() -> None:
        on = await file_calls.services()
        ann = await mounted(on)
        folder = await ann.mkdir("d", deletes_on_close=damaged == "names below")
        generation, node_id = folder.access.generation, folder.node_id
        assert isinstance(on.store, ServiceEngine)
        if damaged == "attributes":
            on.store.put_record(keys.file_attributes(generation, node_id), b"damaged")
        else:
            on.store.put_record(keys.file_node(generation, node_id), b"damaged")
        assert await ann.close(folder, wants_attributes=damaged == "attributes") is None
        assert do.nothing_is_left(on)

    given.run(scenario)


def test_a_deletion_on_close_ends_while_its_share_is_swept() -> None:
    """A sweep removes the names before the nodes."""

    async def scenario() -> None:
        on = await file_calls.services()
        ann = await mounted(on)
        handle = await ann.create("f", deletes_on_close=True)
        generation = handle.access.generation
        await file_calls.run(on, share.DELETE_SHARE, "")
        assert isinstance(on.store, ServiceEngine)
        on.store.put_record(keys.file_name(generation, generation, "F"), None)
        await ann.close(handle)
        assert do.nothing_is_left(on)

    given.run(scenario)
