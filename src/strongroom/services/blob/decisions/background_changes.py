"""How background work changes a blob: without a caller, and so without authorization.

Lives here: that way, beside the one for requests (changing.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from strongroom.engines.base import Commit, Ref
from strongroom.services.blob.decisions.changes import BlobChange
from strongroom.services.blob.decisions.changing import BlobState, split_head
from strongroom.services.core.decisions import Decision, Found, ReadOne, Reads
from strongroom.services.core.runner import Services
from strongroom.store.blob import blob_records
from strongroom.store.blob.blob_records import BlobRecord, Upload
from strongroom.store.core import keys, records
from strongroom.store.core.records import ContainerRecord
from strongroom.values import Purpose

T = TypeVar("T")


async def change_in_background(
    services: Services,
    generation: int,
    name: str,
    decide: Callable[[BlobState, BlobChange], T],
    container: str | None = None,
    purpose: Purpose = Purpose.GROWTH,
    further: Reads | None = None,
) -> T | None:
    """Decide on a blob at the serial point, without a caller.

    Arguments:
        container: account/container that must still have `generation`; None = it is not checked.
        further: what `decide` reads in `state.found`, and guards.

    Returns: what `decide` returns; None when the container was deleted or replaced.
    """
    partition, place = keys.blob(generation, name), None
    reads = Reads(() if further is None else further.refs)
    head = reads.add(Ref(partition, keys.HEAD_KEY), blob_records.BLOB)
    upload = reads.add(Ref(partition, keys.UPLOAD_KEY), blob_records.UPLOAD)
    if container is not None:
        place = reads.add(keys.container(*container.split("/")), records.CONTAINER)
    return await services.commit(
        _BackgroundDecision(
            partition,
            reads.refs,
            purpose,
            generation,
            name,
            decide,
            head=head,
            upload=upload,
            place=place,
        )
    )


class _BackgroundDecision(Decision[T | None], Generic[T], frozen=True):
    """A decision on one blob without a caller; `place` None = the container is not checked."""

    generation: int
    name: str
    change: Callable[[BlobState, BlobChange], T]
    head: ReadOne[BlobRecord]
    upload: ReadOne[Upload]
    place: ReadOne[ContainerRecord] | None

    def decide(self, found: Found, stamp: int) -> Commit[T | None]:
        if self.place is not None:
            container = found[self.place]
            if container is None or container.generation != self.generation:
                return Commit(None)
        head_record, upload = found[self.head], found[self.upload]
        head, deleted_head = split_head(head_record)
        change = BlobChange(self.partition, self.generation, self.name, stamp, head_record, upload)
        versions = 0 if head_record is None else head_record.versions
        state = BlobState(
            head, head, upload, found, stamp, deleted_head=deleted_head, versions=versions
        )
        return Commit(self.change(state, change), change.steps())
