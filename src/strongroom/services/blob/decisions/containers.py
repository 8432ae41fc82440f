"""The ways to read a committed container (`view_container`) and to change one
(`change_container`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from strongroom.engines.base import Commit, Ref
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.semantics.core import lease as leases
from strongroom.services.blob.decisions.guard import guard_container
from strongroom.services.blob.decisions.timed_reads import of_container, read_with_time
from strongroom.services.core.calls import Call
from strongroom.services.core.decisions import Reads
from strongroom.services.core.place_records import PlaceRule, commit_place, written
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
    return await commit_place(services, call, records.CONTAINER, _Changed(decide))


class GuardedRule(PlaceRule[ContainerRecord, T], Generic[T], frozen=True):
    """A rule for a container, which is guarded first."""

    def decide(self, call: Call[Any], ref: Ref, record: ContainerRecord, stamp: int) -> Commit[T]:
        guard_container(call, record, stamp)
        return self.apply(call, ref, record, stamp)

    def apply(self, call: Call[Any], ref: Ref, record: ContainerRecord, stamp: int) -> Commit[T]:
        """Return the commit for a container that the request may change."""
        raise NotImplementedError


class _Changed(GuardedRule[T], Generic[T], frozen=True):
    change: ContainerDecision[T]

    def apply(self, call: Call[Any], ref: Ref, record: ContainerRecord, stamp: int) -> Commit[T]:
        result, changed = self.change(record, stamp)
        if changed is None:
            return Commit(result)
        return Commit(result, (written(ref, records.CONTAINER, changed),))
