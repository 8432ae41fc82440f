"""Incremental Copy Blob: the request that starts a copy of a snapshot of a page blob.

Lives here: which sources and destinations are accepted, and the commit that begins the copy.

Source: "Incremental Copy Blob"; reference section 5.
"""

from __future__ import annotations

from typing import Final

import msgspec

from strongroom.clock import guid
from strongroom.errors import blob as blob_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.blob.pages import IncrementalCopy, PageState, check_next_source
from strongroom.semantics.core import copies
from strongroom.semantics.core.copies import Copy
from strongroom.services.blob.copies.copying import CopyResult
from strongroom.services.blob.copies.reading import open_local
from strongroom.services.blob.copies.sources import OpenBlob
from strongroom.services.blob.decisions import changing, views
from strongroom.services.blob.decisions.changes import BlobChange
from strongroom.services.blob.decisions.changing import BlobState
from strongroom.services.blob.states.heads import modified_head, refuse_pending_copy, replace_head
from strongroom.services.blob.states.immutability import refuse_change
from strongroom.services.core.calls import Call
from strongroom.services.core.copies.sources import (
    CopySources,
    LocalSource,
    SourceRequest,
    check_url,
    url_without_credentials,
)
from strongroom.services.core.places import generation_of
from strongroom.services.core.runner import Services
from strongroom.store.blob.bodies.pages import NewPages
from strongroom.store.core.records import CopyOrder, Job, JobKind

_ASKED: Final = SourceRequest(by_caller=True)


class CopyIncrementally(msgspec.Struct, frozen=True):
    """The URL of a snapshot."""

    source: str


async def copy_incrementally(services: Services, call: Call[CopyIncrementally]) -> CopyResult:
    """Start the copy, which is pending in the answer."""
    url = call.input.source
    check_url(url)
    await views.check_blob(services, call)
    locate = services.held.of(CopySources).locate
    local = None if locate is None else await locate(url, call, _ASKED)
    if local is None:
        raise StorageError(blob_errors.INVALID_SOURCE_BLOB_URL)
    if local.snapshot is None:
        raise StorageError(blob_errors.INCREMENTAL_COPY_SOURCE_MUST_BE_SNAPSHOT)
    source = await open_local(services, local)
    try:
        if source.page is None:
            raise StorageError(blob_errors.INVALID_SOURCE_BLOB_TYPE)
        return await _begin(services, call, local, source)
    finally:
        await source.close()


async def _begin(
    services: Services, call: Call[CopyIncrementally], local: LocalSource, source: OpenBlob
) -> CopyResult:
    copy_id = guid(services.clock)
    order = CopyOrder(
        account=local.account,
        container=local.container,
        generation=local.generation,
        blob=local.blob,
        snapshot=local.snapshot,
        etag=source.etag,
        destination=f"{call.target.account}/{call.target.container}",
    )
    job = Job(JobKind.COPY, generation_of(call), call.target.blob, copy_id, order)
    copy = copies.started(
        copy_id, url_without_credentials(call.input.source), source.size_bytes or 0
    )

    def decide(state: BlobState, change: BlobChange) -> CopyResult:
        _order(call, source, order, copy, state, change)
        change.add_job(job)
        return CopyResult(change.stamp, change.stamp, copy.id, copy.status.value)

    return await changing.change_blob(services, call, decide)


def source_text(order: CopyOrder) -> str:
    """Return a text that identifies the source blob of a copy order."""
    return f"{order.account}/{order.container}/{order.generation}/{order.blob}"


def _order(
    call: Call[CopyIncrementally],
    source: OpenBlob,
    order: CopyOrder,
    copy: Copy,
    state: BlobState,
    change: BlobChange,
) -> None:
    """Write the destination's head, with a pending copy."""
    head, snapshot = state.head, order.snapshot
    assert snapshot is not None
    refuse_pending_copy(head)
    if head is None or not head.committed:
        replace_head(
            call,
            state,
            change,
            new=NewPages(0),
            properties=source.properties,
            metadata=source.metadata,
            copy=copy,
            page=PageState(0, IncrementalCopy(source_text(order), snapshot)),
        )
        return
    page = head.page
    if page is None or page.incremental is None:
        raise StorageError(blob_errors.INCREMENTAL_COPY_BLOB_MISMATCH)
    refuse_change(head, state)
    check_next_source(page.incremental, source_text(order), snapshot)
    ordered = msgspec.structs.replace(page.incremental, source_snapshot=snapshot)
    page = msgspec.structs.replace(page, incremental=ordered)
    change.put_head(modified_head(head, change.stamp, copy=copy, page=page))
