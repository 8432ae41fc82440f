"""Reading the records of a blob or container, and the time at which they are judged.

Lives here: which of the records that were read is meant, and whether it depends on the time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from strongroom.services.blob.decisions.rehydration import as_of
from strongroom.services.core.decisions import Found, ReadOne, Reads
from strongroom.services.core.runner import Services
from strongroom.store.blob.blob_records import BlobRecord, shown
from strongroom.store.core.records import ContainerRecord

R = TypeVar("R", bound="BlobRecord | ContainerRecord")

Timed = tuple[R | None, bool]
"""A value, and whether it depends on the time."""

Pick = Callable[..., Timed[R]]
"""pick(found, named, now) -> the value. `now` is store time, absent before it has been read."""


def of_blob(found: Found, named: ReadOne[BlobRecord], now: int | None = None) -> Timed[BlobRecord]:
    blob = shown(found[named])
    if blob is None:
        return None, False
    if blob.rehydration is not None and now is not None:
        blob = as_of(blob, now)
    return blob, blob.lease is not None or blob.rehydration is not None


def of_container(
    found: Found, named: ReadOne[ContainerRecord], now: int | None = None
) -> Timed[ContainerRecord]:
    container = found[named]
    return container, container is not None and container.lease is not None


def version_among(
    version: int,
    previous: ReadOne[BlobRecord],
    found: Found,
    head: ReadOne[BlobRecord],
    now: int | None = None,
) -> Timed[BlobRecord]:
    """The version of this id, current or previous."""
    current, is_timed = of_blob(found, head, now)
    if current is not None and current.version == version:
        return current, is_timed
    return of_blob(found, previous, now)


async def read_with_time(
    services: Services, pick: Pick[R], reads: Reads, named: ReadOne[Any]
) -> tuple[Found, R | None, int]:
    """Read records, decode the one `named` with `pick`, and return a time at which that one was
    current.

    That time is store time if the record depends on time, else the record's own modification.
    """
    found = Found(await services.store.read(reads.refs))
    record, is_timed = pick(found, named)
    if record is None or not is_timed:
        return found, record, 0 if record is None else record.modified
    # Reading the time may take a while, and a lease may be renewed meanwhile. So the time is read
    # first. The record that is read after it may be newer, and is then judged at its own version.
    now = await services.store.now()
    found = Found(await services.store.read(reads.refs))
    version = found.version(named)
    now = now if version is None else max(now, version)
    return found, pick(found, named, now)[0], now
