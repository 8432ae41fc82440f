"""The open source of a pending copy exists before the copy's job is visible, and is released with
it."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest

from strongroom.engines.base import CommitUnknown, DataDamaged, Partition
from strongroom.errors.core import StorageError
from strongroom.limits import COPY_AT_ONCE_BYTES_MAX
from strongroom.operations.blob import blob
from strongroom.services.core.copies.sources import CopySources
from strongroom.services.core.runner import Services
from strongroom.services.sweeper import Sweeper
from strongroom.store.blob.bodies.readers import Readers
from strongroom.store.core import keys
from strongroom.store.core.records import DamagedRecord
from tests.services import blob_calls as do
from tests.services.container_calls import run
from tests.services.service_engine import ServiceEngine
from tests.services.sweeps import fresh, swept

LARGE = b"x" * (COPY_AT_ONCE_BYTES_MAX + 1)


def after_the_next_commit(on: Services, act: Any) -> None:
    """Run `act` after a copy was committed, before its request continues."""
    real = on.store.update

    async def update(partition: Partition, *given: Any) -> Any:
        result = await real(partition, *given)
        if partition.keyspace != keys.JOBS:
            on.store.update = real  # type: ignore[method-assign]  # a double
            await act()
        return result

    on.store.update = update  # type: ignore[method-assign, assignment]  # a double


def test_a_job_that_is_seen_first_finds_the_source() -> None:
    async def test() -> None:
        on, sweeper = await fresh()
        await do.put(on, "source", LARGE)
        opened: list[bool] = []

        async def sweep() -> None:
            opened.extend(bool(on.held.of(CopySources)._open) for _ in "1")
            await swept(on, sweeper)

        after_the_next_commit(on, sweep)
        await do.start_copy(on, "source", "copy")
        assert opened == [True]
        assert not on.held.of(CopySources)._open, "no source is held that no copy will take"
        assert not on.held.of(Readers)._active
        assert await do.read(on, "copy") == LARGE

    run(test)


@pytest.mark.parametrize("unknown", [False, True])
def test_a_copy_that_was_not_committed_leaves_no_source(unknown: bool) -> None:
    async def test() -> None:
        on, _ = await fresh()
        await do.put(on, "source", LARGE)
        if unknown:

            async def lost() -> None:
                raise CommitUnknown("the answer was lost")

            after_the_next_commit(on, lost)
            with pytest.raises(CommitUnknown):
                await do.start_copy(on, "source", "copy")
        else:
            await do.start_copy(on, "source", "copy")
            await on.held.of(CopySources).close()
            with pytest.raises(StorageError):
                await do.start_copy(on, "source", "copy")
        assert not on.held.of(CopySources)._open and not on.held.of(Readers)._active
        assert await do.run(on, blob.GET_BLOB_PROPERTIES, "source", None)

    run(test)


def test_a_source_is_given_up_when_another_gateway_has_copied_the_blob() -> None:
    async def test() -> None:
        on, _ = await fresh()
        store = on.store
        assert isinstance(store, ServiceEngine)
        other = Services(store.second(), on.clock)
        await do.put(on, "source", LARGE)
        await do.start_copy(on, "source", "copy")
        sources = on.held.of(CopySources)
        await sources.close_ended()
        assert len(sources._open) == 1, "the copy is pending"
        with mock.patch.object(other.store.gateways, "owns", return_value=True):
            assert await swept(other, Sweeper(other))
        assert len(sources._open) == 1
        await swept(on, Sweeper(on))
        assert not sources._open and not sources._pending
        assert not on.held.of(Readers)._active
        assert await do.read(on, "copy") == LARGE

    run(test)


@pytest.mark.parametrize("error", [DataDamaged("a page"), DamagedRecord("a record")])
def test_a_destination_that_cannot_be_read_holds_up_no_other_work(error: Exception) -> None:
    async def test() -> None:
        on, sweeper = await fresh()
        await do.put(on, "source", LARGE)
        await do.start_copy(on, "source", "copy")
        sources = on.held.of(CopySources)

        async def unreadable() -> bool:
            raise error

        (copy_id,) = sources._open
        sources.register_committed(copy_id, unreadable)
        await sources.close_ended()
        assert len(sources._open) == 1
        await swept(on, sweeper)
        assert await do.read(on, "copy") == LARGE

    run(test)
