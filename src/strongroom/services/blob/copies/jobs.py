"""Pending copies to blobs: work that continues after the answer to Copy Blob, and after a restart.

Lives here: copying the bytes, recording the progress, and the last commit. Only a copy that is
still pending may make that commit, so an abort always wins. Source: "Copy Blob", "Working with a
pending copy".
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from strongroom.engines.base import Ref
from strongroom.errors import core as errors
from strongroom.semantics.core import copies
from strongroom.semantics.core.copies import Copy
from strongroom.services.blob.copies.incremental_jobs import run_incremental
from strongroom.services.blob.copies.reading import OWN
from strongroom.services.blob.copies.sources import OpenBlob, as_blob
from strongroom.services.blob.copies.transfer import TransferredBody, transfer
from strongroom.services.blob.decisions.background_changes import change_in_background
from strongroom.services.blob.decisions.changes import BlobChange
from strongroom.services.blob.decisions.changing import BlobState
from strongroom.services.core.copies.pending import NotPending, PendingCopy, run_pending
from strongroom.services.core.copies.sources import OpenSource
from strongroom.services.core.runner import Services
from strongroom.store.blob import blob_records
from strongroom.store.blob.blob_records import BlobRecord
from strongroom.store.blob.bodies.pages import (
    CopiedLeaves,
    NewPages,
    copy_leaves,
    emptied,
    is_untouched,
    with_leaves,
)
from strongroom.store.core import keys
from strongroom.store.core.records import CopyOrder, Job

Edit = Callable[[BlobRecord, Copy, BlobChange], BlobRecord]


async def run_copy(services: Services, job: Job) -> None:
    assert job.order is not None
    await run_pending(services, job, job.blob, _PendingBlobCopy(services, job, job.order), OWN)


class _PendingBlobCopy(PendingCopy):
    def __init__(self, services: Services, job: Job, order: CopyOrder) -> None:
        self._of = services, job, order

    async def begin(self) -> None:
        await _progress(*self._of, 0)

    async def copy(self, source: OpenSource) -> None:
        services, job, order = self._of
        blob = as_blob(source)
        if await _is_incremental(services, job):
            await run_incremental(services, job, blob)
        elif blob.page is not None:
            await _copy_pages(services, job, order, blob)
        else:
            moved = await transfer(
                services.store.contents,
                blob,
                progress=lambda done: _progress(services, job, order, done),
            )
            await _succeed(services, job, order, blob, moved)

    async def fail(self, reason: str) -> None:
        await _fail(*self._of, reason)


async def _progress(services: Services, job: Job, order: CopyOrder, done_bytes: int) -> None:
    def edit(head: BlobRecord, copy: Copy, change: BlobChange) -> BlobRecord:
        return msgspec.structs.replace(head, copy=copies.advanced(copy, done_bytes))

    await _edit(services, job, order, edit)


async def _is_incremental(services: Services, job: Job) -> bool:
    (record,) = await services.store.read([Ref(keys.blob(job.generation, job.blob), keys.HEAD_KEY)])
    head = blob_records.BLOB.of(record)
    return head is not None and head.page is not None and head.page.incremental is not None


def _keeps_body(head: BlobRecord) -> bool:
    """Return whether a failed copy leaves the body as it is. Its body is then invisible or still
    valid."""
    return head.page is None or head.page.incremental is not None


async def _copy_pages(services: Services, job: Job, order: CopyOrder, source: OpenBlob) -> None:
    """Copy the allocated pages of a page blob in commits of bounded size.

    The blob has length 0 until the last one.
    """
    page, size_bytes = source.page, source.size_bytes or 0
    assert page is not None

    def begin(head: BlobRecord, copy: Copy, change: BlobChange) -> BlobRecord:
        if is_untouched(head.body):
            return head
        return msgspec.structs.replace(head, body=emptied(head.body, change))

    await _edit(services, job, order, begin)
    resume: int | None = 0
    while resume is not None:
        contents = services.store.contents
        leaves = await copy_leaves(page.place, page.body, resume, size_bytes, contents)
        resume = leaves.resume
        new = NewPages(0, leaves.parts)
        done_bytes = size_bytes if resume is None else resume

        def put(
            head: BlobRecord,
            copy: Copy,
            change: BlobChange,
            leaves: CopiedLeaves = leaves,
            done_bytes: int = done_bytes,
        ) -> BlobRecord:
            body = with_leaves(head.body, leaves.parts, change)
            advanced = copies.advanced(copy, done_bytes)
            return msgspec.structs.replace(head, body=body, copy=advanced)

        try:
            await _edit(services, job, order, put)
        except BaseException:
            new.discard(contents)
            raise

    def end(head: BlobRecord, copy: Copy, change: BlobChange) -> BlobRecord:
        done = msgspec.structs.replace(copy, total_bytes=size_bytes)
        return msgspec.structs.replace(
            head,
            etag=change.stamp,
            modified=change.stamp,
            size_bytes=size_bytes,
            properties=source.properties,
            metadata=source.metadata if order.metadata is None else order.metadata,
            copy=copies.succeeded(done, change.stamp),
        )

    await _edit(services, job, order, end)


async def _succeed(
    services: Services, job: Job, order: CopyOrder, source: OpenBlob, moved: TransferredBody
) -> None:
    def edit(head: BlobRecord, copy: Copy, change: BlobChange) -> BlobRecord:
        done = msgspec.structs.replace(copy, total_bytes=moved.body.size_bytes)
        # The source may have been replaced before a restart, so content and properties come from
        # one read.
        return msgspec.structs.replace(
            head,
            etag=change.stamp,
            modified=change.stamp,
            size_bytes=moved.body.size_bytes,
            body=moved.body.take(change),
            properties=source.properties,
            metadata=source.metadata if order.metadata is None else order.metadata,
            copy=copies.succeeded(done, change.stamp),
        )

    try:
        await _edit(services, job, order, edit)
    except BaseException:
        moved.body.discard(services.store.contents)
        raise


async def _fail(services: Services, job: Job, order: CopyOrder, reason: str) -> None:
    def edit(head: BlobRecord, copy: Copy, change: BlobChange) -> BlobRecord:
        ended = copies.failed(copy, reason, change.stamp)
        body = head.body if _keeps_body(head) else emptied(head.body, change)
        return msgspec.structs.replace(
            head, etag=change.stamp, modified=change.stamp, copy=ended, sealed=False, body=body
        )

    await _edit(services, job, order, edit)


async def _edit(services: Services, job: Job, order: CopyOrder, edit: Edit) -> None:
    """Change the head while this very copy is pending. Raises: NotPending."""

    def decide(state: BlobState, change: BlobChange) -> bool:
        copy = None if state.head is None else state.head.copy
        if state.head is None or copy is None or copy.id != job.token:
            return False
        if not copies.is_pending(copy):
            return False
        change.put_head(edit(state.head, copy, change))
        return True

    edited = await change_in_background(
        services, job.generation, job.blob, decide, order.destination
    )
    if edited is None:
        await _end_in_deleted(services, job, order)
    if not edited:
        raise NotPending


async def _end_in_deleted(services: Services, job: Job, order: CopyOrder) -> None:
    """Fail the copy in a container that was soft-deleted.

    A restored container must not have a copy that stays pending for ever.
    """
    account, name = order.destination.split("/")
    kept = keys.deleted_place(keys.container(account, name), job.generation)
    if await services.store.read([kept]) == [None]:
        return

    def decide(state: BlobState, change: BlobChange) -> None:
        head = state.head
        copy = None if head is None else head.copy
        if head is None or copy is None or copy.id != job.token:
            return
        if copies.is_pending(copy):
            reason = f"404 {errors.CONTAINER_NOT_FOUND.code}"
            ended = copies.failed(copy, reason, change.stamp)
            change.put_head(msgspec.structs.replace(head, copy=ended))

    await change_in_background(services, job.generation, job.blob, decide)
