"""The ways to read committed blobs and containers (`view_*`) and to change them (`change_*`).

Lives here: the only ways to both: load what the request names, guard it, and let a pure decision
run at the engine's serial point. Must not live here: any one operation's behaviour, HTTP, SQL.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache
from typing import Any, Final, Generic, TypeVar

import msgspec

from strongroom import blob_errors, errors
from strongroom.account_switches import DEFAULT_SWITCHES, ContainerProtection, Switches
from strongroom.auth.authorize import NO_OVERRIDES, Overrides
from strongroom.auth.request import Service
from strongroom.engines.base import Commit, Key, Partition, Record, Ref, Step, Write, ref_of
from strongroom.errors import StorageError
from strongroom.semantics.core import lease as leases
from strongroom.services.blob.decisions.changes import BlobChange
from strongroom.services.blob.decisions.guard import guard_blob, guard_container, guard_scope
from strongroom.services.blob.decisions.rehydration import as_of
from strongroom.services.blob.decisions.timed_reads import (
    blob_at_0,
    blob_at_1,
    of_blob,
    of_container,
    read_with_time,
    version_among,
)
from strongroom.services.core.calls import Call, Existence
from strongroom.services.core.decisions import Decision
from strongroom.services.core.places import check_place, generation_of, place_ref
from strongroom.services.core.runner import Services
from strongroom.services.core.waiting import MustWait
from strongroom.store.blob import blob_records
from strongroom.store.blob.blob_records import BlobRecord, Upload
from strongroom.store.blob.bodies.kinds import read_with
from strongroom.store.core import keys, records
from strongroom.store.core.keys import Past
from strongroom.store.core.records import ContainerRecord

T = TypeVar("T")
R = TypeVar("R", BlobRecord, ContainerRecord)

# Each write needs the properties of its account, which seldom change.
_PROPERTIES_REMEMBERED: Final = 64
# The refusals that a later change may lift, for a client that asks to wait.
_WAITABLE = (errors.NOT_MODIFIED, blob_errors.BLOB_NOT_FOUND)


class BlobView(msgspec.Struct, frozen=True):
    """A blob's head, snapshot or version in one committed snapshot of its partition.

    `now` is store time if the record depends on time (it has a lease), else the record's own
    modification time. `extra` are the further records that the caller requested, in order. `past`
    says which snapshot or previous version it is; None = the head. `body_records` are the records
    of its body (`read_with`), if they were requested.
    """

    blob: BlobRecord
    now: int
    partition: Partition
    extra: tuple[Record | None, ...] = ()
    past: Past | None = None
    overrides: Overrides = NO_OVERRIDES
    body_records: tuple[Record | None, ...] = ()


class BlobState(msgspec.Struct, frozen=True):
    """A decision's view of a blob. `named` is the state that the request names; `past` says which
    snapshot or previous version that is, None = the head.

    `deleted_head` is the soft-deleted head; then there is no `head`. `retention_days` is how long a
    displaced state is kept (0 = not at all). `body_records` are the records of the head's body
    (`read_with`); None = not read. `switches` are the account's, and `place` is the container's
    record; background work has neither. `versions` counts the previous versions. `protection` is
    the container's, None = none. `permits_permanent`: a soft-deleted state may be deleted
    permanently.
    """

    head: BlobRecord | None
    named: BlobRecord | None
    upload: Upload | None
    extra: tuple[Record | None, ...]
    now: int
    head_version: int | None = None
    deleted_head: BlobRecord | None = None
    retention_days: int = 0
    body_records: tuple[Record | None, ...] | None = None
    past: Past | None = None
    switches: Switches = DEFAULT_SWITCHES
    versions: int = 0
    place: Record | None = None
    protection: ContainerProtection | None = None
    permits_permanent: bool = False

    @property
    def is_versioned(self) -> bool:
        """Return whether a write keeps the blob that it replaces as a previous version."""
        return self.switches.versioning

    def require_body_records(self) -> tuple[Record | None, ...]:
        """Return `body_records`. Raises: _BodyRecordsNeeded: the decision runs again with them."""
        if self.body_records is None:
            raise _BodyRecordsNeeded
        return self.body_records


class _BodyRecordsNeeded(Exception):
    """A decision needs `body_records`. Few decisions do, so they are read only on demand."""


class DeletionUnderWay(Exception):
    """A blob is to be protected while a deletion of its container checks for blobs."""


BlobDecision = Callable[[BlobState, BlobChange], T]
ContainerDecision = Callable[[ContainerRecord, int], tuple[T, ContainerRecord | None]]


def view_blob(
    services: Services,
    call: Call[Any],
    extra: Sequence[Key] = (),
    wait: bool = True,
    with_body_records: bool = False,
) -> Awaitable[BlobView]:
    """Return the committed blob that the request names, guarded. Wait when the request asks for it.

    Arguments:
        extra: further keys of the blob's partition, read in the same snapshot.
        wait: whether the operation supports `x-strongroom-wait`. A version is not waited for.
        with_body_records: whether the records of the body are read too.

    Raises: StorageError as guard_blob does.
    """
    if call.target.version is not None:
        return _view_version(services, call, call.target.version, extra, with_body_records)
    if with_body_records:
        extra = (*read_with(_named_past(call)), *extra)
    if not (wait and call.terms.wait_s):
        return _view_blob_now(services, call, extra, with_body_records)
    sight = _WaitingBlobRead(services, call, extra, with_body_records)
    return services.waiting.until_answered(call.terms.wait_s, sight.attempt, call.client)


async def _view_blob_now(
    services: Services, call: Call[Any], extra: Sequence[Key], with_body_records: bool
) -> BlobView:
    named_ref = _named_ref(call)
    # The container was checked just before, within this same request.
    refs = [named_ref, *[ref_of((named_ref.partition, key)) for key in extra]]
    (_, *rest), blob, now = await read_with_time(services, blob_at_0, refs)
    guard_blob(call, blob, now)
    assert blob is not None
    return _view(call, blob, now, named_ref.partition, rest, with_body_records)


def _view(
    call: Call[Any],
    blob: BlobRecord,
    now: int,
    partition: Partition,
    rest: Sequence[Record | None],
    with_body_records: bool,
) -> BlobView:
    """Return the view of a blob that was read. `rest` begins with the records of its body if
    `with_body_records`."""
    at = len(read_with(None)) if with_body_records else 0
    return BlobView(
        blob,
        now,
        partition,
        tuple(rest[at:]),
        past=_named_past(call),
        overrides=call.caller.grant.overrides,
        body_records=tuple(rest[:at]),
    )


async def _view_version(
    services: Services, call: Call[Any], version: int, extra: Sequence[Key], with_body_records: bool
) -> BlobView:
    """Return the view of the version with this id, be it the current or a previous one."""
    partition, past = keys.blob(generation_of(call), call.target.blob), Past(version, True)
    head_body, own_body = (read_with(None), read_with(past)) if with_body_records else ((), ())
    wanted = (keys.HEAD_KEY, keys.past(past), *head_body, *own_body, *extra)
    refs = [ref_of((partition, key)) for key in wanted]
    pick = functools.partial(version_among, version)
    found, blob, now = await read_with_time(services, pick, refs)
    guard_blob(call, blob, now)
    assert blob is not None
    is_current = blob_at_0(found, now)[0] == blob
    at = 2 if is_current else 2 + len(head_body)
    return BlobView(
        blob,
        now,
        partition,
        tuple(found[2 + 2 * len(head_body) :]),
        past=None if is_current else past,
        overrides=call.caller.grant.overrides,
        body_records=tuple(found[at : at + len(head_body)]),
    )


class _WaitingBlobRead:
    """The repeated reads of a blob by one waiting request."""

    def __init__(
        self, services: Services, call: Call[Any], extra: Sequence[Key], with_body_records: bool
    ) -> None:
        self._services = services
        self._call = call
        self._with_body_records = with_body_records
        self._named = _named_ref(call)
        refs = [ref_of((self._named.partition, key)) for key in extra]
        self._refs = [place_ref(call), self._named, *refs]
        self._was_there = False

    async def attempt(self) -> BlobView:
        """Return the blob as it is now. Raises: MustWait while the request must go on waiting."""
        call, partition = self._call, self._named.partition
        found, blob, now = await read_with_time(self._services, blob_at_1, self._refs, 1)
        place, named, *rest = found
        check_place(call, place)
        try:
            guard_blob(call, blob, now)
        except StorageError as error:
            gone = self._was_there and error.row is blob_errors.BLOB_NOT_FOUND
            if gone or error.row not in _WAITABLE:
                raise
            self._was_there = blob is not None
            watched = [(place_ref(call), place and place.version)]
            watched.append((self._named, named and named.version))
            until = None if blob is None else leases.next_timed_change(blob.lease, now)
            raise MustWait(error, watched, now, until) from None
        assert blob is not None
        return _view(call, blob, now, partition, rest, self._with_body_records)


async def check_blob(services: Services, call: Call[Any]) -> None:
    """Refuse early, on committed state, what the serial point would refuse too, before a large
    body is read. Raises: as guard_blob."""
    refs = [place_ref(call), _named_ref(call)]
    found, blob, now = await read_with_time(services, blob_at_1, refs, 1)
    check_place(call, found[0])
    guard_blob(call, blob, now)


def _named_past(call: Call[Any]) -> Past | None:
    """Return the snapshot or version that the request names. The version may be the current one."""
    target = call.target
    if target.version is not None:
        return Past(target.version, True)
    return None if target.snapshot is None else Past(target.snapshot)


def _named_ref(call: Call[Any]) -> Ref:
    """Return the key of the blob, snapshot or previous version that the request names."""
    partition, past = keys.blob(generation_of(call), call.target.blob), _named_past(call)
    return ref_of((partition, keys.HEAD_KEY if past is None else keys.past(past)))


async def change_blob(
    services: Services, call: Call[Any], decide: BlobDecision[T], extra: Sequence[Key] = ()
) -> T:
    """Decide on one blob at the serial point and commit durably.

    Arguments:
        decide: pure: (state, change) -> result; it collects the writes in `change`.
        extra: further keys of the partition that the decision needs and guards.

    Raises: StorageError as guard_blob and the decision do; the engine's errors.
    """
    call = call.with_pure_authorization()
    named_ref = _named_ref(call)
    partition = named_ref.partition
    refs = [place_ref(call), keys.service_properties(call.target.account, Service.BLOB.value)]
    refs += [ref_of((partition, key)) for key in (keys.HEAD_KEY, keys.UPLOAD_KEY, *extra)]
    past = _named_past(call)
    if past is not None:
        refs.append(named_ref)
    decision = _CallerDecision(
        partition,
        refs,
        call.rule.purpose,
        call=call,
        change=decide,
        extra=len(extra),
        past=past,
        switches=services.switches(call.target.account),
    )
    if decision.switches.versioning:
        decision = _with_body(decision)
    while True:
        try:
            result, has_work = await services.commit(decision)
            break
        except _BodyRecordsNeeded:
            decision = _with_body(decision)
        except DeletionUnderWay:
            await _stop_deletion(services, call)
    if has_work:
        services.work.set()
    return result


def _with_body(decision: _CallerDecision[T]) -> _CallerDecision[T]:
    """Return the same decision with the records of the head's body among its reads."""
    refs = list(decision.reads)
    body_refs = [ref_of((decision.partition, key)) for key in read_with(None)]
    refs[_FIRST_EXTRA:_FIRST_EXTRA] = body_refs
    return msgspec.structs.replace(decision, reads=refs, body_record_count=len(body_refs))


async def _stop_deletion(services: Services, call: Call[Any]) -> None:
    """Make a deletion of the container that is under way check for blobs again.

    Raises: StorageError ContainerNotFound when the deletion has been committed.
    """
    ref = place_ref(call)
    await services.commit(_StopDeletion(ref.partition, [ref], call.rule.purpose, call))


class _StopDeletion(Decision[None], frozen=True):
    """Remove the mark that a deletion has left on the container."""

    call: Call[Any]

    def run(self, found: Sequence[Record | None], stamp: int) -> Commit[None]:
        """See Decision.run. Raises: StorageError ContainerNotFound."""
        check_place(self.call, found[0])
        container = records.CONTAINER.of(found[0])
        assert container is not None
        unmarked = msgspec.structs.replace(container, deleting=0)
        write = Write(self.reads[0].key, records.CONTAINER.encode(unmarked))
        return Commit(None, (Step(self.partition, (write,)),))


# The positions of the reads of _CallerDecision.
_PROPERTIES: Final = 1
_HEAD: Final = 2
_FIRST_EXTRA: Final = 4


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
        extra: how many further records of the partition `change` needs.
        past: the snapshot or version that is named; its record is read last.
        switches: the account's switches.
        body_record_count: how many records of the head's body were read before the further ones.
    """

    call: Call[Any]
    change: BlobDecision[T]
    extra: int
    past: Past | None
    switches: Switches
    body_record_count: int = 0

    def run(self, found: Sequence[Record | None], stamp: int) -> Commit[tuple[T, bool]]:
        """Return the commit. Its result pairs the decision's result with whether work is due at
        once."""
        call = self.call
        check_place(call, found[0])
        record = found[_HEAD]
        head_record = blob_records.BLOB.of(record)
        head, deleted_head = split_head(head_record)
        if head is not None and head.rehydration is not None:
            head = as_of(head, stamp)
        named, past = head, self.past
        if past is not None:
            if past.is_version and head is not None and head.version == past.ticks:
                past = None  # the current one
            elif call.rule.existence is Existence.KEPT:
                named = blob_records.BLOB.of(found[-1])
            else:
                named = of_blob(found[-1], stamp)[0]
        guard_blob(call, named, stamp)
        if call.terms.scope is not None or call.rule.names_scope:
            guard_scope(call, named)
        upload = blob_records.UPLOAD.of(found[_HEAD + 1])
        target = call.target.blob
        change = BlobChange(self.partition, generation_of(call), target, stamp, head_record, upload)
        behind = _FIRST_EXTRA + self.body_record_count
        retention_days, permits_permanent = _retention(found[_PROPERTIES])
        state = BlobState(
            head,
            named,
            upload,
            tuple(found[behind : behind + self.extra]),
            stamp,
            None if record is None else record.version,
            deleted_head=deleted_head,
            retention_days=retention_days,
            body_records=tuple(found[_FIRST_EXTRA:behind]) if self.body_record_count else None,
            past=past,
            switches=self.switches,
            versions=0 if head_record is None else head_record.versions,
            place=found[0],
            protection=self.switches.containers.get(call.target.container),
            permits_permanent=permits_permanent,
        )
        result = self.change(state, change)
        steps = change.steps()
        return Commit((result, change.has_work), steps)


async def view_container(services: Services, call: Call[Any]) -> tuple[ContainerRecord, int]:
    """Return the committed container, guarded, with store time. Wait when the request asks for it.

    Raises: StorageError ContainerNotFound, lease and condition errors.
    """
    if not call.terms.wait_s:
        return await _view_container_now(services, call)
    return await services.waiting.until_answered(
        call.terms.wait_s, lambda: _view_container_now(services, call), call.client
    )


async def _view_container_now(services: Services, call: Call[Any]) -> tuple[ContainerRecord, int]:
    ref = keys.container(call.target.account, call.target.container)
    (found,), container, now = await read_with_time(services, of_container, [ref])
    check_place(call, found)
    assert container is not None and found is not None
    try:
        guard_container(call, container, now)
    except StorageError as error:
        if error.row is not errors.NOT_MODIFIED or not call.terms.wait_s:
            raise
        until = leases.next_timed_change(container.lease, now)
        raise MustWait(error, [(ref, found.version)], now, until) from None
    return container, now


async def change_container(services: Services, call: Call[Any], decide: ContainerDecision[T]) -> T:
    """Decide on a container's own record: (record, stamp) -> (result, new record or None).

    Raises: StorageError ContainerNotFound, lease and condition errors, the decision's own.
    """
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
    ref = keys.container(call.target.account, call.target.container)
    call = call.with_pure_authorization()
    return await services.commit(
        _OfContainer(ref.partition, [ref], call.rule.purpose, call, decide)
    )


class _OfContainer(Decision[T], Generic[T], frozen=True):
    """A decision on a container's own record on behalf of a caller, who is authorized first."""

    call: Call[Any]
    change: Callable[[ContainerRecord, int], Commit[T]]

    def run(self, found: Sequence[Record | None], stamp: int) -> Commit[T]:
        """See Decision.run."""
        check_place(self.call, found[0])
        container = records.CONTAINER.of(found[0])
        assert container is not None
        guard_container(self.call, container, stamp)
        return self.change(container, stamp)
