"""The way to change a blob: load what the request names, guard it, and let a pure decision run at
the engine's serial point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final, Generic, TypeVar

import msgspec

from strongroom.account_switches import DEFAULT_SWITCHES, ContainerProtection, Switches
from strongroom.auth.request import Service
from strongroom.engines.base import Commit, Key, Record, Step, Write, ref_of
from strongroom.service_properties import ServiceProperties
from strongroom.services.blob.decisions.changes import BlobChange
from strongroom.services.blob.decisions.guard import (
    add_body,
    guard_blob,
    guard_scope,
    named_past,
    named_ref,
)
from strongroom.services.blob.decisions.rehydration import as_of
from strongroom.services.blob.decisions.timed_reads import of_blob
from strongroom.services.core.calls import Call, Existence
from strongroom.services.core.decisions import Decision, Found, ReadAll, ReadOne, Reads
from strongroom.services.core.places import generation_of, place_in, place_ref
from strongroom.services.core.runner import Services
from strongroom.store.blob import blob_records
from strongroom.store.blob.blob_records import BlobRecord, Upload
from strongroom.store.core import keys, records
from strongroom.store.core.keys import Past
from strongroom.store.core.records import ContainerRecord

T = TypeVar("T")

# Each write needs the properties of its account, which seldom change.
_PROPERTIES_REMEMBERED: Final = 64


class BlobState(msgspec.Struct, frozen=True):
    """A decision's view of a blob. `named` is the state that the request names; `past` says which
    snapshot or previous version that is, None = the head.

    `deleted_head` is the soft-deleted head; then there is no `head`. `found` has the further
    records that the caller of `change_blob` has named. `retention_days` is how long a displaced
    state is kept (0 = not at all). `body` are the records of the head's body (`read_with`); None =
    not read. `switches` are the account's, and `container` is the blob's; background work has
    neither. `versions` counts the previous versions. `protection` is the container's, None = none.
    `permits_permanent`: a soft-deleted state may be deleted permanently.
    """

    head: BlobRecord | None
    named: BlobRecord | None
    upload: Upload | None
    found: Found
    now: int
    head_version: int | None = None
    deleted_head: BlobRecord | None = None
    retention_days: int = 0
    body: ReadAll[bytes] | None = None
    past: Past | None = None
    switches: Switches = DEFAULT_SWITCHES
    versions: int = 0
    container: ContainerRecord | None = None
    protection: ContainerProtection | None = None
    permits_permanent: bool = False

    @property
    def is_versioned(self) -> bool:
        """Return whether a write keeps the blob that it replaces as a previous version."""
        return self.switches.versioning

    def require_body_records(self) -> Sequence[Record | None]:
        """Return the records of the head's body. Raises: _BodyRecordsNeeded: the decision runs
        again with them."""
        if self.body is None:
            raise _BodyRecordsNeeded
        return self.found.records(self.body)


class _BodyRecordsNeeded(Exception):
    """A decision needs the records of the body. Few decisions do, so they are read only on
    demand."""


class DeletionUnderWay(Exception):
    """A blob is to be protected while a deletion of its container checks for blobs."""


BlobDecision = Callable[[BlobState, BlobChange], T]


async def change_blob(
    services: Services,
    call: Call[Any],
    decide: BlobDecision[T],
    further: Reads | None = None,
    upload_key: Key = keys.UPLOAD_KEY,
) -> T:
    """Decide on one blob at the serial point and commit durably.

    Arguments:
        decide: pure: (state, change) -> result; it collects the writes in `change`.
        further: what `decide` reads in `state.found`, and guards.
        upload_key: of the record that is `state.upload`. A decision with another one than the first
            of all must leave the upload in progress.
    """
    call = call.with_pure_authorization()
    account, past = call.target.account, named_past(call)
    ref = named_ref(call, past)
    partition, blob = ref.partition, blob_records.BLOB
    properties = keys.service_properties(account, Service.BLOB.value)
    reads = Reads(() if further is None else further.refs)
    decision = _CallerDecision(
        partition,
        reads.refs,
        call.rule.purpose,
        call=call,
        change=decide,
        switches=services.switches(account),
        place=reads.add(place_ref(call), records.CONTAINER),
        properties=reads.add(properties, records.PROPERTIES),
        head=reads.add(ref_of((partition, keys.HEAD_KEY)), blob),
        upload=reads.add(ref_of((partition, upload_key)), blob_records.UPLOAD),
        named=None if past is None else (past, reads.add(ref, blob)),
    )
    if decision.switches.versioning:
        decision = decision.with_body()
    while True:
        try:
            result, has_work = await services.commit(decision, call.turn)
            break
        except _BodyRecordsNeeded:
            decision = decision.with_body()
        except DeletionUnderWay:
            await _stop_deletion(services, call)
    if has_work:
        services.work.set()
    return result


async def _stop_deletion(services: Services, call: Call[Any]) -> None:
    """Make a deletion of the container that is under way check for blobs again."""
    reads = Reads()
    place = reads.add(place_ref(call), records.CONTAINER)
    partition, purpose = place.ref.partition, call.rule.purpose
    await services.commit(_StopDeletion(partition, reads.refs, purpose, call, place))


class _StopDeletion(Decision[None], frozen=True):
    """Remove the mark that a deletion has left on the container."""

    call: Call[Any]
    place: ReadOne[ContainerRecord]

    def decide(self, found: Found, stamp: int) -> Commit[None]:
        container = place_in(self.call, found, self.place)
        unmarked = msgspec.structs.replace(container, deleting=0)
        write = Write(self.place.ref.key, records.CONTAINER.encode(unmarked))
        return Commit(None, (Step(self.partition, (write,)),))


@lru_cache(_PROPERTIES_REMEMBERED)
def _retention(properties: Record | None) -> tuple[int, bool]:
    """Return the days for which the account keeps a displaced state, and whether it permits
    permanent deletion."""
    stored = records.PROPERTIES.of(properties)
    policy = None if stored is None else stored.delete_retention
    if policy is None or not policy.enabled:
        return 0, policy is not None and bool(policy.allow_permanent_delete)
    return policy.days or 0, bool(policy.allow_permanent_delete)


def split_head(head_record: BlobRecord | None) -> tuple[BlobRecord | None, BlobRecord | None]:
    """Split the record at the head's key into (head, soft-deleted head): one or both are None."""
    if head_record is None or head_record.vacant:
        return None, None
    return (head_record, None) if head_record.deletion is None else (None, head_record)


class _CallerDecision(Decision[tuple[T, bool]], Generic[T], frozen=True):
    """A decision on one blob on behalf of a caller, who is authorized first. `named` None = the
    head is named. `body` None = the records of the head's body are not read."""

    call: Call[Any]
    change: BlobDecision[T]
    switches: Switches
    place: ReadOne[ContainerRecord]
    properties: ReadOne[ServiceProperties]
    head: ReadOne[BlobRecord]
    upload: ReadOne[Upload]
    named: tuple[Past, ReadOne[BlobRecord]] | None
    body: ReadAll[bytes] | None = None

    def with_body(self) -> _CallerDecision[T]:
        reads = Reads(self.reads)
        body = add_body(reads, self.partition, None)
        return msgspec.structs.replace(self, reads=reads.refs, body=body)

    def decide(self, found: Found, stamp: int) -> Commit[tuple[T, bool]]:
        """The result pairs the decision's with whether work is due at once."""
        call = self.call
        container = place_in(call, found, self.place)
        head_record = found[self.head]
        head, deleted_head = split_head(head_record)
        if head is not None and head.rehydration is not None:
            head = as_of(head, stamp)
        named, past = self._named(found, head, stamp)
        guard_blob(call, named, stamp)
        if call.terms.scope is not None or call.rule.names_scope:
            guard_scope(call, named)
        upload, target = found[self.upload], call.target.blob
        change = BlobChange(self.partition, generation_of(call), target, stamp, head_record, upload)
        retention_days, permits_permanent = _retention(found.record(self.properties))
        state = BlobState(
            head,
            named,
            upload,
            found,
            stamp,
            found.version(self.head),
            deleted_head=deleted_head,
            retention_days=retention_days,
            body=self.body,
            past=past,
            switches=self.switches,
            versions=0 if head_record is None else head_record.versions,
            container=container,
            protection=self.switches.containers.get(call.target.container),
            permits_permanent=permits_permanent,
        )
        result = self.change(state, change)
        steps = change.steps()
        return Commit((result, change.has_work), steps)

    def _named(
        self, found: Found, head: BlobRecord | None, stamp: int
    ) -> tuple[BlobRecord | None, Past | None]:
        """The second is None for the head, also if it is named as the current version."""
        if self.named is None:
            return head, None
        past, read = self.named
        if past.is_version and head is not None and head.version == past.ticks:
            return head, None  # the current one
        if self.call.rule.existence is Existence.KEPT:
            return found[read], past
        return of_blob(found, read, stamp)[0], past
