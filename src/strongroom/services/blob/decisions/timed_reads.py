"""Reading the records of a blob or container, and the time at which they are judged.

Lives here: which of the records that were read is meant, and whether it depends on the time. Must
not live here: whether a request may read it (access.py, guard.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from strongroom.engines.base import Record, Ref
from strongroom.services.blob.decisions.rehydration import as_of
from strongroom.services.core.runner import Services
from strongroom.store.blob import blob_records
from strongroom.store.blob.blob_records import BlobRecord
from strongroom.store.core import records
from strongroom.store.core.records import ContainerRecord

R = TypeVar("R", bound="BlobRecord | ContainerRecord")

Timed = tuple[R | None, bool]
"""A value, and whether it depends on the time."""

Pick = Callable[..., Timed[R]]
"""pick(records, now) -> the value. `now` is store time, absent before it has been read."""


def of_blob(record: Record | None, now: int | None = None) -> Timed[BlobRecord]:
    """Return the blob, and whether it depends on the time."""
    found = blob_records.visible(record)
    if found is None:
        return None, False
    if found.rehydration is not None and now is not None:
        found = as_of(found, now)
    return found, found.lease is not None or found.rehydration is not None


def blob_at_0(found: Sequence[Record | None], now: int | None = None) -> Timed[BlobRecord]:
    """See Pick."""
    return of_blob(found[0], now)


def blob_at_1(found: Sequence[Record | None], now: int | None = None) -> Timed[BlobRecord]:
    """See Pick."""
    return of_blob(found[1], now)


def of_container(found: Sequence[Record | None], now: int | None = None) -> Timed[ContainerRecord]:
    """See Pick."""
    container = records.CONTAINER.of(found[0])
    return container, container is not None and container.lease is not None


def version_among(
    version: int, found: Sequence[Record | None], now: int | None = None
) -> Timed[BlobRecord]:
    """Return the version of this id, current or previous. See Pick.

    Arguments:
        found: begins with the head, and the previous version of this id.
    """
    head = blob_at_0(found, now)
    return head if head[0] is not None and head[0].version == version else blob_at_1(found, now)


async def read_with_time(
    services: Services,
    pick: Pick[R],
    refs: Sequence[Ref],
    at: int = 0,
) -> tuple[list[Record | None], R | None, int]:
    """Read records, decode one with `pick`, and return a time at which that one was current.

    That time is store time if the record depends on time, else the record's own modification.

    Arguments:
        at: the position of the record whose version is its last change.
    """
    found = await services.store.read(refs)
    record, is_timed = pick(found)
    if record is None or not is_timed:
        return found, record, 0 if record is None else record.modified
    # Reading the time may take a while, and a lease may be renewed meanwhile. So the time is read
    # first. The record that is read after it may be newer, and is then judged at its own version.
    now = await services.store.now()
    found = await services.store.read(refs)
    again = found[at]
    now = now if again is None else max(now, again.version)
    return found, pick(found, now)[0], now
