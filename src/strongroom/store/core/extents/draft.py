"""The preparation of a write or clear: its bytes become contents before the commit that names them.

Lives here: `receive`, `clear` and `resize`, which make a `Draft`; what a draft reads and stores;
how a leaf is rewritten.

Whole leaves go to contents as they arrive, a batch of them in one write and one sync. Only the
parts of leaves at both ends are kept in memory until it is known whether their leaf is to be
rewritten.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Sequence
from types import TracebackType
from typing import Final

from strongroom.engines.base import ContentMissing, Contents, Record, Ref, StorageEngine
from strongroom.store.core.extents import change
from strongroom.store.core.extents import leaf as leaves
from strongroom.store.core.extents.change import Mutation, Part
from strongroom.store.core.extents.fetch import fetch
from strongroom.store.core.extents.leaf import LeafSpan, Run
from strongroom.store.core.extents.model import (
    INLINE_BYTES_MAX,
    LEAF_BYTES,
    OFFSET_MAX,
    WRITE_BYTES_MAX,
    Extents,
    MapPlace,
    clears_of,
    leaf_of,
)

# How many whole leaves are stored together at most, and how many batches of one write at once.
_BATCH_LEAVES: Final = 16
_AT_ONCE: Final = 16
_LATEST: Final = 1 << 64

_Piece = tuple[LeafSpan, bytes | memoryview]
"""A part of a leaf, and its bytes."""


class Draft:
    """A write or clear, until it is committed. Use it as `async with`: if the block fails, the
    contents that it has stored are discarded.

    Arguments:
        spans: the parts of leaves that it changes.
        whole: the stored parts of whole leaves, by leaf.
        ends: the bytes for the other leaves; a clear has none.
        cleared: a clear that is too long to be applied leaf by leaf.
    """

    def __init__(
        self,
        store: StorageEngine,
        place: MapPlace,
        spans: Sequence[LeafSpan],
        whole: dict[int, Part],
        ends: dict[int, bytes],
        cleared: tuple[int, int] | None = None,
    ) -> None:
        self._store = store
        self._place = place
        self._spans = tuple(spans)
        self._whole = whole
        self._ends = ends
        self._cleared = cleared
        self._made: list[Part] = []

    async def __aenter__(self) -> Draft:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self._discard()
            _forget(self._store.contents, self._whole.values())

    def move(self, place: MapPlace) -> None:
        self._place = place

    @property
    def edges(self) -> tuple[Ref, ...]:
        """The records that `prepare` reads: those of leaves that change in part."""
        edges = [self._place.leaf(span.leaf) for span in self._spans if not span.is_whole]
        return (self._place.clears(), *edges) if edges else ()

    async def prepare(
        self, snapshot: int = 0, found: Sequence[Record | None] | None = None
    ) -> Mutation:
        """Store the remaining bytes and return the mutation to decide on. After Outdated, call it
        again.

        Arguments:
            snapshot: the stamp of the newest snapshot of the content, 0 = there is none.
            found: the records of `edges`, if the caller has read them with others.

        Raises: the engine's errors; DamagedRecord, ContentMissing, DataDamaged when a leaf that
        must be rewritten cannot be read.
        """
        edges = [span for span in self._spans if not span.is_whole]
        refs = self.edges
        if found is None:
            found = await self._store.read(refs) if refs else ()
        while edges:
            self._discard()
            pending, *changing = found
            try:
                for span, record in zip(edges, changing, strict=True):
                    await self._make(span, record, pending, snapshot)
                break
            except ContentMissing:
                looked, found = found, await self._store.read(refs)
                if found == looked:
                    raise
        parts = self._whole | {part.span.leaf: part for part in self._made}
        return Mutation(self._place, self._spans, parts, self._cleared)

    async def _make(
        self, span: LeafSpan, record: Record | None, pending: Record | None, snapshot: int
    ) -> None:
        """Store the bytes for a leaf of which a part changes; a plain clear has none."""
        data = self._ends.get(span.leaf, b"")
        versions = leaves.history(leaf_of(record), span.leaf, clears_of(pending), _LATEST)
        extents = change.preview(span, versions, len(data))
        if not leaves.needs_rewrite(extents):
            if data:
                self._made.append(await store_part(self._store.contents, span, data))
            return
        laid = leaves.runs(extents, snapshot)
        whole = await rewritten(self._store, self._place, span, extents, laid, data)
        part = await store_part(self._store.contents, span, whole)
        seen = change.version_of(record), change.version_of(pending)
        self._made.append(part._replace(runs=tuple(laid), seen=seen))

    def _discard(self) -> None:
        _forget(self._store.contents, self._made)
        self._made = []


async def receive(
    store: StorageEngine,
    place: MapPlace,
    offset: int,
    source: AsyncIterable[bytes | memoryview],
    length: int,
) -> Draft:
    """Receive the bytes of a write at any offset.

    Arguments:
        length: in bytes, 1 to WRITE_BYTES_MAX.

    Raises: ValueError for a range beyond the limits of a map, or a source of another length; Full,
    Unavailable; what the source raises.
    """
    if not 0 < length <= WRITE_BYTES_MAX or not 0 <= offset <= OFFSET_MAX - length:
        raise ValueError(f"one write is of 1 to {WRITE_BYTES_MAX} bytes, within {OFFSET_MAX}")
    spans = leaves.spans(offset, length)
    whole: dict[int, Part] = {}
    ends: dict[int, bytes] = {}
    tasks: list[asyncio.Task[list[Part]]] = []
    room = asyncio.Semaphore(_AT_ONCE)
    try:
        async for arrived in _pieces(source, spans):
            ends |= {span.leaf: bytes(data) for span, data in arrived if not span.is_whole}
            whole_leaves = [one for one in arrived if one[0].is_whole]
            for begin in range(0, len(whole_leaves), _BATCH_LEAVES):
                await room.acquire()
                batch = whole_leaves[begin : begin + _BATCH_LEAVES]
                tasks.append(asyncio.ensure_future(_store_whole(store.contents, batch)))
                tasks[-1].add_done_callback(lambda _: room.release())
        for task in tasks:
            whole |= {part.span.leaf: part for part in await task}
    except BaseException:
        for task in tasks:
            task.add_done_callback(functools.partial(_forget_stored, store.contents))
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
    return Draft(store, place, spans, whole, ends)


async def received(
    store: StorageEngine, place: MapPlace, offset: int, data: bytes | memoryview
) -> Draft:
    """As `receive`, of bytes that have all arrived."""
    if 0 < len(data) <= LEAF_BYTES and 0 <= offset <= OFFSET_MAX - len(data):
        spans = leaves.spans(offset, len(data))
        if not any(span.is_whole for span in spans):
            first = spans[0].end - spans[0].start
            parts = (data[:first], data[first:])
            ends = {span.leaf: bytes(part) for span, part in zip(spans, parts, strict=False)}
            return Draft(store, place, spans, {}, ends)
    return await receive(store, place, offset, _at_once(data), len(data))


def clear(store: StorageEngine, place: MapPlace, offset: int, length: int) -> Draft:
    """Make a range of any length a hole. Raises: ValueError for a range beyond the limits of a
    map."""
    if length < 0 or not 0 <= offset <= OFFSET_MAX - length:
        raise ValueError(f"a range lies within the {OFFSET_MAX} bytes of a map")
    if length <= WRITE_BYTES_MAX:
        return Draft(store, place, leaves.spans(offset, length), {}, {})
    return Draft(store, place, (), {}, {}, (offset, offset + length))


def resize(store: StorageEngine, place: MapPlace, before_bytes: int, after_bytes: int) -> Draft:
    """Bytes after a new end are removed, added ones are a hole. Raises: ValueError for a length
    that a map cannot hold."""
    return clear(store, place, after_bytes, max(0, before_bytes - after_bytes))


def end(store: StorageEngine, place: MapPlace) -> Draft:
    """Give up the whole content. Its snapshots stay readable."""
    return clear(store, place, 0, OFFSET_MAX)


async def is_ended(store: StorageEngine, place: MapPlace) -> bool:
    """Whether the whole content was given up, and a sweep has not finished with it."""
    (record,) = await store.read([place.clears()])
    return any(one.is_end for one in clears_of(record))


async def store_leaf(
    contents: Contents, offset: int, data: bytes, ranges: Sequence[tuple[int, int]]
) -> Part:
    """Store parts of a new leaf.

    Arguments:
        offset: the leaf's offset in the content, a multiple of LEAF_BYTES.
        data: the leaf's bytes; fewer where the content ends.
        ranges: (start, end) in the leaf of each range to allocate, in order; at least one.
    """
    laid = tuple(Run(start, end - start, leaves.NOW) for start, end in ranges)
    span = LeafSpan(offset // LEAF_BYTES, 0, len(data))
    kept = b"".join(data[start:end] for start, end in ranges)
    part = await store_part(contents, span, kept)
    return part._replace(runs=laid)


async def rewritten(
    store: StorageEngine,
    place: MapPlace,
    span: LeafSpan,
    extents: Extents,
    laid: Sequence[Run],
    data: bytes = b"",
) -> bytes:
    """Return the bytes of a leaf's runs, one after another. `extents` are the leaf's new ones; the
    coming bytes are `data`, at the beginning of `span`."""
    stored = [one for one in extents if not change.is_pending_content(one.store)]
    fetched = await fetch(store, place, [(span.leaf, one.store) for one in stored])
    image = bytearray(LEAF_BYTES)
    for one in stored:
        image[one.start : one.end] = fetched[span.leaf, one.store][
            one.offset : one.offset + one.length
        ]
    image[span.start : span.start + len(data)] = data
    return b"".join(image[run.start : run.start + run.length] for run in laid)


async def store_part(contents: Contents, span: LeafSpan, data: bytes) -> Part:
    """Prepare the bytes for one leaf: few stay in memory, more become a content."""
    if len(data) <= INLINE_BYTES_MAX:
        return Part(span, len(data), 0, data)
    written = await contents.write(_once(data), len(data))
    return Part(span, len(data), written.id, b"")


async def _store_whole(contents: Contents, batch: Sequence[_Piece]) -> list[Part]:
    written = await contents.write_all([data for _, data in batch])
    return [
        Part(span, LEAF_BYTES, one.id, b"") for (span, _), one in zip(batch, written, strict=True)
    ]


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def _at_once(data: bytes | memoryview) -> AsyncIterator[bytes | memoryview]:
    yield data


async def _pieces(
    source: AsyncIterable[bytes | memoryview], spans: Sequence[LeafSpan]
) -> AsyncIterator[list[_Piece]]:
    """The spans that each chunk of the source completes, with their bytes.

    A span that lies in one chunk is a part of that chunk; the bytes of others are copied once.

    Raises: ValueError when the source ends early or late.
    """
    rest = iter(spans)
    span: LeafSpan | None = next(rest)
    held: list[bytes] = []
    missing = 0 if span is None else span.end - span.start
    async for chunk in source:
        left, done = memoryview(chunk), list[_Piece]()
        while left:
            if span is None:
                raise ValueError("a write is longer than declared")
            part, left = left[:missing], left[missing:]
            missing -= len(part)
            if missing or held:
                # Many small chunks, which are held until their span is complete, take no more
                # memory than their bytes.
                held.append(bytes(part))
            if missing:
                break
            done.append((span, b"".join(held) if held else part))
            held, span = [], next(rest, None)
            missing = 0 if span is None else span.end - span.start
        if done:
            yield done
        del chunk, left, done  # not kept while more is waited for
    if span is not None:
        raise ValueError("a write is shorter than declared")


def _forget_stored(contents: Contents, task: asyncio.Task[list[Part]]) -> None:
    """Discard what a task has stored, whenever it ends."""
    if not task.cancelled() and task.exception() is None:
        _forget(contents, task.result())


def _forget(contents: Contents, parts: Iterable[Part]) -> None:
    for part in parts:
        if part.content:
            contents.discard(part.content)
