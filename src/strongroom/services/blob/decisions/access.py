"""The ways to read a committed blob (`view_blob`) and to change one (`change_blob`).

Lives here: the only ways to both: load what the request names, guard it, and let a pure decision
run at the engine's serial point. Must not live here: containers (containers.py), any one
operation's behaviour, HTTP, SQL.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache
from typing import Any, Final, Generic, TypeVar

import msgspec

from strongroom.account_switches import DEFAULT_SWITCHES, ContainerProtection, Switches
from strongroom.auth.authorize import NO_OVERRIDES, Overrides
from strongroom.auth.request import Service
from strongroom.engines.base import Commit, Partition, Record, Ref, Step, Write, ref_of
from strongroom.errors import blob as blob_errors
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.semantics.core import lease as leases
from strongroom.service_properties import ServiceProperties
from strongroom.services.blob.decisions.changes import BlobChange
from strongroom.services.blob.decisions.guard import guard_blob, guard_scope
from strongroom.services.blob.decisions.rehydration import as_of
from strongroom.services.blob.decisions.timed_reads import of_blob, read_with_time, version_among
from strongroom.services.core.calls import Call, Existence
from strongroom.services.core.decisions import UNDECODED, Decision, Found, ReadAll, ReadOne, Reads
from strongroom.services.core.places import check_place, generation_of, place_in, place_ref
from strongroom.services.core.runner import Services
from strongroom.services.core.waiting import MustWait
from strongroom.store.blob import blob_records
from strongroom.store.blob.blob_records import BlobRecord, Upload
from strongroom.store.blob.bodies.kinds import read_with
from strongroom.store.core import keys, records
from strongroom.store.core.keys import Past
from strongroom.store.core.records import ContainerRecord

T = TypeVar("T")

# Each write needs the properties of its account, which seldom change.
_PROPERTIES_REMEMBERED: Final = 64
# The refusals that a later change may lift, for a client that asks to wait.
_WAITABLE = (errors.NOT_MODIFIED, blob_errors.BLOB_NOT_FOUND)


class BlobView(msgspec.Struct, frozen=True):
    """A blob's head, snapshot or version in one committed snapshot of its partition.

    `now` is store time if the record depends on time (it has a lease), else the record's own
    modification time. `found` has the further records that the caller has named. `body` are the
    records of the blob's body (`read_with`); None = not read. `past` says which snapshot or
    previous version it is; None = the head.
    """

    blob: BlobRecord
    now: int
    partition: Partition
    found: Found
    body: ReadAll[bytes] | None = None
    past: Past | None = None
    overrides: Overrides = NO_OVERRIDES

    @property
    def body_records(self) -> Sequence[Record | None]:
        """The records of the body, none if they were not read."""
        return () if self.body is None else self.found.records(self.body)


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


def view_blob(
    services: Services,
    call: Call[Any],
    further: Reads | None = None,
    wait: bool = True,
    with_body_records: bool = False,
) -> Awaitable[BlobView]:
    """Return the committed blob that the request names, guarded. Wait when the request asks for it.

    Arguments:
        further: what the caller reads in the view's `found`, from the same snapshot.
        wait: whether the operation supports `x-strongroom-wait`. A version is not waited for.
        with_body_records: whether the records of the body are read too.

    Raises: StorageError as guard_blob does.
    """
    reads = Reads(() if further is None else further.refs)
    if call.target.version is not None:
        return _view_version(services, call, call.target.version, reads, with_body_records)
    if not (wait and call.terms.wait_s):
        return _view_blob_now(services, call, reads, with_body_records)
    sight = _WaitingBlobRead(services, call, reads, with_body_records)
    return services.waiting.until_answered(call.terms.wait_s, sight.attempt, call.client)


async def _view_blob_now(
    services: Services, call: Call[Any], reads: Reads, with_body_records: bool
) -> BlobView:
    past = _named_past(call)
    # The container was checked just before, within this same request.
    named = reads.add(_named_ref(call, past), blob_records.BLOB)
    partition = named.ref.partition
    body = _add_body(reads, partition, past) if with_body_records else None
    found, blob, now = await read_with_time(services, of_blob, reads, named)
    guard_blob(call, blob, now)
    assert blob is not None
    overrides = call.caller.grant.overrides
    return BlobView(blob, now, partition, found, body=body, past=past, overrides=overrides)


def _add_body(reads: Reads, partition: Partition, past: Past | None) -> ReadAll[bytes]:
    """Add the reads of the records of a body; `past` None = the head's."""
    return reads.add_all([ref_of((partition, key)) for key in read_with(past)], UNDECODED)


async def _view_version(
    services: Services, call: Call[Any], version: int, reads: Reads, with_body_records: bool
) -> BlobView:
    """Return the view of the version with this id, be it the current or a previous one."""
    partition, past = keys.blob(generation_of(call), call.target.blob), Past(version, True)
    head = reads.add(ref_of((partition, keys.HEAD_KEY)), blob_records.BLOB)
    previous = reads.add(ref_of((partition, keys.past(past))), blob_records.BLOB)
    head_body = _add_body(reads, partition, None) if with_body_records else None
    own_body = _add_body(reads, partition, past) if with_body_records else None
    pick = functools.partial(version_among, version, previous)
    found, blob, now = await read_with_time(services, pick, reads, head)
    guard_blob(call, blob, now)
    assert blob is not None
    current, _ = of_blob(found, head, now)
    state, body = (None, head_body) if current == blob else (past, own_body)
    overrides = call.caller.grant.overrides
    return BlobView(blob, now, partition, found, body=body, past=state, overrides=overrides)


class _WaitingBlobRead:
    """The repeated reads of a blob by one waiting request."""

    def __init__(
        self, services: Services, call: Call[Any], reads: Reads, with_body_records: bool
    ) -> None:
        self._services = services
        self._call = call
        self._past = _named_past(call)
        self._reads = reads
        self._place = reads.add(place_ref(call), records.CONTAINER)
        self._named = reads.add(_named_ref(call, self._past), blob_records.BLOB)
        self._partition = self._named.ref.partition
        self._body = _add_body(reads, self._partition, self._past) if with_body_records else None
        self._was_there = False

    async def attempt(self) -> BlobView:
        """Return the blob as it is now. Raises: MustWait while the request must go on waiting."""
        call, named = self._call, self._named
        found, blob, now = await read_with_time(self._services, of_blob, self._reads, named)
        check_place(call, found.record(self._place))
        try:
            guard_blob(call, blob, now)
        except StorageError as error:
            gone = self._was_there and error.row is blob_errors.BLOB_NOT_FOUND
            if gone or error.row not in _WAITABLE:
                raise
            self._was_there = blob is not None
            watched = [(read.ref, found.version(read)) for read in (self._place, named)]
            until = None if blob is None else leases.next_timed_change(blob.lease, now)
            raise MustWait(error, watched, now, until) from None
        assert blob is not None
        return BlobView(
            blob,
            now,
            self._partition,
            found,
            body=self._body,
            past=self._past,
            overrides=call.caller.grant.overrides,
        )


async def check_blob(services: Services, call: Call[Any]) -> None:
    """Refuse early, on committed state, what the serial point would refuse too, before a large
    body is read. Raises: as guard_blob."""
    reads = Reads()
    place = reads.add(place_ref(call), records.CONTAINER)
    named = reads.add(_named_ref(call, _named_past(call)), blob_records.BLOB)
    found, blob, now = await read_with_time(services, of_blob, reads, named)
    check_place(call, found.record(place))
    guard_blob(call, blob, now)


def _named_past(call: Call[Any]) -> Past | None:
    """Return the snapshot or version that the request names. The version may be the current one."""
    target = call.target
    if target.version is not None:
        return Past(target.version, True)
    return None if target.snapshot is None else Past(target.snapshot)


def _named_ref(call: Call[Any], past: Past | None) -> Ref:
    """Return the key of the blob, snapshot or previous version that the request names."""
    partition = keys.blob(generation_of(call), call.target.blob)
    return ref_of((partition, keys.HEAD_KEY if past is None else keys.past(past)))


async def change_blob(
    services: Services, call: Call[Any], decide: BlobDecision[T], further: Reads | None = None
) -> T:
    """Decide on one blob at the serial point and commit durably.

    Arguments:
        decide: pure: (state, change) -> result; it collects the writes in `change`.
        further: what `decide` reads in `state.found`, and guards.

    Raises: StorageError as guard_blob and the decision do; the engine's errors.
    """
    call = call.with_pure_authorization()
    account, past = call.target.account, _named_past(call)
    named_ref = _named_ref(call, past)
    partition, blob = named_ref.partition, blob_records.BLOB
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
        upload=reads.add(ref_of((partition, keys.UPLOAD_KEY)), blob_records.UPLOAD),
        named=None if past is None else (past, reads.add(named_ref, blob)),
    )
    if decision.switches.versioning:
        decision = decision.with_body()
    while True:
        try:
            result, has_work = await services.commit(decision)
            break
        except _BodyRecordsNeeded:
            decision = decision.with_body()
        except DeletionUnderWay:
            await _stop_deletion(services, call)
    if has_work:
        services.work.set()
    return result


async def _stop_deletion(services: Services, call: Call[Any]) -> None:
    """Make a deletion of the container that is under way check for blobs again.

    Raises: StorageError ContainerNotFound when the deletion has been committed.
    """
    reads = Reads()
    place = reads.add(place_ref(call), records.CONTAINER)
    partition, purpose = place.ref.partition, call.rule.purpose
    await services.commit(_StopDeletion(partition, reads.refs, purpose, call, place))


class _StopDeletion(Decision[None], frozen=True):
    """Remove the mark that a deletion has left on the container."""

    call: Call[Any]
    place: ReadOne[ContainerRecord]

    def decide(self, found: Found, stamp: int) -> Commit[None]:
        """See Decision.decide. Raises: StorageError ContainerNotFound."""
        container = place_in(self.call, found, self.place)
        unmarked = msgspec.structs.replace(container, deleting=0)
        write = Write(self.place.ref.key, records.CONTAINER.encode(unmarked))
        return Commit(None, (Step(self.partition, (write,)),))


@lru_cache(_PROPERTIES_REMEMBERED)
def _retention(properties: Record | None) -> tuple[int, bool]:
    """Return the days for which the account keeps a displaced state, and whether it permits
    permanent deletion."""
    found = records.PROPERTIES.of(properties)
    policy = None if found is None else found.delete_retention
    if policy is None or not policy.enabled:
        return 0, policy is not None and bool(policy.allow_permanent_delete)
    return policy.days or 0, bool(policy.allow_permanent_delete)


def split_head(head_record: BlobRecord | None) -> tuple[BlobRecord | None, BlobRecord | None]:
    """Split the record at the head's key into (head, soft-deleted head): one or both are None."""
    if head_record is None or head_record.vacant:
        return None, None
    return (head_record, None) if head_record.deletion is None else (None, head_record)


class _CallerDecision(Decision[tuple[T, bool]], Generic[T], frozen=True):
    """A decision on one blob on behalf of a caller, who is authorized first.

    Arguments:
        change: the decision on the blob's state.
        switches: the account's switches.
        named: the snapshot or version that is named; None = it is the head.
        body: the records of the head's body; None = they are not read.
    """

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
        """Return the same decision, which also reads the records of the head's body."""
        reads = Reads(self.reads)
        body = _add_body(reads, self.partition, None)
        return msgspec.structs.replace(self, reads=reads.refs, body=body)

    def decide(self, found: Found, stamp: int) -> Commit[tuple[T, bool]]:
        """Return the commit. Its result pairs the decision's result with whether work is due at
        once."""
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
        """Return the state that the request names, and which snapshot or previous version that
        is."""
        if self.named is None:
            return head, None
        past, read = self.named
        if past.is_version and head is not None and head.version == past.ticks:
            return head, None  # the current one
        if self.call.rule.existence is Existence.KEPT:
            return found[read], past
        return of_blob(found, read, stamp)[0], past
