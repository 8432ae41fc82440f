"""Create, read, change and delete a container: its properties, metadata and access control list.

Lives here: the operations on a container's own record but for its lease (leasing.py). Must not live
here: what lies in a container (its blobs hang under its generation), public access and stored
policies as rules (auth/). Source: "Operations on containers" of the REST reference; reference
section 12.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from strongroom import blob_errors
from strongroom.engines.base import Commit, Record, Step, Write
from strongroom.errors import StorageError
from strongroom.services.blob import access
from strongroom.services.core.calls import Call
from strongroom.services.core.decisions import Decision
from strongroom.services.core.runner import Services
from strongroom.store.core import keys, records
from strongroom.store.core.records import ContainerRecord, Job, JobKind
from strongroom.values import AccessPolicy, Metadata, PublicAccess


@dataclass(frozen=True, slots=True)
class CreateContainer:
    """Input of Create Container."""

    metadata: Metadata = ()
    public_access: PublicAccess = PublicAccess.NONE


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
    """A committed container; `now` is the store time at which its lease is to be judged."""

    record: ContainerRecord
    now: int


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
        created = ContainerRecord(stamp, stamp, stamp, given.metadata, given.public_access)
        write = Write(self.reads[0].key, records.CONTAINER.encode(created))
        return Commit(ContainerWritten(stamp, stamp), (Step(self.partition, (write,)),))


async def get_container(services: Services, call: Call[Any]) -> ContainerView:
    """Get Container Properties, Get Container Metadata, Get Container ACL.

    Raises: StorageError ContainerNotFound, the lease errors (412); 304 ConditionNotMet at the end
        of a wait.
    """
    container, now = await access.view_container(services, call)
    return ContainerView(container, now)


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

    Raises: StorageError ContainerNotFound, the lease errors (412), ConditionNotMet.
    """
    ref = keys.container(call.target.account, call.target.container)

    def decide(container: ContainerRecord, stamp: int) -> Commit[None]:
        job = keys.job(stamp, stamp, JobKind.SWEEP_CONTAINER)
        name = f"{call.target.account}/{call.target.container}"
        sweep = Job(JobKind.SWEEP_CONTAINER, container.generation, token=name)
        # The job first: cut off in between, it finds the container alive and does nothing.
        return Commit(
            None,
            (
                Step(job.partition, (Write(job.key, records.JOB.encode(sweep)),)),
                Step(ref.partition, (Write(ref.key, None),)),
            ),
        )

    await access.commit_container(services, call, decide)
    services.work.set()
