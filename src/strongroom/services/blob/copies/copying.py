"""Copy Blob, Copy Blob From URL, Abort Copy Blob: the requests.

Lives here: the opening of the source, the commits that begin, complete or abort a copy, and the
wait for a pending copy.

Source: "Copy Blob", "Copy Blob From URL", "Abort Copy Blob"; reference section 8.
"""

from __future__ import annotations

import asyncio
from functools import partial

import msgspec

from strongroom import limits
from strongroom.auth.request import Service
from strongroom.clock import guid
from strongroom.engines.base import Record, Ref
from strongroom.errors import blob as blob_errors
from strongroom.errors import copies as copy_errors
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.semantics.blob import appends, tiers
from strongroom.semantics.blob import copies as blob_copies
from strongroom.semantics.blob.immutability import Immutability
from strongroom.semantics.blob.pages import PageState
from strongroom.semantics.core import conditions as conditional
from strongroom.semantics.core import copies
from strongroom.semantics.core.conditions import Conditions
from strongroom.semantics.core.copies import Copy
from strongroom.services.blob.bodies import intake
from strongroom.services.blob.bodies.intake import Digests
from strongroom.services.blob.bodies.rereading import Stale
from strongroom.services.blob.copies.reading import open_named
from strongroom.services.blob.copies.sources import OpenBlob
from strongroom.services.blob.copies.transfer import TransferredBody, transfer
from strongroom.services.blob.decisions import changing, views
from strongroom.services.blob.decisions.changes import BlobChange
from strongroom.services.blob.decisions.changing import BlobState
from strongroom.services.blob.decisions.rehydration import RehydrationDelays, new_rehydration
from strongroom.services.blob.states.displaced import is_kept
from strongroom.services.blob.states.heads import (
    modified_head,
    refuse_pending_copy,
    replace_head,
)
from strongroom.services.core.calls import Call
from strongroom.services.core.copies.opening import copy_order
from strongroom.services.core.copies.pending import is_pending, wait_until_ended
from strongroom.services.core.copies.sources import (
    CopySources,
    SourceBroken,
    SourceRequest,
    cannot_read,
    check_url,
    url_without_credentials,
)
from strongroom.services.core.places import generation_of
from strongroom.services.core.runner import Services
from strongroom.store.blob import blob_records
from strongroom.store.blob.blob_records import BlobRecord
from strongroom.store.blob.bodies.body import NewBody
from strongroom.store.blob.bodies.kinds import empty_body
from strongroom.store.blob.bodies.pages import PresentPages, emptied
from strongroom.store.blob.bodies.received import Received
from strongroom.store.core import keys
from strongroom.store.core.records import CopyOrder, Job, JobKind
from strongroom.values import Etag, Metadata, etag_text


class CopyBlob(msgspec.Struct, frozen=True):
    """The input of both copies.

    Empty `metadata` means the source's. `source_md5` is the required MD5 of its content. `wait_s`
    limits how long the answer to a pending copy of an own blob may be delayed. `authorization` is
    the header for the source. `copies_tags`: the copy gets the source's tags. `wait_s` applies to
    Copy Blob only. `source_md5`, `authorization` and `copies_tags` apply to Copy Blob From URL
    only. `seal`: whether the copy of an append blob is sealed; None = as its source. `priority` is
    that of the rehydration if the source is archived.
    """

    source: str
    source_conditions: Conditions = conditional.NONE
    metadata: Metadata = ()
    tags: Metadata = ()
    tier: str | None = None
    source_md5: bytes | None = None
    wait_s: float = 0.0
    authorization: str | None = None
    copies_tags: bool = False
    seal: bool | None = None
    immutability: Immutability | None = None
    priority: str = tiers.STANDARD


class CopyResult(msgspec.Struct, frozen=True):
    """`modified` is a stamp. `version` is the version's id, 0 = it is none. The digests are set
    where they were computed."""

    etag: Etag
    modified: int
    copy_id: str
    copy_status: str
    version: int = 0
    md5: bytes | None = None
    crc64: int | None = None


async def copy_blob(services: Services, call: Call[CopyBlob]) -> CopyResult:
    """Complete the copy of a small blob of this server at once, and that of a blob to itself. Start
    any other as pending.

    Many clients use the copy without checking that it is complete. So the answer to a copy of a
    blob of this server waits a while for the copy to end, and then reports its state.
    """
    answer_at = asyncio.get_running_loop().time() + call.input.wait_s
    sources, delays = services.held.of(CopySources), services.held.of(RehydrationDelays)
    while True:
        try:
            return await _copy_blob(services, sources, delays, call, answer_at)
        except Stale:
            # Reads of this server may never suspend: other tasks get a turn here.
            await asyncio.sleep(0)


async def _copy_blob(
    services: Services,
    sources: CopySources,
    delays: RehydrationDelays,
    call: Call[CopyBlob],
    answer_at: float,
) -> CopyResult:
    """Raises: Stale: the blob was changed while it was to be copied to itself."""
    source, order = await _open(services, call, by_caller=True)
    delay = _delay(delays, call.input, source)
    if order.url:
        return await _begin(services, sources, call, source, order, delay)
    at_once = _is_copied_at_once(call, source, order)
    if not at_once or sources.is_held(order.destination, call.target.blob):
        begun = await _begin(services, sources, call, source, order, delay)
        return await _wait_for_end(services, call, begun, answer_at)
    try:
        if source.page is not None and _is_onto_itself(call, order):
            moved = TransferredBody(PresentPages(source.size_bytes or 0, source.page.body), None)
        else:
            moved = await transfer(services.store.contents, source)
        return await _complete(services, call, source, moved, delay, require_infinite_lease=True)
    except SourceBroken as broken:  # a file whose bytes come from another gateway
        raise cannot_read(copy_errors.CANNOT_VERIFY_COPY_SOURCE, str(broken)) from None
    finally:
        await source.close()


def _is_copied_at_once(call: Call[CopyBlob], source: OpenBlob, order: CopyOrder) -> bool:
    """Return whether the copy is complete before the answer.

    A pending copy empties its destination. If that is its source too, the source could not be
    opened again after a restart, and its bytes would be lost.
    """
    if _is_onto_itself(call, order):
        return True
    return source.size_bytes is not None and source.size_bytes <= limits.COPY_AT_ONCE_BYTES_MAX


def _is_onto_itself(call: Call[CopyBlob], order: CopyOrder) -> bool:
    named = (order.service, order.generation, order.blob, order.snapshot, order.version)
    return named == (Service.BLOB.value, generation_of(call), call.target.blob, None, None)


def _present_pages(pages: PresentPages, source: OpenBlob, state: BlobState) -> PresentPages:
    """Return the body of a page blob that is copied to itself. No pages move, however many they
    are. Raises: Stale: the blob is not what was opened any more."""
    head = state.head
    if head is None or head.body != pages.body or etag_text(head.shown_etag) != source.etag:
        raise Stale
    return msgspec.structs.replace(pages, is_shared=is_kept(head, state))


async def copy_from_url(services: Services, call: Call[CopyBlob]) -> CopyResult:
    """The copy is complete before the answer. The source may have up to 256 MiB."""
    request = call.input
    source, _ = await _open(services, call, by_caller=False)
    try:
        if source.page is not None:
            raise StorageError(blob_errors.INVALID_SOURCE_BLOB_TYPE)
        bytes_max = limits.COPY_FROM_URL_BYTES_MAX
        if (source.size_bytes or 0) > bytes_max:
            raise errors.body_too_large(bytes_max)
        wants_md5 = request.source_md5 is not None
        moved = await transfer(services.store.contents, source, md5=wants_md5, bytes_max=bytes_max)
        delay = _delay(services.held.of(RehydrationDelays), request, source)
        return await _complete(services, call, source, moved, delay, require_infinite_lease=False)
    except SourceBroken as broken:
        raise cannot_read(copy_errors.CANNOT_VERIFY_COPY_SOURCE, str(broken)) from None
    finally:
        await source.close()


async def _open(
    services: Services, call: Call[CopyBlob], *, by_caller: bool
) -> tuple[OpenBlob, CopyOrder]:
    """Open the source. Return it with the copy order from which it can be opened again."""
    request = call.input
    url, conditions = request.source, request.source_conditions
    check_url(url)
    conditional.require_write_combination(conditions)
    await views.check_blob(services, call)
    metadata = request.metadata or None
    destination = f"{call.target.account}/{call.target.container}"
    source_request = SourceRequest(
        conditions,
        authorization=request.authorization,
        with_tags=request.copies_tags,
        by_caller=by_caller,
    )
    source, local = await open_named(services, call, url, source_request)
    try:
        if request.tier is not None:
            tiers.check_given(source.kind, request.tier, source.size_bytes or 0)
        tiers.require_copy_tier(source.tier, request.tier)
    except BaseException:
        await source.close()
        raise
    return source, copy_order(url, local, source, metadata, destination)


async def _complete(
    services: Services,
    call: Call[CopyBlob],
    source: OpenBlob,
    moved: TransferredBody,
    delay: int,
    *,
    require_infinite_lease: bool,
) -> CopyResult:
    """Commit a copy whose bytes have been read."""
    request = call.input
    copy_id = guid(services.clock)
    try:
        if request.source_md5 is not None:
            arrived = Received(moved.body.size_bytes, 0, moved.md5, None, None)
            intake.verify(Digests(request.source_md5), arrived)

        def decide(state: BlobState, change: BlobChange) -> CopyResult:
            begun = copies.started(
                copy_id, url_without_credentials(request.source), moved.body.size_bytes
            )
            copy = copies.succeeded(begun, change.stamp)
            head = _replace(
                call,
                source,
                state,
                change,
                copy=copy,
                new=moved.body,
                delay=delay,
                require_infinite_lease=require_infinite_lease,
            )
            return _made(head, copy, moved)

        return await changing.change_blob(services, call, decide)
    except BaseException:
        moved.body.discard(services.store.contents)
        raise


async def _begin(
    services: Services,
    sources: CopySources,
    call: Call[CopyBlob],
    source: OpenBlob,
    order: CopyOrder,
    delay: int,
) -> CopyResult:
    """Commit a pending copy, and the job that does the work. It takes over the source."""
    copy_id = guid(services.clock)
    job = Job(JobKind.COPY, generation_of(call), call.target.blob, copy_id, order)

    def decide(state: BlobState, change: BlobChange) -> CopyResult:
        copy = copies.started(
            copy_id, url_without_credentials(call.input.source), source.size_bytes or 0
        )
        head = _replace(
            call,
            source,
            state,
            change,
            copy=copy,
            new=empty_body(source.kind),
            delay=delay,
            require_infinite_lease=True,
        )
        change.add_job(job)
        return _made(head, copy, None)

    # This precedes the commit, since the job may start as soon as it is visible.
    try:
        await sources.keep_open(copy_id, source)
        begun = await changing.change_blob(services, call, decide)
    except BaseException:
        left = sources.take(copy_id)
        if left is not None:
            await left.close()
        raise
    ref = Ref(keys.blob(generation_of(call), call.target.blob), keys.HEAD_KEY)
    sources.register_committed(copy_id, partial(is_pending, services, ref, _copy_of, copy_id))
    return begun


def _copy_of(record: Record | None) -> Copy | None:
    head = blob_records.visible(record)
    return None if head is None else head.copy


async def _wait_for_end(
    services: Services, call: Call[CopyBlob], begun: CopyResult, answer_at: float
) -> CopyResult:
    """Wait until a pending copy has ended, or until `answer_at` (event loop time). Return its
    state.

    If the destination was overwritten meanwhile, the answer is the copy's state at its start.
    """
    ref = Ref(keys.blob(generation_of(call), call.target.blob), keys.HEAD_KEY)

    def read(record: Record | None) -> tuple[Copy | None, CopyResult]:
        head = blob_records.visible(record)
        copy = None if head is None else head.copy
        if head is None or copy is None:
            return None, begun
        made = CopyResult(head.shown_etag, head.modified, copy.id, copy.status.value, head.version)
        return copy, made

    return await wait_until_ended(services, call, ref, read, (begun.copy_id, answer_at)) or begun


def _replace(
    call: Call[CopyBlob],
    source: OpenBlob,
    state: BlobState,
    change: BlobChange,
    *,
    copy: Copy,
    new: NewBody,
    delay: int,
    require_infinite_lease: bool,
) -> BlobRecord:
    """Write the destination's head, with the body that the copy has so far. `delay` is the ticks
    for which the copy stays archived."""
    refuse_pending_copy(state.head)
    request = call.input
    if state.head is not None and state.head.committed:
        blob_copies.require_same_type(source.kind, state.head.kind)
    sealed = appends.sealed_copy(source.kind, source.sealed, request.seal)
    if require_infinite_lease and state.head is not None:
        blob_copies.require_infinite_lease(state.head.lease, state.now)
    page = None
    if source.page is not None:
        page = PageState(source.page.state.sequence_number)
    shares = False
    if isinstance(new, PresentPages):
        new = _present_pages(new, source, state)
        shares = new.is_shared or (state.head is not None and state.head.shares)
    properties = source.properties
    if copies.is_pending(copy):
        # The MD5 belongs to the content to come: until then, or if the copy fails, the blob is
        # empty.
        properties = properties.with_md5(None)
    return replace_head(
        call,
        state,
        change,
        new=new,
        properties=properties,
        metadata=request.metadata or source.metadata,
        tier=request.tier,
        copy=copy,
        tags=source.tags if request.copies_tags else request.tags,
        kind=source.kind,
        sealed=sealed,
        shares=shares,
        page=page,
        immutability=request.immutability,
        rehydration=new_rehydration(request.tier or "", request.priority, delay, change.stamp),
    )


def _delay(delays: RehydrationDelays, request: CopyBlob, source: OpenBlob) -> int:
    """Return how long the copy of an archived blob stays archived itself, in ticks."""
    if request.tier is None or not tiers.leaves_archive(source.tier, request.tier):
        return 0
    return delays.ticks(request.priority)


def _made(head: BlobRecord, copy: Copy, moved: TransferredBody | None) -> CopyResult:
    md5, crc64 = (None, None) if moved is None else (moved.md5, moved.body.crc64)
    status = copy.status.value
    return CopyResult(
        head.shown_etag,
        head.modified,
        copy.id,
        status,
        version=head.version,
        md5=md5,
        crc64=crc64,
    )


class AbortCopy(msgspec.Struct, frozen=True):
    copy_id: str


async def abort_copy(services: Services, call: Call[AbortCopy]) -> None:
    """The destination remains as an empty blob."""

    def decide(state: BlobState, change: BlobChange) -> None:
        head = state.head
        assert head is not None
        copy = copies.aborted(head.copy, call.input.copy_id, change.stamp)
        usual = head.page is not None and head.page.incremental is None
        body = emptied(head.body, change) if usual else head.body
        change.put_head(modified_head(head, change.stamp, copy=copy, body=body, sealed=False))

    await changing.change_blob(services, call, decide)
    services.work.set()
