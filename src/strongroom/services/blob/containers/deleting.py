"""The deletion of a container whose blobs may be immutable: it must be empty.

Lives here: the mark that a deletion leaves while it looks for blobs, and the look. Must not live
here: what a deletion writes (containers.py). Source: "Version-level WORM policies for immutable
blob data", "Deletion"; "Container-level WORM policies for immutable blob data".

A commit changes one partition, and each blob is one. So the deletion marks the container, looks for
blobs, and deletes the container only if its mark is still there. Whatever protects a blob takes the
mark away first (services/blob/immutability.py). A mark that is left by a crash has no effect.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from strongroom import blob_errors
from strongroom.engines.base import Position
from strongroom.errors import ErrorCode, StorageError
from strongroom.services.blob import access
from strongroom.services.core.calls import Call
from strongroom.services.core.runner import Services
from strongroom.store.blob import blob_records
from strongroom.store.core import keys
from strongroom.store.core.records import ContainerRecord

_PAGE_RECORDS = 200


class Disturbed(Exception):
    """A blob was protected since the look began."""


def has_hold(services: Services, call: Call[Any]) -> bool:
    """Whether the container has a legal hold, which refuses every deletion."""
    switches = services.switches(call.target.account)
    protection = switches.containers.get(call.target.container)
    return protection is not None and bool(protection.holds)


def row_if_filled(services: Services, call: Call[Any]) -> ErrorCode | None:
    """The answer to a deletion while there are blobs; None = it takes them along, or is refused
    anyway."""
    switches = services.switches(call.target.account)
    protection = switches.containers.get(call.target.container)
    if has_hold(services, call):
        return None
    if protection is not None and protection.locked:
        return blob_errors.CONTAINER_IMMUTABILITY_POLICY_LOCKED
    if switches.immutability or (protection is not None and protection.retention_days):
        return blob_errors.CONTAINER_PROTECTED_FROM_DELETION
    return None


async def require_empty(services: Services, call: Call[Any], filled: ErrorCode) -> int:
    """Mark the container, and look that it has no blob.

    Returns: the mark, which `require_mark` asks for.
    Raises: StorageError `filled`, and what guard_container raises.
    """
    mark = await access.change_container(services, call, _mark)
    if await _has_blobs(services, call):
        raise StorageError(filled)
    return mark


def require_mark(container: ContainerRecord, mark: int | None) -> None:
    """Raises: Disturbed when the mark is gone. None asks for nothing."""
    if mark is not None and container.deleting != mark:
        raise Disturbed


def _mark(container: ContainerRecord, stamp: int) -> tuple[int, ContainerRecord]:
    return stamp, msgspec.structs.replace(container, deleting=stamp)


async def _has_blobs(services: Services, call: Call[Any]) -> bool:
    """Whether there is a blob, a snapshot or a version. Blocks alone are none."""
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
