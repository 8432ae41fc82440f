"""Pending copies: the work that goes on after the answer of Copy Blob, also after a restart.

Lives here: one job from its source to the commit that ends it. Must not live here: when it runs
(sweeper.py). Source: "Copy Blob", "Working with a pending copy operation".

Each commit is guarded by the copy's id and by its being pending: whoever aborts it, or deletes the
container, comes first. After a restart the copy begins anew; what it had written is dead space.
"""

from __future__ import annotations

from dataclasses import dataclass

from strongroom.errors import StorageError
from strongroom.semantics import copies
from strongroom.services.background import change_unattended
from strongroom.services.changes import BlobChange
from strongroom.services.copy_reading import open_ordered
from strongroom.services.copy_sources import OpenSource, SourceBroken
from strongroom.services.copy_transfer import Moved, transfer
from strongroom.services.heads import modified_head
from strongroom.services.runner import BlobState, Services
from strongroom.store.records import BlobRecord, CopyOrder, Job


class _Void(Exception):
    """The copy is no longer pending."""


@dataclass(frozen=True, slots=True)
class _Running:
    services: Services
    job: Job
    order: CopyOrder

    async def change(self, decide: _Decision) -> None:
        """Change the head that waits for this copy. Raises _Void when there is none any more."""

        def guarded(state: BlobState, change: BlobChange) -> bool:
            head = state.head
            copy = None if head is None else head.copy
            if head is None or copy is None or copy.id != self.job.token:
                return False
            if not copies.is_pending(copy):
                return False
            change.put_head(decide(head, copy, change))
            return True

        job = self.job
        done = await change_unattended(
            self.services, job.generation, job.blob, guarded, self.order.destination
        )
        if not done:
            raise _Void


class _Decision:
    """What becomes of the head of a pending copy."""

    def __call__(self, head: BlobRecord, copy: copies.Copy, change: BlobChange) -> BlobRecord:
        raise NotImplementedError


async def run_copy(services: Services, job: Job) -> None:
    """Do a pending copy to its end: success, or failed with a reason that the client can read.

    Raises: the engine's errors; then it is still pending, and may be run again.
    """
    order = job.order
    assert order is not None
    source = services.copies.take(job.token)
    running = _Running(services, job, order)
    try:
        if source is None:
            await running.change(_advanced(0))
            source = await open_ordered(services, order)
        await _move(running, source)
    except _Void:
        return
    except SourceBroken as broken:
        await _fail(running, str(broken))
    except StorageError as error:
        await _fail(running, f"{error.row.status} {error.row.code} {error.message}")
    finally:
        if source is not None:
            await source.close()
