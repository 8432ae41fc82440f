"""Create, read, change, delete and restore a container: its properties, metadata and ACL.

Lives here: the operations on a container's own record, except its lease (leasing.py). Must not live
here: the contents of a container (its blobs belong to its generation), public access and stored
policies as rules (auth/). Source: "Operations on containers" of the REST reference; reference
section 12.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from strongroom.account_switches import ContainerProtection
from strongroom.engines.base import Commit, Step, Write
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
    change_container,
    commit_container,
    view_container,
)
from strongroom.services.core.calls import Call
from strongroom.services.core.decisions import Decision, Found, ReadOne, Reads
from strongroom.services.core.runner import Services
from strongroom.services.core.soft_deleted_places import (
    PlaceDeletion,
    RestorePlace,
    SoftDeleteKind,
    restore_place,
)
from strongroom.store.core import keys, records
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
    """Input of Create Container.

    `scope` is the default encryption scope, "" = the account's own. `denies_scopes`: its blobs can
    have no other.
    """

    metadata: Metadata = ()
    public_access: PublicAccess = PublicAccess.NONE
    scope: str = ""
    denies_scopes: bool = False


class SetContainerMetadata(msgspec.Struct, frozen=True):
    """Input of Set Container Metadata. It replaces all metadata of the container."""

    metadata: Metadata = ()


class SetContainerAcl(msgspec.Struct, frozen=True):
    """Input of Set Container ACL: all policies and the access level, which replace the present
    ones."""

    public_access: PublicAccess = PublicAccess.NONE
    policies: tuple[AccessPolicy, ...] = ()


class ContainerWritten(msgspec.Struct, frozen=True):
    """Result of a change: ETag and Last-Modified as stamps."""

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
    """Create Container. The commit's stamp becomes the container's generation.

    A deleted container of the same name has another generation. So its blobs are not visible, and
    writes in flight to it do not reach the new one.

    Raises: StorageError ContainerAlreadyExists.
    """
    ref, reads = keys.container(call.target.account, call.target.container), Reads()
    place = reads.add(ref, records.CONTAINER)
    return await services.commit(
        _Create(ref.partition, reads.refs, call.rule.purpose, place, call.input)
    )


class _Create(Decision[ContainerWritten], frozen=True):
    """Create Container."""

    place: ReadOne[ContainerRecord]
    given: CreateContainer

    def decide(self, found: Found, stamp: int) -> Commit[ContainerWritten]:
        """See Decision.decide. Raises: StorageError ContainerAlreadyExists."""
        if found.record(self.place) is not None:
            raise StorageError(blob_errors.CONTAINER_ALREADY_EXISTS)
        given = self.given
        created = ContainerRecord(
            stamp,
            stamp,
            stamp,
            given.metadata,
            given.public_access,
            scope=given.scope,
            denies_scopes=given.denies_scopes,
        )
        write = Write(self.place.ref.key, records.CONTAINER.encode(created))
        return Commit(ContainerWritten(stamp, stamp), (Step(self.partition, (write,)),))


async def get_container(services: Services, call: Call[Any]) -> ContainerView:
    """Get Container Properties, Get Container Metadata, Get Container ACL: return the container.

    Raises: StorageError ContainerNotFound, the lease errors (412); 304 ConditionNotMet at the end
        of a wait.
    """
    container, now = await view_container(services, call)
    switches = services.switches(call.target.account)
    protection = switches.containers.get(call.target.container)
    return ContainerView(container, now, switches.immutability, protection)


async def set_metadata(services: Services, call: Call[SetContainerMetadata]) -> ContainerWritten:
    """Set Container Metadata.

    Raises: StorageError ContainerNotFound, the lease errors (412), ConditionNotMet.
    """
    return await _modify(services, call, metadata=call.input.metadata)


async def set_acl(services: Services, call: Call[SetContainerAcl]) -> ContainerWritten:
    """Set Container ACL. It takes effect with its answer.

    Every later decision sees another version of the container's record, so its request is
    authorized again.

    Raises: StorageError ContainerNotFound, the lease errors (412), ConditionNotMet.
    """
    given = call.input
    return await _modify(services, call, public_access=given.public_access, policies=given.policies)


async def _modify(services: Services, call: Call[Any], **changes: Any) -> ContainerWritten:
    def decide(container: ContainerRecord, stamp: int) -> tuple[ContainerWritten, ContainerRecord]:
        # The lease stays as it is: unlike a blob's, an expired one is not cleared by a write.
        changed = msgspec.structs.replace(container, etag=stamp, modified=stamp, **changes)
        return ContainerWritten(stamp, stamp), changed

    return await change_container(services, call, decide)


async def delete_container(services: Services, call: Call[Any]) -> None:
    """Delete Container: remove its record, which hides all blobs; a job sweeps them.

    With a retention the record moves to a key beside it, and the job is due when the retention
    ends. A restore makes the job void, since the deleted record is no longer there.

    Raises: StorageError ContainerNotFound, the lease errors (412), ConditionNotMet;
        ContainerHasLegalHold; ContainerProtectedFromDeletion or ContainerImmutabilityPolicyLocked
        where blobs may be immutable and there is one.
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
    """Delete the container, which must have this mark.

    Raises: as delete_container; MarkLost, also when the container needs a mark by now.
    """
    is_held = has_hold(services, call)
    if mark is None and error_if_not_empty(services, call) is not None:
        raise MarkLost
    days = services.switches(call.target.account).container_retention_days
    deletion = PlaceDeletion(KEPT_CONTAINERS, call, days)

    def decide(container: ContainerRecord, stamp: int) -> Commit[None]:
        require_mark(container, mark)
        if is_held:
            raise StorageError(blob_errors.CONTAINER_HAS_LEGAL_HOLD)
        unleased = msgspec.structs.replace(container, lease=None, deleting=0)

        def kept(until: int) -> DeletedContainer:
            return DeletedContainer(unleased, stamp, until)

        return Commit(None, deletion.steps(container.generation, kept, stamp))

    await commit_container(services, call, decide)
    services.work.set()


async def restore_container(services: Services, call: Call[RestorePlace]) -> None:
    """Restore Container: restore it as it was when it was deleted, except for its lease.

    Raises: StorageError InvalidHeaderValue (another name than the container's), ContainerNotFound
        (no such deleted container, or its retention has ended), ContainerAlreadyExists.
    """
    await restore_place(services, call, KEPT_CONTAINERS)
