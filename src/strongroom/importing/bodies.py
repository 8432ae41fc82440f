"""Makes the bodies of imported blobs from the files of the folder.

Lives here: the check of a record's ranges against its length, and reading them in order. Must not
live here: how a body is stored (store/blob/bodies/), which files there are (folder.py).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from strongroom.engines.base import Contents
from strongroom.importing import conversions
from strongroom.importing.conversions import NotConvertible
from strongroom.importing.documents import (
    BlobDocument,
    BlockDocument,
    ExtentRange,
    PageRangeDocument,
)
from strongroom.importing.folder import ExtentFiles
from strongroom.limits import COMMITTED_BLOCKS_MAX
from strongroom.semantics.blob.pages import PAGE_BYTES
from strongroom.slices import SliceTurns
from strongroom.store.blob.bodies.appended import copy_appended
from strongroom.store.blob.bodies.blocks import ListedBlock, ListWriter
from strongroom.store.blob.bodies.body import NewBody
from strongroom.store.blob.bodies.listed import copy_blocks
from strongroom.store.blob.bodies.pages import NewPages
from strongroom.store.blob.bodies.received import receive
from strongroom.store.core.extents import LEAF_BYTES, Part, store_leaf
from strongroom.values import BlobKind

# About 8 MiB of pages in memory, and one commit.
_LEAVES_AT_ONCE = 128


class _Feed:
    """The bytes of some extents, one after another; see store/blob/bodies/body.py."""

    def __init__(self, files: ExtentFiles, extents: Sequence[ExtentRange]) -> None:
        self.size_bytes: int | None = sum(extent.count for extent in extents)
        self._pieces = chain.from_iterable(map(files.read, extents))
        self._rest = b""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece

    async def next_bytes(self, size_bytes: int) -> AsyncIterator[bytes]:
        while size_bytes:
            piece = self._rest or next(self._pieces)
            taken, self._rest = piece[:size_bytes], piece[size_bytes:]
            size_bytes -= len(taken)
            yield taken


class PageRun(NamedTuple):
    """Pages of one leaf of a map: the offset in the blob, and the bytes' location."""

    start: int
    extent: ExtentRange


def extents_of(blob: BlobDocument, kind: BlobKind) -> tuple[ExtentRange, ...]:
    """Return the ranges of a block or append blob, which add up to its length. Raises
    NotConvertible."""
    blocks = blob.committed_blocks_in_order
    if blocks:
        ranges = tuple(block.persistency for block in blocks)
        if any(block.size != block.persistency.count for block in blocks):
            raise NotConvertible("a block's length is not that of its bytes")
    elif blob.persistency is not None and kind is BlobKind.BLOCK:
        ranges = (blob.persistency,)
    else:
        ranges = ()
    length = sum(extent.count for extent in ranges)
    if length != blob.properties.content_length:
        stated = blob.properties.content_length
        raise NotConvertible(f"its length is {stated}, but its bytes are {length}")
    return ranges


async def new_body(
    contents: Contents, turns: SliceTurns, files: ExtentFiles, blob: BlobDocument, kind: BlobKind
) -> NewBody:
    """Store the bytes of a block or append blob.

    Raises: NotConvertible, ExtentRefused; Full, Unavailable.
    """
    extents = extents_of(blob, kind)
    for extent in extents:
        files.check(extent)
    feed = _Feed(files, extents)
    blocks = blob.committed_blocks_in_order or ()
    if kind is BlobKind.APPEND:
        return await copy_appended(len(blocks), contents, feed)
    if not blocks:
        return await receive(contents, feed, md5=False)
    return await _listed(contents, turns, feed, blocks)


async def _listed(
    contents: Contents, turns: SliceTurns, feed: _Feed, blocks: Sequence[BlockDocument]
) -> NewBody:
    if len(blocks) > COMMITTED_BLOCKS_MAX:
        raise NotConvertible(f"it has more than {COMMITTED_BLOCKS_MAX} blocks")
    listed = [ListedBlock(conversions.block_id(block.name), block.size, 0) for block in blocks]
    writer = ListWriter()
    await turns.run(writer.add(listed))
    return await copy_blocks(turns, writer.end(), contents, feed)


def page_batches(blob: BlobDocument, files: ExtentFiles) -> Iterator[list[list[PageRun]]]:
    """Yield the pages of a page blob by leaf, some leaves at a time. All ranges are checked before
    the first. Raises NotConvertible, ExtentRefused."""
    size_bytes = conversions.page_blob_size(blob.properties.content_length)
    ranges = sorted(blob.page_ranges_in_order or (), key=lambda one: one.start)
    end = 0
    for one in ranges:
        if one.start < end or one.end < one.start:
            raise NotConvertible("its page ranges overlap")
        end = one.end + 1
        if one.start % PAGE_BYTES or end % PAGE_BYTES:
            raise NotConvertible("its page ranges are not made of whole pages")
        if one.persistency.count < end - one.start:
            raise NotConvertible("a page range is longer than its bytes")
        files.check(one.persistency)
    return _batches(ranges, size_bytes)


def _batches(ranges: Sequence[PageRangeDocument], size_bytes: int) -> Iterator[list[list[PageRun]]]:
    batch: list[list[PageRun]] = []
    for run in chain.from_iterable(_runs(one, size_bytes) for one in ranges):
        if batch and batch[-1][-1].start // LEAF_BYTES == run.start // LEAF_BYTES:
            batch[-1].append(run)
            continue
        if len(batch) == _LEAVES_AT_ONCE:
            yield batch
            batch = []
        batch.append([run])
    yield batch


def _runs(pages: PageRangeDocument, size_bytes: int) -> Iterator[PageRun]:
    """Cut a range at the ends of leaves. Pages beyond the blob's end, which a shrunken blob keeps
    there, are left out."""
    at, end, where = pages.start, min(pages.end + 1, size_bytes), pages.persistency
    while at < end:
        stop = min(end, at - at % LEAF_BYTES + LEAF_BYTES)
        yield PageRun(at, ExtentRange(where.id, where.offset + at - pages.start, stop - at))
        at = stop


async def new_pages(
    contents: Contents, files: ExtentFiles, leaves: Sequence[Sequence[PageRun]]
) -> tuple[Part, ...]:
    """Store the pages of some leaves. Raises ExtentRefused; Full, Unavailable."""
    made: list[Part] = []
    try:
        for runs in leaves:
            first = runs[0].start - runs[0].start % LEAF_BYTES
            data = bytearray(runs[-1].start + runs[-1].extent.count - first)
            for run in runs:
                data[run.start - first : run.start - first + run.extent.count] = b"".join(
                    files.read(run.extent)
                )
            laid = _joined([(run.start - first, run.extent.count) for run in runs])
            made.append(await store_leaf(contents, first, bytes(data), laid))
    except BaseException:
        NewPages(0, tuple(made)).discard(contents)
        raise
    return tuple(made)


def _joined(runs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return (start, end) of runs given as (start, length); those that meet become one."""
    joined: list[tuple[int, int]] = []
    for start, length in runs:
        if joined and joined[-1][1] == start:
            joined[-1] = joined[-1][0], start + length
        else:
            joined.append((start, start + length))
    return joined
