"""How background work changes a blob: without a caller, and so without authorization.

Lives here: that way, beside the one for requests (access.py). Must not live here: the work itself
(copies/jobs.py, retention.py, sweeper.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from strongroom.engines.base import Commit, Key, Record, Ref
from strongroom.services.blob.decisions.access import BlobState, split_head
from strongroom.services.blob.decisions.changes import BlobChange
from strongroom.services.core.decisions import Decision
from strongroom.services.core.runner import Services
from strongroom.store.blob import blob_records
from strongroom.store.core import keys, records
from strongroom.values import Purpose

T = TypeVar("T")


async def change_in_background(
    services: Services,
    generation: int,
    name: str,
    decide: Callable[[BlobState, BlobChange], T],
    container: str | None = None,
    purpose: Purpose = Purpose.GROWTH,
    extra: Sequence[Key] = (),
) -> T | None:
    """Decide on a blob at the serial point, without a caller.

    Arguments:
        container: account/container that must still have `generation`; None = it is not checked.
        purpose: see Engine.update.
        extra: further keys of the partition that the decision needs and guards.

    Returns: what `decide` returns; None when the container was deleted or replaced.
    """
    partition = keys.blob(generation, name)
    refs = [Ref(partition, key) for key in (keys.HEAD_KEY, keys.UPLOAD_KEY, *extra)]
    if container is not None:
        refs.append(keys.container(*container.split("/")))
    return await services.commit(
        _BackgroundDecision(
            partition, refs, purpose, generation, name, change=decide, extra=len(extra)
        )
    )


class _BackgroundDecision(Decision[T | None], Generic[T], frozen=True):
    """A decision on one blob without a caller.

    A read after the `extra` further ones is the container's record.
    """

    generation: int
    name: str
    change: Callable[[BlobState, BlobChange], T]
    extra: int

    def run(self, found: Sequence[Record | None], stamp: int) -> Commit[T | None]:
        """See Decision.run. The result is None when the container was deleted or replaced."""
        end = 2 + self.extra
        if len(found) > end:
            place = records.CONTAINER.of(found[end])
            if place is None or place.generation != self.generation:
                return Commit(None)
        head_record, upload = blob_records.BLOB.of(found[0]), blob_records.UPLOAD.of(found[1])
        head, deleted_head = split_head(head_record)
        change = BlobChange(self.partition, self.generation, self.name, stamp, head_record, upload)
        rest, versions = tuple(found[2:end]), 0 if head_record is None else head_record.versions
        state = BlobState(
            head, head, upload, rest, stamp, deleted_head=deleted_head, versions=versions
        )
        return Commit(self.change(state, change), change.steps())
