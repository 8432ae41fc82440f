"""The way to read a committed blob: load what the request names, guard it, and wait for it if the
request asks for that."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Sequence
from typing import Any

import msgspec

from strongroom.auth.authorize import NO_OVERRIDES, Overrides
from strongroom.engines.base import Partition, Record, ref_of
from strongroom.errors import blob as blob_errors
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.semantics.core import lease as leases
from strongroom.services.blob.decisions.guard import add_body, guard_blob, named_past, named_ref
from strongroom.services.blob.decisions.timed_reads import of_blob, read_with_time, version_among
from strongroom.services.core.calls import Call
from strongroom.services.core.decisions import Found, ReadAll, Reads
from strongroom.services.core.places import check_place, generation_of, place_ref
from strongroom.services.core.runner import Services
from strongroom.services.core.waiting import MustWait
from strongroom.store.blob import blob_records
from strongroom.store.blob.blob_records import BlobRecord
from strongroom.store.core import keys, records
from strongroom.store.core.keys import Past

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
        """Empty if they were not read."""
        return () if self.body is None else self.found.records(self.body)


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
    past = named_past(call)
    # The container was checked just before, within this same request.
    named = reads.add(named_ref(call, past), blob_records.BLOB)
    partition = named.ref.partition
    body = add_body(reads, partition, past) if with_body_records else None
    found, blob, now = await read_with_time(services, of_blob, reads, named)
    guard_blob(call, blob, now)
    assert blob is not None
    overrides = call.caller.grant.overrides
    return BlobView(blob, now, partition, found, body=body, past=past, overrides=overrides)


async def _view_version(
    services: Services, call: Call[Any], version: int, reads: Reads, with_body_records: bool
) -> BlobView:
    """Return the view of the version with this id, be it the current or a previous one."""
    partition, past = keys.blob(generation_of(call), call.target.blob), Past(version, True)
    head = reads.add(ref_of((partition, keys.HEAD_KEY)), blob_records.BLOB)
    previous = reads.add(ref_of((partition, keys.past(past))), blob_records.BLOB)
    head_body = add_body(reads, partition, None) if with_body_records else None
    own_body = add_body(reads, partition, past) if with_body_records else None
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
        self._past = named_past(call)
        self._reads = reads
        self._place = reads.add(place_ref(call), records.CONTAINER)
        self._named = reads.add(named_ref(call, self._past), blob_records.BLOB)
        self._partition = self._named.ref.partition
        self._body = add_body(reads, self._partition, self._past) if with_body_records else None
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
    """Refuse early, on committed state, what the serial point would refuse too, before a large body
    is read."""
    reads = Reads()
    place = reads.add(place_ref(call), records.CONTAINER)
    named = reads.add(named_ref(call, named_past(call)), blob_records.BLOB)
    found, blob, now = await read_with_time(services, of_blob, reads, named)
    check_place(call, found.record(place))
    guard_blob(call, blob, now)
