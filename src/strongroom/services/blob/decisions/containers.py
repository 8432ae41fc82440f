"""The ways to read a committed container (`view_container`) and to change one
(`change_container`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from strongroom.engines.base import Commit, Step, Write
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.semantics.core import lease as leases
from strongroom.services.blob.decisions.guard import guard_container
from strongroom.services.blob.decisions.timed_reads import of_container, read_with_time
from strongroom.services.core.calls import Call
from strongroom.services.core.decisions import Decision, Found, ReadOne, Reads
from strongroom.services.core.places import place_in
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
    ref = keys.container(call.target.account, call.target.container)

    def committed(container: ContainerRecord, stamp: int) -> Commit[T]:
        result, changed = decide(container, stamp)
        if changed is None:
            return Commit(result)
        write = Write(ref.key, records.CONTAINER.encode(changed))
        return Commit(result, (Step(ref.partition, (write,)),))

    return await commit_container(services, call, committed)


async def commit_container(
    services: Services, call: Call[Any], decide: Callable[[ContainerRecord, int], Commit[T]]
) -> T:
    """Like `change_container`, for a decision that returns the steps of the commit itself."""
    ref, reads = keys.container(call.target.account, call.target.container), Reads()
    place = reads.add(ref, records.CONTAINER)
    call = call.with_pure_authorization()
    return await services.commit(
        _OfContainer(ref.partition, reads.refs, call.rule.purpose, call, place, decide)
    )


class _OfContainer(Decision[T], Generic[T], frozen=True):
    """A decision on a container's own record on behalf of a caller, who is authorized first."""

    call: Call[Any]
    place: ReadOne[ContainerRecord]
    change: Callable[[ContainerRecord, int], Commit[T]]

    def decide(self, found: Found, stamp: int) -> Commit[T]:
        container = place_in(self.call, found, self.place)
        guard_container(self.call, container, stamp)
        return self.change(container, stamp)
