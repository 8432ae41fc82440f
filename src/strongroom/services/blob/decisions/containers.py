"""The ways to read a committed container (`view_container`) and to change one
(`change_container`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from strongroom.engines.base import Commit
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.semantics.core import lease as leases
from strongroom.services.blob.decisions.guard import guard_container
from strongroom.services.blob.decisions.timed_reads import of_container, read_with_time
from strongroom.services.core.calls import Call
from strongroom.services.core.decisions import Reads
from strongroom.services.core.place_records import commit_place, written
from strongroom.services.core.places import place_in, place_ref
from strongroom.services.core.runner import Services
from strongroom.services.core.waiting import MustWait
from strongroom.store.core import keys, records
from strongroom.store.core.records import ContainerRecord

T = TypeVar("T")

ContainerDecision = Callable[[ContainerRecord, int], tuple[T, ContainerRecord | None]]


async def view_container(services: Services, call: Call[Any]) -> tuple[ContainerRecord, int]:
    """Guarded, with store time. Wait when the request asks for it."""
    if not call.terms.wait_s:
        return await _view_container_now(services, call)
    return await services.waiting.until_answered(
        call.terms.wait_s, lambda: _view_container_now(services, call), call.client
    )


async def _view_container_now(services: Services, call: Call[Any]) -> tuple[ContainerRecord, int]:
    reads = Reads()
    place = reads.add(keys.container(call.target.account, call.target.container), records.CONTAINER)
    found, _, now = await read_with_time(services, of_container, reads, place)
    container = place_in(call, found, place)
    try:
        guard_container(call, container, now)
    except StorageError as error:
        if error.row is not errors.NOT_MODIFIED or not call.terms.wait_s:
            raise
        until = leases.next_timed_change(container.lease, now)
        raise MustWait(error, [(place.ref, found.version(place))], now, until) from None
    return container, now


async def change_container(services: Services, call: Call[Any], decide: ContainerDecision[T]) -> T:
    """Decide on a container's own record: (record, stamp) -> (result, new record or None)."""
    ref = place_ref(call)

    def committed(container: ContainerRecord, stamp: int) -> Commit[T]:
        result, changed = decide(container, stamp)
        if changed is None:
            return Commit(result)
        return Commit(result, (written(ref, records.CONTAINER, changed),))

    return await commit_container(services, call, committed)


async def commit_container(
    services: Services, call: Call[Any], decide: Callable[[ContainerRecord, int], Commit[T]]
) -> T:
    """Like `change_container`, for a decision that returns the steps of the commit itself."""

    def guarded(container: ContainerRecord, stamp: int) -> Commit[T]:
        guard_container(call, container, stamp)
        return decide(container, stamp)

    return await commit_place(services, call, records.CONTAINER, guarded)
