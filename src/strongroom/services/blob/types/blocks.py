"""Put Block, Put Block List, Get Block List: block blobs written piece by piece.

Lives here: staging, the reading of the blocks that a list may name, and the commit, which fails
when these have changed. Source: "Put Block", "Put Block List", "Get Block List"; reference section
3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, NamedTuple

import msgspec

from strongroom.engines.base import ContentMissing, Item, Key, Partition, Ref
from strongroom.engines.endings import to_its_end
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.semantics.blob import blocks as rules
from strongroom.semantics.blob import tiers
from strongroom.semantics.blob.immutability import Immutability
from strongroom.semantics.core import copies
from strongroom.services.blob.blobs import NO_PROPERTIES, BlobWritten, rereading
from strongroom.services.blob.bodies import intake
from strongroom.services.blob.bodies.intake import NO_DIGESTS, Digests
from strongroom.services.blob.bodies.rereading import RetriedRead, Stale
from strongroom.services.blob.decisions import changing, views
from strongroom.services.blob.decisions.changes import BlobChange
from strongroom.services.blob.decisions.changing import BlobState
from strongroom.services.blob.decisions.precedence import Precedence
from strongroom.services.blob.decisions.views import BlobView
from strongroom.services.blob.states.heads import (
    refuse_archived,
    refuse_overwrite,
    refuse_pending_copy,
    replace_head,
)
from strongroom.services.blob.types import gates, uploads
from strongroom.services.blob.types.gates import ListTurn
from strongroom.services.blob.types.uploads import CountAmongAll, OwnCount, UploadRead
from strongroom.services.core.calls import Call
from strongroom.services.core.decisions import ReadAll, Reads
from strongroom.services.core.places import generation_of
from strongroom.services.core.runner import Services
from strongroom.slices import Steps, parts
from strongroom.store.blob import blob_records
from strongroom.store.blob.blob_records import BlobRecord, StagedBlock, Upload
from strongroom.store.blob.bodies.blocks import ListedBlock, ListWriter, StoredBlockList
from strongroom.store.blob.bodies.body import Body, BodyPlace, NewBody
from strongroom.store.blob.bodies.empty import EMPTY
from strongroom.store.blob.bodies.listed import make_list
from strongroom.store.blob.bodies.received import Received
from strongroom.store.core import gateway_keys, keys
from strongroom.values import BlobKind, BlockListKind, ContentProperties, Metadata

_PAGE_RECORDS = 1000
# For long lists: half a millisecond's work.
_BLOCKS_AT_ONCE = 500
# The most stagings of one block id that one more replaces. Several exist only after concurrent Put
# Blocks.
_EARLIER_MAX = 16


_Count = OwnCount | CountAmongAll


class PutBlock(msgspec.Struct, frozen=True):
    """`block_id` is decoded."""

    block_id: bytes
    digests: Digests = NO_DIGESTS


class BlockStaged(msgspec.Struct, frozen=True):
    """Digests of the body; the MD5 when the client sent one."""

    md5: bytes | None
    crc64: int | None


async def put_block(services: Services, call: Call[PutBlock]) -> BlockStaged:
    """It replaces a block that is staged under the same id."""
    max_bytes = intake.block_bytes_max(call.caller.version)
    with_md5 = call.input.digests.md5 is not None
    received = await intake.receive(services, call, max_bytes, md5=with_md5, inline=False)
    try:
        if not received.size_bytes:
            raise errors.invalid_header("Content-Length", "0")
        partition = keys.blob(generation_of(call), call.target.blob)
        # Otherwise a Put Block List could be retried for ever, since something was staged each
        # time.
        await services.disposable.of(Precedence).wait_for_holders(partition)
        while not await _put_staged(services, call, received, partition):
            pass
    except BaseException:
        received.discard(services.store.contents)
        raise
    return BlockStaged(received.md5, None if with_md5 else received.crc64)


async def _put_staged(
    services: Services, call: Call[PutBlock], received: Received, partition: Partition
) -> bool:
    """Return False if the upload has changed since it was read."""
    gateway, reads = uploads.counting_gateway(services), Reads()
    upload = await gates.read_upload(services, partition)
    refs = await _staged_with_id(services, partition, upload, call.input.block_id)
    earlier = reads.add_all(refs, blob_records.STAGED)
    stage = partial(_stage, call, received, earlier)
    try:
        alone = partial(stage, OwnCount(gateway))
        await changing.change_blob(services, call, alone, reads, gateway_keys.upload(gateway))
    except uploads.ShareNeeded:
        read = await uploads.read_all(services, partition)
        among_all = CountAmongAll(gateway, read, read.add_others(reads, partition))
        try:
            await changing.change_blob(services, call, partial(stage, among_all), reads)
        except Stale:
            return False
    return True


async def _staged_with_id(
    services: Services, partition: Partition, upload: Upload | None, block_id: bytes
) -> tuple[Ref, ...]:
    if upload is None:
        return ()
    first, until = keys.staged_as(upload.number, block_id)
    items = await services.store.read_range(partition, True, first, until, _EARLIER_MAX)
    return tuple(Ref(partition, Key(True, item.name)) for item in items)


def _stage(
    call: Call[PutBlock],
    received: Received,
    earlier: ReadAll[StagedBlock],
    count: _Count,
    state: BlobState,
    change: BlobChange,
) -> None:
    # Verified here, after the guard: the order of refusals must not depend on the body's size.
    request = call.input
    intake.verify(request.digests, received)
    refuse_pending_copy(state.head)
    refuse_archived(state.head)
    refuse_overwrite(call, state.head)
    block_id, more = request.block_id, 1
    rules.check_id_length(block_id, None if state.upload is None else state.upload.id_bytes)
    upload = count.upload(state, change, len(block_id))
    for ref, block in zip(earlier.refs, state.found[earlier], strict=True):
        # Blocks that an ended upload staged may belong to the blob by now.
        if block is not None and keys.staged_upload(ref.key.name) == upload.number:
            change.replace_staged(ref.key, block.content)
            more -= 1
    count.add(upload, more, state, change)
    content = received.content
    assert content is not None
    staged = StagedBlock(received.size_bytes, content)
    change.put(keys.staged(upload.number, block_id, content), blob_records.STAGED.encode(staged))
    change.adopt(content)
    # A soft-deleted head stays in its place until a list is committed.
    if state.head is None and state.deleted_head is None:
        change.put_head(_uncommitted(change.stamp))


def _uncommitted(stamp: int) -> BlobRecord:
    """Return the head of a blob that has staged blocks only."""
    return BlobRecord(BlobKind.BLOCK, False, stamp, stamp, stamp, 0, EMPTY, NO_PROPERTIES)


class PutBlockList(msgspec.Struct, frozen=True):
    """(kind, base64 id) of every entry, and the attributes of the new blob. `digests` and
    `received` are of the XML: what the client declared and what arrived."""

    blocks: Sequence[tuple[BlockListKind, str]]
    properties: ContentProperties = NO_PROPERTIES
    metadata: Metadata = ()
    tier: str | None = None
    tags: Metadata = ()
    digests: Digests = NO_DIGESTS
    received: Received | None = None
    immutability: Immutability | None = None


class _BlocksRead(msgspec.Struct, frozen=True):
    """The blocks that a list may name, and the state that must be unchanged at the commit."""

    body: Body
    upload: UploadRead
    committed: StoredBlockList
    staged: dict[bytes, StagedBlock]


async def put_block_list(services: Services, call: Call[PutBlockList]) -> BlobWritten:
    request = call.input
    rules.require_list_length(len(request.blocks))
    # Checked before the blocks are read: a refused caller learns nothing about them.
    await views.check_blob(services, call)
    if request.received is not None:
        intake.verify(request.digests, request.received)
    turn = ListTurn(services, call)
    with services.disposable.of(Precedence).hold(keys.blob(generation_of(call), call.target.blob)):
        try:
            return await _commit_in_turn(services, call, turn)
        except BaseException:
            # Also of a client that leaves: others would wait for a list that never comes.
            await to_its_end(turn.give_up())
            raise


async def _commit_in_turn(
    services: Services, call: Call[PutBlockList], turn: ListTurn
) -> BlobWritten:
    retried_read = rereading(services, call)
    while True:
        try:
            return await _commit(services, call, await _read_blocks(services, call, retried_read))
        except (Stale, ContentMissing) as reason:
            await retried_read.prepare_retry(reason)
            await turn.note_refusal()


async def _read_blocks(
    services: Services, call: Call[Any], retried_read: RetriedRead
) -> _BlocksRead:
    partition = keys.blob(generation_of(call), call.target.blob)
    reads = Reads()
    head_read = reads.add(Ref(partition, keys.HEAD_KEY), blob_records.BLOB)
    upload_read = reads.add(Ref(partition, keys.UPLOAD_KEY), blob_records.UPLOAD)
    found = await services.read(reads)
    head = blob_records.shown(found[head_read])
    # Before the blocks: one that is staged later has changed a record since.
    upload = await uploads.read_others(services, partition, found[upload_read])
    body = EMPTY if head is None else head.body
    retried_read.note_body(body)
    committed = await body.blocks(BodyPlace(services.store, partition))
    staged = await _staged(services, partition, upload.first)
    return _BlocksRead(body, upload, committed, staged.blocks)


class _Staged(NamedTuple):
    """The staged blocks of an upload, the latest of each id.

    `is_consistent`: they were read in one page, so they are a consistent snapshot.
    """

    blocks: dict[bytes, StagedBlock]
    is_consistent: bool


async def _staged(services: Services, partition: Partition, upload: Upload | None) -> _Staged:
    blocks: dict[bytes, StagedBlock] = {}
    if upload is None:
        return _Staged(blocks, True)
    first, until = begin, _ = keys.staged_range(upload.number)
    while True:
        page = await services.store.read_range(partition, True, first, until, _PAGE_RECORDS)
        await services.turns.run(_decoded(page, blocks))
        if len(page) < _PAGE_RECORDS:
            return _Staged(blocks, first == begin)
        first = page[-1].name + b"\0"


def _decoded(page: Sequence[Item], blocks: dict[bytes, StagedBlock]) -> Steps[None]:
    for part in parts(page, _BLOCKS_AT_ONCE):
        for item in part:
            blocks[keys.staged_id(item.name)] = blob_records.STAGED.decode(item.value)
        yield


def _listed_blocks(request: PutBlockList, blocks_read: _BlocksRead) -> Steps[StoredBlockList]:
    """Return the blocks that the list names, in its order."""
    present = dict[bytes, ListedBlock]()
    for segment in blocks_read.committed.segments:
        for one in segment.blocks():
            present.setdefault(one.id, one)
        yield
    staged = dict[bytes, ListedBlock]()
    for several in parts(blocks_read.staged.items(), _BLOCKS_AT_ONCE):
        for block_id, block in several:
            staged[block_id] = ListedBlock(block_id, block.size_bytes, block.content)
        yield
    chosen = ListWriter()
    yield from chosen.add(rules.named_blocks(request.blocks, rules.block_sources(present, staged)))
    return chosen.end()


async def _commit(
    services: Services, call: Call[PutBlockList], blocks_read: _BlocksRead
) -> BlobWritten:
    partition, reads = keys.blob(generation_of(call), call.target.blob), Reads()
    others = blocks_read.upload.add_others(reads, partition)
    try:
        chosen = await services.turns.run(_listed_blocks(call.input, blocks_read))
    except StorageError as refusal:
        error = refusal
        await changing.change_blob(
            services,
            call,
            lambda state, change: _refuse(call, blocks_read, others, state, error),
            reads,
        )
        raise
    body = await make_list(services.store.contents, chosen)
    try:
        return await changing.change_blob(
            services,
            call,
            lambda state, change: _replace(call, blocks_read, others, body, state, change),
            reads,
        )
    except BaseException:
        body.discard(services.store.contents)
        raise


def _require_current(blocks_read: _BlocksRead, others: ReadAll[Upload], state: BlobState) -> None:
    body = EMPTY if state.head is None else state.head.body
    # The whole upload is compared: the list may name a block that was staged meanwhile.
    if body != blocks_read.body or not blocks_read.upload.is_present(state, others):
        raise Stale


def _refuse(
    call: Call[PutBlockList],
    blocks_read: _BlocksRead,
    others: ReadAll[Upload],
    state: BlobState,
    error: StorageError,
) -> None:
    """Refuse a list that names missing blocks, at the serial point too.

    Another list may have committed the missing block while this one was being built.
    """
    refuse_pending_copy(state.head)
    refuse_archived(state.head)
    refuse_overwrite(call, state.head)
    _require_current(blocks_read, others, state)
    raise error


def _replace(
    call: Call[PutBlockList],
    blocks_read: _BlocksRead,
    others: ReadAll[Upload],
    body: NewBody,
    state: BlobState,
    change: BlobChange,
) -> BlobWritten:
    _require_current(blocks_read, others, state)
    refuse_archived(state.head)
    request = call.input
    head = replace_head(
        call,
        state,
        change,
        new=body,
        properties=request.properties,
        metadata=request.metadata,
        tier=request.tier,
        tags=request.tags,
        immutability=request.immutability,
    )
    received = request.received
    md5, crc64 = (None, None) if received is None else (received.md5, received.crc64)
    return BlobWritten(change.stamp, change.stamp, md5, crc64, version=head.version)


class GetBlockList(msgspec.Struct, frozen=True):
    committed: bool = True
    uncommitted: bool = False


class BlockItem(msgspec.Struct, frozen=True, gc=False):
    """`id` is in base64."""

    id: str
    size_bytes: int


class BlockList(msgspec.Struct, frozen=True):
    """A list that was not requested is None."""

    view: BlobView
    committed: tuple[BlockItem, ...] | None
    uncommitted: tuple[BlockItem, ...] | None


class _StagedMeanwhile(Stale):
    """Blocks were staged while several pages of them were read."""


async def get_block_list(services: Services, call: Call[GetBlockList]) -> BlockList:
    """Of a blob (also one with only uncommitted blocks), a snapshot or a version.

    The uncommitted blocks are a consistent snapshot, however many they are.
    """
    partition = keys.blob(generation_of(call), call.target.blob)
    retried_read = rereading(services, call)
    with ExitStack() as precedence:
        takes = False
        while True:
            reads = Reads()
            upload = reads.add(Ref(partition, keys.UPLOAD_KEY), blob_records.UPLOAD)
            view = await views.view_blob(services, call, reads, wait=False)
            tiers.require_online(view.blob.tier)
            retried_read.note_body(view.blob.body)
            read = await uploads.read_others(services, partition, view.found[upload])
            try:
                return await _lists(services, call, partition, view, read)
            except (Stale, ContentMissing) as reason:
                # Blocks were committed or swept during the read. Read the present state.
                await retried_read.prepare_retry(reason)
                if isinstance(reason, _StagedMeanwhile) and not takes:
                    # Otherwise it could be retried for ever, since something was staged each time.
                    precedence.enter_context(services.disposable.of(Precedence).hold(partition))
                    takes = True


async def _lists(
    services: Services,
    call: Call[GetBlockList],
    partition: Partition,
    view: BlobView,
    upload: UploadRead,
) -> BlockList:
    committed = uncommitted = None
    if call.input.committed:
        listed = await view.blob.body.blocks(BodyPlace(services.store, partition))
        committed = tuple(await services.turns.run(_committed_items(listed)))
    # Public access shows committed blocks only, whatever the client requests.
    if call.input.uncommitted and not call.caller.grant.anonymous:
        uncommitted = await _uncommitted_items(services, partition, view, upload)
    return BlockList(view, committed, uncommitted)


async def _uncommitted_items(
    services: Services, partition: Partition, view: BlobView, upload: UploadRead
) -> tuple[BlockItem, ...]:
    if view.past is not None or copies.is_pending(view.blob.copy):
        return ()
    staged = await _staged(services, partition, upload.first)
    now = await uploads.read_again(services, partition, upload)
    if (now.first and now.first.number) != (upload.first and upload.first.number):
        raise Stale
    if now != upload and not staged.is_consistent:
        raise _StagedMeanwhile
    return tuple(await services.turns.run(_staged_items(staged.blocks)))


def _committed_items(listed: StoredBlockList) -> Steps[list[BlockItem]]:
    items: list[BlockItem] = []
    for segment in listed.segments:
        items += [_item(block.id, block.size_bytes) for block in segment.blocks()]
        yield
    return items


def _staged_items(staged: Mapping[bytes, StagedBlock]) -> Steps[list[BlockItem]]:
    """Return the items in the order of their ids."""
    items: list[BlockItem] = []
    for part in parts(staged.items(), _BLOCKS_AT_ONCE):
        items += [_item(block_id, block.size_bytes) for block_id, block in part]
        yield
    return sorted(items, key=lambda item: item.id)


def _item(block_id: bytes, size_bytes: int) -> BlockItem:
    return BlockItem(rules.block_id_text(block_id), size_bytes)
