"""The deletion of a container whose blobs may be immutable: it must be empty.

Lives here: the mark that a deletion sets while it checks for blobs, and that check. Source:
"Version-level WORM policies for immutable blob data", "Deletion"; "Container-level WORM policies
for immutable blob data".

A commit changes one partition, and each blob is one. So the deletion marks the container, checks
for blobs, and deletes the container only if its mark is still there. A request that protects a blob
removes the mark first (services/blob/states/immutability.py). A mark that a crash left behind has
no effect.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from strongroom.engines.base import Position
from strongroom.errors import blob as blob_errors
from strongroom.errors.core import ErrorCode, StorageError
from strongroom.services.blob.decisions.containers import change_container
from strongroom.services.core.calls import Call
from strongroom.services.core.runner import Services
from strongroom.store.blob import blob_records
from strongroom.store.core import keys
from strongroom.store.core.records import ContainerRecord

_PAGE_RECORDS = 200


class MarkLost(Exception):
    """A blob was protected since the check began."""


def has_hold(services: Services, call: Call[Any]) -> bool:
    """Return whether the container has a legal hold, which refuses every deletion."""
    switches = services.switches(call.target.account)
    protection = switches.containers.get(call.target.container)
    return protection is not None and bool(protection.holds)


def error_if_not_empty(services: Services, call: Call[Any]) -> ErrorCode | None:
    """Return the error of a deletion while the container has blobs.

    None = the deletion removes the blobs too, or is refused for another reason.
    """
    switches = services.switches(call.target.account)
    protection = switches.containers.get(call.target.container)
    if has_hold(services, call):
        return None
    if protection is not None and protection.locked:
        return blob_errors.CONTAINER_IMMUTABILITY_POLICY_LOCKED
    if switches.immutability or (protection is not None and protection.retention_days):
        return blob_errors.CONTAINER_PROTECTED_FROM_DELETION
    return None


async def require_empty(services: Services, call: Call[Any], not_empty_error: ErrorCode) -> int:
    """Mark the container, and check that it has no blob. Return the mark, which `require_mark`
    needs."""
    mark = await change_container(services, call, _mark)
    if await _has_blobs(services, call):
        raise StorageError(not_empty_error)
    return mark


def require_mark(container: ContainerRecord, mark: int | None) -> None:
    """`mark` None = no mark is needed."""
    if mark is not None and container.deleting != mark:
        raise MarkLost


def _mark(container: ContainerRecord, stamp: int) -> tuple[int, ContainerRecord]:
    return stamp, msgspec.structs.replace(container, deleting=stamp)


async def _has_blobs(services: Services, call: Call[Any]) -> bool:
    """Return whether there is a blob, a snapshot or a version. Uncommitted blocks do not count."""
    place = await services.place(call.target.service, call.target.account, call.target.container)
    if place is None:
        return False
    position: Position | None = Position(b"", b"")
    while position is not None:
        page = await services.store.scan(
            keys.blobs(place.generation), position, None, _PAGE_RECORDS
        )
        position = page.resume
        for face in page.faces():
            blob = blob_records.BLOB.decode(face.value)
            if (blob.committed and blob.deletion is None) or blob.versions:
                return True
        await asyncio.sleep(0)
    return False
