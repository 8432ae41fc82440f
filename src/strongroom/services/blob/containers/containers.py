"""Create, read, change, delete and restore a container: its properties, metadata and ACL.

Lives here: the operations on a container's own record but for its lease (leasing.py). Must not live
here: what lies in a container (its blobs hang under its generation), public access and stored
policies as rules (auth/). Source: "Operations on containers" of the REST reference; reference
section 12.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from strongroom import blob_errors, errors
from strongroom.account_switches import ContainerProtection
from strongroom.engines.base import Commit, Record, Step, Write
from strongroom.errors import StorageError
from strongroom.semantics.core.retention import retention_end
from strongroom.services.blob import access
from strongroom.services.blob.containers.deleting import (
    Disturbed,
    require_empty,
    require_mark,
    row_if_filled,
)
from strongroom.services.core.calls import Call
from strongroom.services.core.decisions import Decision
from strongroom.services.core.runner import Services
from strongroom.store.core import keys, records
from strongroom.store.core.records import ContainerRecord, DeletedContainer, Job, JobKind
from strongroom.values import AccessPolicy, Metadata, PublicAccess

DELETED_NAME_HEADER: Final = "x-ms-deleted-container-name"
DELETED_VERSION_HEADER: Final = "x-ms-deleted-container-version"
_VERSION: Final = re.compile(r"[0-9A-Fa-f]{16}")


@dataclass(frozen=True, slots=True)
class CreateContainer:
    """Input of Create Container. `scope` is the default encryption scope, "" = the account's own;
    `denies_scopes`: its blobs can have no other."""

    metadata: Metadata = ()
    public_access: PublicAccess = PublicAccess.NONE
    scope: str = ""
    denies_scopes: bool = False


@dataclass(frozen=True, slots=True)
class SetContainerMetadata:
    """Input of Set Container Metadata: all pairs, those not given are removed."""

    metadata: Metadata = ()


@dataclass(frozen=True, slots=True)
class SetContainerAcl:
    """Input of Set Container ACL: all policies and the access level, as they will be."""

    public_access: PublicAccess = PublicAccess.NONE
    policies: tuple[AccessPolicy, ...] = ()


@dataclass(frozen=True, slots=True)
class ContainerWritten:
    """Result of a change: ETag and Last-Modified as stamps."""

    etag: int
    modified: int


@dataclass(frozen=True, slots=True)
class ContainerView:
    """A committed container; `now` is the store time at which its lease is to be judged.
    `immutability`: its blobs may be given immutability policies. `protection` protects them all."""

    record: ContainerRecord
    now: int
    immutability: bool = False
    protection: ContainerProtection | None = None


async def create_container(services: Services, call: Call[CreateContainer]) -> ContainerWritten:
    """Create Container. The commit's stamp is its generation: one of the same name that was deleted
    before has another, so its blobs are not seen and writes to them in flight do not arrive here.

    Raises: StorageError ContainerAlreadyExists.
    """
    ref = keys.container(call.target.account, call.target.container)
    return await services.commit(_Create(ref.partition, [ref], call.rule.purpose, call.input))


class _Create(Decision[ContainerWritten], frozen=True):
    """Create Container."""

    given: CreateContainer

    def decide(self, found: Sequence[Record | None], stamp: int) -> Commit[ContainerWritten]:
        """See Decision.decide. Raises: StorageError ContainerAlreadyExists."""
        if found[0] is not None:
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
        write = Write(self.reads[0].key, records.CONTAINER.encode(created))
        return Commit(ContainerWritten(stamp, stamp), (Step(self.partition, (write,)),))


async def get_container(services: Services, call: Call[Any]) -> ContainerView:
    """Get Container Properties, Get Container Metadata, Get Container ACL.

    Raises: StorageError ContainerNotFound, the lease errors (412); 304 ConditionNotMet at the end
        of a wait.
    """
    container, now = await access.view_container(services, call)
    switches = services.switches(call.target.account)
    protection = switches.containers.get(call.target.container)
    return ContainerView(container, now, switches.immutability, protection)


async def set_metadata(services: Services, call: Call[SetContainerMetadata]) -> ContainerWritten:
    """Set Container Metadata.

    Raises: StorageError ContainerNotFound, the lease errors (412), ConditionNotMet.
    """
    return await _modify(services, call, metadata=call.input.metadata)


async def set_acl(services: Services, call: Call[SetContainerAcl]) -> ContainerWritten:
    """Set Container ACL. In effect with its answer: whatever decides later sees another version of
    the container's record and is authorized again.

    Raises: StorageError ContainerNotFound, the lease errors (412), ConditionNotMet.
    """
    given = call.input
    return await _modify(services, call, public_access=given.public_access, policies=given.policies)


async def _modify(services: Services, call: Call[Any], **changes: Any) -> ContainerWritten:
    def decide(container: ContainerRecord, stamp: int) -> tuple[ContainerWritten, ContainerRecord]:
        # The lease stays as it is: unlike a blob's, an expired one is not cleared by a write.
        changed = msgspec.structs.replace(container, etag=stamp, modified=stamp, **changes)
        return ContainerWritten(stamp, stamp), changed

    return await access.change_container(services, call, decide)


async def delete_container(services: Services, call: Call[Any]) -> None:
    """Delete Container: one record goes, and all blobs with it; a job sweeps what they held.

    With a retention the record moves to a place beside it, and the job is due when that ends. A
    restored container makes the job void, since its deletion is no longer on record.

    Raises: StorageError ContainerNotFound, the lease errors (412), ConditionNotMet;
        ContainerHasLegalHold; ContainerProtectedFromDeletion or ContainerImmutabilityPolicyLocked
        where blobs may be immutable and there is one.
    """
    filled = row_if_filled(services, call)
    while True:
        mark = None if filled is None else await require_empty(services, call, filled)
        try:
            await _delete(services, call, mark)
            return
        except Disturbed:
            continue


async def _delete(services: Services, call: Call[Any], mark: int | None) -> None:
    """Delete the container, which must have this mark. Raises: as delete_container; Disturbed."""
    account, name = call.target.account, call.target.container
    ref = keys.container(account, name)
    switches = services.switches(account)
    days, protection = switches.container_retention_days, switches.containers.get(name)

    def decide(container: ContainerRecord, stamp: int) -> Commit[None]:
        require_mark(container, mark)
        if protection is not None and protection.holds:
            raise StorageError(blob_errors.CONTAINER_HAS_LEGAL_HOLD)
        kind = JobKind.EXPIRE_CONTAINER if days else JobKind.SWEEP_CONTAINER
        until = retention_end(stamp, days)
        job = keys.job(until, stamp, kind)
        sweep = Job(kind, container.generation, token=f"{account}/{name}")
        writes = [Write(ref.key, None)]
        if days:
            unleased = msgspec.structs.replace(container, lease=None, deleting=0)
            kept = records.DELETED_CONTAINER.encode(DeletedContainer(unleased, stamp, until))
            key = keys.deleted_container(account, name, container.generation).key
            writes.append(Write(key, kept))
        # The job first: cut off in between, it finds the container alive and does nothing.
        return Commit(
            None,
            (
                Step(job.partition, (Write(job.key, records.JOB.encode(sweep)),)),
                Step(ref.partition, tuple(writes)),
            ),
        )

    await access.commit_container(services, call, decide)
    services.work.set()


@dataclass(frozen=True, slots=True)
class RestoreContainer:
    """Input of Restore Container: the deleted container's name, and its version as listed."""

    name: str
    version: str


async def restore_container(services: Services, call: Call[RestoreContainer]) -> None:
    """Restore Container: the container is as it was when it was deleted, but for its lease.

    Raises: StorageError InvalidHeaderValue (another name than the container's), ContainerNotFound
        (no such deleted container, or its retention has ended), ContainerAlreadyExists.
    """
    account, name, given = call.target.account, call.target.container, call.input
    if given.name != name:
        reason = "A container can be restored under its own name only."
        raise errors.invalid_header(DELETED_NAME_HEADER, given.name, reason)
    generation = version_generation(given.version)
    if generation is None:
        raise StorageError(blob_errors.CONTAINER_NOT_FOUND)
    ref = keys.container(account, name)
    kept = keys.deleted_container(account, name, generation)
    await services.commit(_Restore(ref.partition, [ref, kept], call.rule.purpose))


class _Restore(Decision[None], frozen=True):
    """Restore Container."""

    def decide(self, found: Sequence[Record | None], stamp: int) -> Commit[None]:
        """See Decision.decide. Raises: StorageError ContainerNotFound, ContainerAlreadyExists."""
        kept = records.DELETED_CONTAINER.of(found[1])
        if kept is None or kept.until <= stamp:
            raise StorageError(blob_errors.CONTAINER_NOT_FOUND)
        if found[0] is not None:
            raise StorageError(blob_errors.CONTAINER_ALREADY_EXISTS)
        back = Write(self.reads[0].key, records.CONTAINER.encode(kept.container))
        return Commit(None, (Step(self.partition, (back, Write(self.reads[1].key, None))),))


def generation_version(generation: int) -> str:
    """The version of a deleted container as it is listed."""
    return f"{generation:016X}"


def version_generation(version: str) -> int | None:
    """The generation of a listed version; None for a text that is none."""
    return int(version, 16) if _VERSION.fullmatch(version) else None
