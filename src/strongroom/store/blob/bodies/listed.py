"""A body made of blocks, which an immutable list names.

Lives here: where a list lies, and how one is made: of blocks that clients have staged, or by
copying blocks. Must not live here: which blocks a client may name (semantics/blob/blocks.py).
"""

from __future__ import annotations

import asyncio
import functools
from collections import deque
from collections.abc import Sequence
from typing import ClassVar, Final

import msgspec

from strongroom.engines.base import ContentMissing, Contents, Ref
from strongroom.store.blob.bodies.blocks import BLOCK_LIST, ListedBlock, Span, spans
from strongroom.store.blob.bodies.body import (
    Body,
    BodyFindings,
    BodyPlace,
    Change,
    Feed,
    InspectedBody,
    Named,
    OpenBody,
    P,
    Take,
)
from strongroom.store.blob.bodies.reading import read_content, read_spans
from strongroom.store.blob.bodies.received import NO_BYTES, Received, keep
from strongroom.store.core import keys

# Consecutive blocks of a copy are put together up to a fixed size, or to a share of the whole if
# that is larger. So no copy needs more contents than one commit can adopt.
GROUP_BYTES: Final = 64 * 1024 * 1024
GROUPS_MAX: Final = 200
# Of a long list others get a turn after so many: half a millisecond's work.
_SPANS_AT_ONCE: Final = 250


class Listed(Body, frozen=True, array_like=True, tag=3):
    """`count` blocks. Their list lies in the hidden record of `number` (keys.block_list) or, when
    it is long, in the content `list_content`. It never changes, and the head and its snapshots may
    share it."""

    number: int
    count: int
    list_content: int | None = None

    is_shared: ClassVar[bool] = True
    is_in_parts: ClassVar[bool] = True

    async def open(self, place: BodyPlace, offset: int, length: int, take: Take[P]) -> OpenBody[P]:
        """See Body.open. Contents are pinned one after another; a registered reader keeps those
        that are still to be read."""
        blocks = await self.blocks(place)
        left = deque[Span]()
        for span in spans(blocks, offset, length):
            left.append(span)
            if len(left) % _SPANS_AT_ONCE == 0:
                await asyncio.sleep(0)
        pieces = read_spans(place.store.contents, left, take)
        return OpenBody(pieces, None, left, functools.partial(copy_blocks, blocks))

    async def blocks(self, place: BodyPlace) -> tuple[ListedBlock, ...]:
        """See Body.blocks."""
        if self.list_content is not None:
            return BLOCK_LIST.decode(await read_content(place.store.contents, self.list_content))
        (found,) = await place.store.read([Ref(place.partition, keys.block_list(self.number))])
        if found is None:
            raise ContentMissing(f"block list {self.number}")
        return BLOCK_LIST.decode(found.value)

    @property
    def named(self) -> Named:
        """See Body.named."""
        if self.list_content is None:
            return Named((keys.block_list(self.number),))
        return Named((), (self.list_content,))

    def inspect(self, found: InspectedBody) -> BodyFindings:
        """See Body.inspect."""
        named = self.named.contents
        if self.list_content is None:
            data = found.record(keys.block_list(self.number))
        else:
            data = found.content(self.list_content)
        if data is None:
            return BodyFindings(None, named)
        blocks = BLOCK_LIST.decode(data)
        problem = f"{found.which} says {self.count} blocks, but has {len(blocks)}"
        return BodyFindings(
            sum(block.size_bytes for block in blocks),
            {*named, *(block.content for block in blocks)},
            () if len(blocks) == self.count else (problem,),
        )


class NewList(msgspec.Struct, frozen=True):
    """A list that no commit has taken yet. `copied` are contents that the commit adopts with it;
    those of staged blocks are adopted already."""

    blocks: tuple[ListedBlock, ...]
    encoded: Received
    copied: tuple[int, ...] = ()

    crc64: ClassVar[None] = None

    @property
    def size_bytes(self) -> int:
        """The length of all blocks together."""
        return sum(block.size_bytes for block in self.blocks)

    def take(self, change: Change) -> Listed:
        """See NewBody.take."""
        for content in self.copied:
            change.adopt(content)
        encoded, count = self.encoded, len(self.blocks)
        if encoded.content is not None:
            change.adopt(encoded.content)
            return Listed(change.stamp, count, encoded.content)
        change.put(keys.block_list(change.stamp), encoded.inline)
        return Listed(change.stamp, count)

    def discard(self, contents: Contents) -> None:
        """See NewBody.discard."""
        self.encoded.discard(contents)
        for content in self.copied:
            contents.discard(content)


async def make_list(contents: Contents, blocks: tuple[ListedBlock, ...]) -> NewList | Received:
    """Make a body of blocks; of none, an empty one. Raises: Full, Unavailable."""
    if not blocks:
        return NO_BYTES
    return NewList(blocks, await keep(contents, BLOCK_LIST.encode(blocks)))


async def copy_blocks(blocks: Sequence[ListedBlock], contents: Contents, feed: Feed) -> NewList:
    """Store the bytes of a body that is made of `blocks` in the same blocks. They lie one after
    another in a few contents, so that one commit can adopt all of them.

    Raises: what `feed` raises; Full, Unavailable. Nothing is left behind then.
    """
    copied: list[int] = []
    moved: list[ListedBlock] = []
    try:
        for group in _groups(blocks):
            size_bytes = sum(block.size_bytes for block in group)
            written = await contents.write(feed.next_bytes(size_bytes), size_bytes)
            copied.append(written.id)
            offset_bytes = 0
            for block in group:
                moved.append(ListedBlock(block.id, block.size_bytes, written.id, offset_bytes))
                offset_bytes += block.size_bytes
        encoded = await keep(contents, BLOCK_LIST.encode(tuple(moved)))
    except BaseException:
        for content in copied:
            contents.discard(content)
        raise
    return NewList(tuple(moved), encoded, tuple(copied))


def _groups(blocks: Sequence[ListedBlock]) -> list[list[ListedBlock]]:
    total_bytes = sum(block.size_bytes for block in blocks)
    enough_bytes = max(GROUP_BYTES, total_bytes // GROUPS_MAX)
    groups: list[list[ListedBlock]] = [[]]
    size_bytes = 0
    for block in blocks:
        if size_bytes >= enough_bytes:
            groups.append([])
            size_bytes = 0
        groups[-1].append(block)
        size_bytes += block.size_bytes
    return groups
