"""Create, read, change, delete and restore a container: its properties, metadata and ACL.

Lives here: the operations on a container's own record, except its lease (leasing.py). Source:
"Operations on containers" of the REST reference; reference section 12.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import msgspec

from strongroom.account_switches import ContainerProtection
from strongroom.engines.base import Commit, Ref
from strongroom.errors import blob as blob_errors
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.services.blob.containers.deleting import (
    MarkLost,
    error_if_not_empty,
    has_hold,
    require_empty,
    require_mark,
)
from strongroom.services.blob.decisions.containers import (
    GuardedRule,
    change_container,
    view_container,
)
from strongroom.services.core.calls import Call
from strongroom.services.core.place_records import SetPlaceMetadata, commit_place, create_place
from strongroom.services.core.places import place_ref
from strongroom.services.core.runner import Services
from strongroom.services.core.soft_deleted_places import (
    PlaceDeletion,
    RestorePlace,
    SoftDeleteKind,
    restore_place,
)
from strongroom.store.core import records
from strongroom.store.core.records import ContainerRecord, DeletedContainer, JobKind
from strongroom.values import AccessPolicy, Metadata, PublicAccess

DELETED_NAME_HEADER: Final = "x-ms-deleted-container-name"
DELETED_VERSION_HEADER: Final = "x-ms-deleted-container-version"
KEPT_CONTAINERS: Final = SoftDeleteKind(
    noun="container",
    place=records.CONTAINER,
    kept=records.DELETED_CONTAINER,
    sweep_job=JobKind.SWEEP_CONTAINER,
    expiry_job=JobKind.EXPIRE_CONTAINER,
    missing=errors.CONTAINER_NOT_FOUND,
    exists=blob_errors.CONTAINER_ALREADY_EXISTS,
    name_header=DELETED_NAME_HEADER,
)


class CreateContainer(msgspec.Struct, frozen=True):
    """`scope` is the default encryption scope, "" = the account's own. `denies_scopes`: its blobs
    can have no other."""

    metadata: Metadata = ()
    public_access: PublicAccess = PublicAccess.NONE
    scope: str = ""
    denies_scopes: bool = False

    def record(self, stamp: int) -> ContainerRecord:
        return ContainerRecord(
            stamp,
            stamp,
            stamp,
            self.metadata,
            self.public_access,
            scope=self.scope,
            denies_scopes=self.denies_scopes,
        )


class SetContainerAcl(msgspec.Struct, frozen=True):
    public_access: PublicAccess = PublicAccess.NONE
    policies: tuple[AccessPolicy, ...] = ()


class ContainerWritten(msgspec.Struct, frozen=True):
    """ETag and Last-Modified as stamps."""

    etag: int
    modified: int


class ContainerView(msgspec.Struct, frozen=True):
    """A committed container; `now` is the store time at which its lease is to be judged.

    `immutability`: its blobs may have immutability policies. `protection` is the container's own,
    for all its blobs.
    """

    record: ContainerRecord
    now: int
    immutability: bool = False
    protection: ContainerProtection | None = None


async def create_container(services: Services, call: Call[CreateContainer]) -> ContainerWritten:
    stamp = await create_place(services, call, place_ref(call), KEPT_CONTAINERS, call.input)
    return ContainerWritten(stamp, stamp)


async def get_container(services: Services, call: Call[Any]) -> ContainerView:
    """Refused with 304 ConditionNotMet at the end of a wait."""
    container, now = await view_container(services, call)
    switches = services.switches(call.target.account)
    protection = switches.containers.get(call.target.container)
    return ContainerView(container, now, switches.immutability, protection)


async def set_metadata(services: Services, call: Call[SetPlaceMetadata]) -> ContainerWritten:
    return await _modify(services, call, metadata=call.input.metadata)


async def set_acl(services: Services, call: Call[SetContainerAcl]) -> ContainerWritten:
    """It takes effect with its answer; see commit_place."""
    request = call.input
    return await _modify(
        services, call, public_access=request.public_access, policies=request.policies
    )


async def _modify(services: Services, call: Call[Any], **changes: Any) -> ContainerWritten:
    def decide(container: ContainerRecord, stamp: int) -> tuple[ContainerWritten, ContainerRecord]:
        # The lease stays as it is: unlike a blob's, an expired one is not cleared by a write.
        changed = msgspec.structs.replace(container, etag=stamp, modified=stamp, **changes)
        return ContainerWritten(stamp, stamp), changed

    return await change_container(services, call, decide)


async def delete_container(services: Services, call: Call[Any]) -> None:
    """Remove the container's record, which hides all blobs; a job sweeps them.

    With a retention the record moves to a key beside it, and the job is due when the retention
    ends. A restore makes the job void, since the deleted record is no longer there.
    """
    while True:
        not_empty_error = error_if_not_empty(services, call)
        mark = (
            None
            if not_empty_error is None
            else await require_empty(services, call, not_empty_error)
        )
        try:
            await _delete(services, call, mark)
            return
        except MarkLost:
            continue


async def _delete(services: Services, call: Call[Any], mark: int | None) -> None:
    """Raises: MarkLost, also when the container needs a mark by now."""
    is_held = has_hold(services, call)
    if mark is None and error_if_not_empty(services, call) is not None:
        raise MarkLost
    days = services.switches(call.target.account).container_retention_days
    rule = _Deletion(mark, is_held, PlaceDeletion(KEPT_CONTAINERS, call, days))
    await commit_place(services, call, records.CONTAINER, rule)
    services.work.set()


class _Deletion(GuardedRule[None], frozen=True):
    """`mark`: what the look for blobs has left on the container; None = none was needed."""

    mark: int | None
    is_held: bool
    deletion: PlaceDeletion

    def apply(self, call: Call[Any], ref: Ref, record: ContainerRecord, stamp: int) -> Commit[None]:
        require_mark(record, self.mark)
        if self.is_held:
            raise StorageError(blob_errors.CONTAINER_HAS_LEGAL_HOLD)
        unleased = msgspec.structs.replace(record, lease=None, deleting=0)
        kept = partial(DeletedContainer, unleased, stamp)
        return Commit(None, self.deletion.steps(record.generation, kept, stamp))


async def restore_container(services: Services, call: Call[RestorePlace]) -> None:
    await restore_place(services, call, KEPT_CONTAINERS)
