"""The runner: loads what an operation names, guards, decides, commits, waits.

Lives here: the only two ways in which a blob or a container is looked at (`view_*`, committed
state) or changed (`change_*`, a pure decision at the engine's serial point). Must not live here:
any one operation's behaviour, HTTP, SQL.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import msgspec

from strongroom import errors, limits
from strongroom.auth.authorize import NO_OVERRIDES, Overrides
from strongroom.auth.request import Service
from strongroom.clock import Clock
from strongroom.engines.base import Commit, Key, Record, Ref, Step, Store, Write, ref_of
from strongroom.errors import StorageError
from strongroom.semantics import lease as leases
from strongroom.services.calls import Asker, Call, Place
from strongroom.services.changes import BlobChange
from strongroom.services.claims import Claims
from strongroom.services.copy_sources import CopySources
from strongroom.services.expired_front import ExpiredFronts
from strongroom.services.guard import guard_blob, guard_container
from strongroom.services.places import PLACES, check_place, generation_of, place_ref
from strongroom.services.precedence import Precedence
from strongroom.services.waiting import NotYet, Waiting
from strongroom.store import keys, records
from strongroom.store.bodies import Readers
from strongroom.store.records import BlobRecord, Codec, ContainerRecord, Upload

T = TypeVar("T")
R = TypeVar("R", BlobRecord, ContainerRecord)

# What may turn out otherwise a moment later, when the client said that it wants to wait for that.
_WAITABLE = (errors.NOT_MODIFIED, errors.BLOB_NOT_FOUND)


class BlobView(msgspec.Struct, frozen=True):
    """A blob's head or snapshot in one committed snapshot of its partition.

    `now` is store time where the record depends on time (it has a lease), else the record's own
    modification. `extra` are the further records that were asked for, in order.
    """

    blob: BlobRecord
    now: int
    extra: tuple[Record | None, ...] = ()
    is_snapshot: bool = False
    overrides: Overrides = NO_OVERRIDES


class BlobState(msgspec.Struct, frozen=True):
    """What a decision on a blob sees. `named` is the head or the snapshot that the request
    names."""

    head: BlobRecord | None
    named: BlobRecord | None
    upload: Upload | None
    extra: tuple[Record | None, ...]
    now: int
    head_version: int | None = None


BlobDecision = Callable[[BlobState, BlobChange], T]
ContainerDecision = Callable[[ContainerRecord, int], tuple[T, ContainerRecord | None]]


class Services:
    """What every service function is handed: the store, time, who reads, who waits.

    Arguments:
        store: an engine that keeps both contracts.
        clock: for randomness (lease and copy ids); store time comes from the store.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store = store
        self.clock = clock
        self.readers = Readers()
        self.copies = CopySources()
        self.work = asyncio.Event()
        self.listings = asyncio.Semaphore(limits.LISTINGS_AT_ONCE_MAX)
        self.block_lists = Precedence()
        self.claims = Claims()
        self.expired_fronts = ExpiredFronts()
        self.waiting = Waiting(store)

    async def place(self, service: Service, account: str, name: str) -> Place | None:
        """The container, queue or table as it is now, or None; nothing has a name that it may not
        have."""
        kind = PLACES[service]
        if not kind.is_name(name):
            return None
        (record,) = await self.store.read([kind.ref(account, name)])
        return None if record is None else kind.read(record)

    async def await_place(
        self, service: Service, account: str, name: str, wait_s: int, asker: Asker | None = None
    ) -> Place | None:
        """Like `place`, but waits up to `wait_s` for one that does not exist."""
        kind = PLACES[service]
        if not kind.is_name(name):
            return None
        ref = kind.ref(account, name)

        async def attempt() -> Place:
            place = await self.place(service, account, name)
            if place is None:
                raise NotYet(StorageError(kind.missing), [(ref, None)])
            return place

        try:
            return await self.waiting.until_answered(wait_s, attempt, asker)
        except StorageError:
            return None

    def view_blob(
        self, call: Call[Any], extra: Sequence[Key] = (), wait: bool = True
    ) -> Awaitable[BlobView]:
        """The committed blob that the request names, guarded; waits when the request asks for it.

        Arguments:
            extra: further keys of the blob's partition, read in the same snapshot.
            wait: whether the operation supports `x-strongroom-wait`.

        Raises: StorageError as guard_blob does.
        """
        if not (wait and call.wait_s):
            return self._view_blob_now(call, extra, None)
        seen = [False]
        return self.waiting.until_answered(
            call.wait_s, lambda: self._view_blob_now(call, extra, seen), call.asker
        )

    async def _view_blob_now(
        self, call: Call[Any], extra: Sequence[Key], seen: list[bool] | None
    ) -> BlobView:
        named_ref = self._named_ref(call)
        partition = named_ref.partition
        refs = [named_ref, *[ref_of((partition, key)) for key in extra]]
        place_record: Record | None = None
        if seen is None:
            # The container was looked at a moment ago, within this same request.
            (named, *rest), blob, now = await self._look(records.BLOB, refs)
        else:
            found, blob, now = await self._look(records.BLOB, [place_ref(call), *refs], 1)
            place_record, named, *rest = found
            check_place(call, place_record)
        try:
            guard_blob(call, blob, now)
        except StorageError as error:
            gone = seen is not None and seen[0] and error.row is errors.BLOB_NOT_FOUND
            if seen is None or gone or error.row not in _WAITABLE:
                raise
            seen[0] = blob is not None
            watched = [(place_ref(call), place_record and place_record.version)]
            watched.append((named_ref, named and named.version))
            until = None if blob is None else leases.next_change(blob.lease, now)
            raise NotYet(error, watched, now, until) from None
        assert blob is not None
        snapshot = call.snapshot is not None
        return BlobView(blob, now, tuple(rest), snapshot, call.overrides)

    async def check_blob(self, call: Call[Any]) -> None:
        """Refuse early, on committed state, what the serial point would refuse too: before a large
        body is read. Raises: as guard_blob."""
        refs = [place_ref(call), self._named_ref(call)]
        found, blob, now = await self._look(records.BLOB, refs, 1)
        check_place(call, found[0])
        guard_blob(call, blob, now)

    async def _look(
        self, table: Codec[R], refs: Sequence[Ref], at: int = 0
    ) -> tuple[list[Record | None], R | None, int]:
        """Records, the one at index `at` decoded, and a time at which it was as it was read.

        That is store time where it depends on time (it has a lease), else its own modification.
        """
        found = await self.store.read(refs)
        record = table.of(found[at])
        if record is None or record.lease is None:
            return found, record, 0 if record is None else record.modified
        # Telling the time may take a while, in which a lease may be renewed: time first, then the
        # record, which cannot be judged at a time that it has not lived to see.
        now = await self.store.now()
        found = await self.store.read(refs)
        again = found[at]
        return found, table.of(again), now if again is None else max(now, again.version)

    def _named_ref(self, call: Call[Any]) -> Ref:
        """The blob, or the snapshot, that the request names."""
        partition = keys.blob(generation_of(call), call.blob)
        key = keys.HEAD_KEY if call.snapshot is None else keys.snapshot(call.snapshot)
        return ref_of((partition, key))

    async def change_blob(
        self, call: Call[Any], decide: BlobDecision[T], extra: Sequence[Key] = ()
    ) -> T:
        """Decide on one blob at the serial point and commit durably.

        Arguments:
            decide: pure: (state, change) -> result; it tells `change` what to write.
            extra: further keys of the partition that the decision needs and guards.

        Raises: StorageError as guard_blob and the decision do; the engine's errors.
        """
        named_ref = self._named_ref(call)
        partition = named_ref.partition
        refs = [place_ref(call), ref_of((partition, keys.HEAD_KEY))]
        refs += [ref_of((partition, key)) for key in (keys.UPLOAD_KEY, *extra)]
        if call.snapshot is not None:
            refs.append(named_ref)

        def at_serial_point(found: Sequence[Record | None], stamp: int) -> Commit[T]:
            check_place(call, found[0])
            head = records.BLOB.of(found[1])
            named = head if call.snapshot is None else records.BLOB.of(found[-1])
            guard_blob(call, named, stamp)
            upload = records.UPLOAD.of(found[2])
            generation = generation_of(call)
            change = BlobChange(partition, generation, call.blob, stamp, head, upload)
            rest = tuple(found[3 : 3 + len(extra)])
            version = None if found[1] is None else found[1].version
            result = decide(BlobState(head, named, upload, rest, stamp, version), change)
            last[0] = change.has_work
            return Commit(result, change.steps())

        last = [False]
        result = await self.store.update(partition, refs, at_serial_point, call.rule.purpose)
        if last[0]:
            self.work.set()
        return result

    async def view_container(self, call: Call[Any]) -> tuple[ContainerRecord, int]:
        """The committed container, guarded, with store time; waits when the request asks for it.

        Raises: StorageError ContainerNotFound, lease and condition errors.
        """
        if not call.wait_s:
            return await self._view_container_now(call)
        return await self.waiting.until_answered(
            call.wait_s, lambda: self._view_container_now(call), call.asker
        )

    async def _view_container_now(self, call: Call[Any]) -> tuple[ContainerRecord, int]:
        ref = keys.container(call.account, call.container)
        (found,), container, now = await self._look(records.CONTAINER, [ref])
        check_place(call, found)
        assert container is not None and found is not None
        try:
            guard_container(call, container, now)
        except StorageError as error:
            if error.row is not errors.NOT_MODIFIED or not call.wait_s:
                raise
            until = leases.next_change(container.lease, now)
            raise NotYet(error, [(ref, found.version)], now, until) from None
        return container, now

    async def change_container(self, call: Call[Any], decide: ContainerDecision[T]) -> T:
        """Decide on a container's own record: (record, stamp) -> (result, new record or None).

        Raises: StorageError ContainerNotFound, lease and condition errors, the decision's own.
        """
        ref = keys.container(call.account, call.container)

        def committed(container: ContainerRecord, stamp: int) -> Commit[T]:
            result, changed = decide(container, stamp)
            if changed is None:
                return Commit(result)
            write = Write(ref.key, records.CONTAINER.encode(changed))
            return Commit(result, (Step(ref.partition, (write,)),))

        return await self.commit_container(call, committed)

    async def commit_container(
        self, call: Call[Any], decide: Callable[[ContainerRecord, int], Commit[T]]
    ) -> T:
        """Like `change_container`, for a decision that names the commit's steps itself."""
        ref = keys.container(call.account, call.container)

        def at_serial_point(found: Sequence[Record | None], stamp: int) -> Commit[T]:
            check_place(call, found[0])
            container = records.CONTAINER.of(found[0])
            assert container is not None
            guard_container(call, container, stamp)
            return decide(container, stamp)

        return await self.store.update(ref.partition, [ref], at_serial_point, call.rule.purpose)

    async def check_place(self, call: Call[Any]) -> None:
        """The place is still there and still allows the request: for what looks at more than one
        record. Raises: as check_place of places.py."""
        (found,) = await self.store.read([place_ref(call)])
        check_place(call, found)
