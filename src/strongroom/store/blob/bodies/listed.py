"""A body made of blocks, which an immutable list names.

Lives here: where a list is stored, and how one is made: of blocks that clients have staged, or by
copying blocks.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import ClassVar, Final

import msgspec

from strongroom.engines.base import ContentMissing, Contents, Ref
from strongroom.slices import SliceTurns, Steps, run_to_completion
from strongroom.store.blob.bodies.blocks import ListedBlock, ListWriter, StoredBlockList
from strongroom.store.blob.bodies.body import (
    Body,
    BodyChange,
    BodyFindings,
    BodyPlace,
    Feed,
    InspectedBody,
    NamedParts,
    OpenBody,
    P,
    ReadSpan,
)
from strongroom.store.blob.bodies.reading import read_content, read_spans
from strongroom.store.blob.bodies.received import NO_BYTES, Received, keep
from strongroom.store.core import keys

# Consecutive blocks of a copy are stored together up to a fixed size, or to a share of the whole if
# that is larger. So no copy needs more contents than one commit can adopt.
GROUP_BYTES: Final = 64 * 1024 * 1024
GROUPS_MAX: Final = 200


class Listed(Body, frozen=True, array_like=True, tag=3):
    """`count` blocks. Their list is stored in the hidden record of `number` (keys.block_list) or,
    when it is long, in the content `list_content`. It never changes, and the head and its snapshots
    may share it."""

    number: int
    count: int
    list_content: int | None = None

    is_shared: ClassVar[bool] = True
    is_in_parts: ClassVar[bool] = True

    async def open(
        self, place: BodyPlace, offset: int, length: int, take: ReadSpan[P]
    ) -> OpenBody[P]:
        """Contents are pinned one after another; a registered reader keeps those that are still to
        be read."""
        turns, blocks = place.store.turns, await self.blocks(place)
        left = await turns.run(blocks.locate(offset, length))
        pieces = read_spans(place.store, left, take)
        return OpenBody(pieces, None, left, functools.partial(copy_blocks, turns, blocks))

    async def blocks(self, place: BodyPlace) -> StoredBlockList:
        if self.list_content is not None:
            return StoredBlockList.decode(await read_content(place.store, self.list_content))
        (record,) = await place.store.read([Ref(place.partition, keys.block_list(self.number))])
        if record is None:
            raise ContentMissing(f"block list {self.number}")
        return StoredBlockList.decode(record.value)

    @property
    def named(self) -> NamedParts:
        if self.list_content is None:
            return NamedParts((keys.block_list(self.number),))
        return NamedParts((), (self.list_content,))

    def inspect(self, found: InspectedBody) -> BodyFindings:
        named = self.named.contents
        if self.list_content is None:
            data = found.record(keys.block_list(self.number))
        else:
            data = found.content(self.list_content)
        if data is None:
            return BodyFindings(None, named)
        blocks = StoredBlockList.decode(data)
        count = blocks.count
        problem = f"{found.which} says {self.count} blocks, but has {count}"
        return BodyFindings(
            blocks.size_bytes,
            {*named, *run_to_completion(blocks.contents())},
            () if count == self.count else (problem,),
        )


class NewList(msgspec.Struct, frozen=True):
    """A list that no commit has taken yet. `copied` are contents that the commit adopts with it;
    those of staged blocks are adopted already."""

    count: int
    size_bytes: int
    encoded: Received
    copied: tuple[int, ...] = ()

    crc64: ClassVar[None] = None

    def take(self, change: BodyChange) -> Listed:
        for content in self.copied:
            change.adopt(content)
        encoded, count = self.encoded, self.count
        if encoded.content is not None:
            change.adopt(encoded.content)
            return Listed(change.stamp, count, encoded.content)
        change.put(keys.block_list(change.stamp), encoded.inline)
        return Listed(change.stamp, count)

    def discard(self, contents: Contents) -> None:
        self.encoded.discard(contents)
        for content in self.copied:
            contents.discard(content)


async def make_list(contents: Contents, blocks: StoredBlockList) -> NewList | Received:
    """Without blocks, an empty body."""
    if not blocks.segments:
        return NO_BYTES
    return NewList(blocks.count, blocks.size_bytes, await keep(contents, blocks.encode()))


async def copy_blocks(
    turns: SliceTurns, blocks: StoredBlockList, contents: Contents, feed: Feed
) -> NewList:
    """Store the bytes again in the same blocks. They follow one another in a few contents, so that
    one commit can adopt all of them.

    If it fails, nothing is left behind.
    """
    copied: list[int] = []
    moved = ListWriter()
    try:
        for group in await turns.run(_groups(blocks)):
            size_bytes = sum(block.size_bytes for block in group)
            written = await contents.write(feed.next_bytes(size_bytes), size_bytes)
            copied.append(written.id)
            await turns.run(moved.add(_moved(group, written.id)))
        made = moved.end()
        encoded = await keep(contents, made.encode())
    except BaseException:
        for content in copied:
            contents.discard(content)
        raise
    return NewList(made.count, made.size_bytes, encoded, tuple(copied))


def _moved(blocks: Iterable[ListedBlock], content: int) -> Iterator[ListedBlock]:
    """With their new locations, one after another in a content."""
    offset_bytes = 0
    for block in blocks:
        yield ListedBlock(block.id, block.size_bytes, content, offset_bytes)
        offset_bytes += block.size_bytes


def _groups(blocks: StoredBlockList) -> Steps[list[list[ListedBlock]]]:
    enough_bytes = max(GROUP_BYTES, blocks.size_bytes // GROUPS_MAX)
    groups: list[list[ListedBlock]] = [[]]
    size_bytes = 0
    for segment in blocks.segments:
        for block in segment.blocks():
            if size_bytes >= enough_bytes:
                groups.append([])
                size_bytes = 0
            groups[-1].append(block)
            size_bytes += block.size_bytes
        yield
    return groups
