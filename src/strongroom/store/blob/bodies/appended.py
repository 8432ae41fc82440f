"""The body of an append blob: blocks that were appended one after the other.

Lives here: where the blocks are stored, how one is appended, and the copy of such a body.

Each block has a hidden record under the body's number and the offset at which the block ends
(keys.appended). So an append writes only that record and the head, for any number of blocks. A
range begins with the first record after its offset. Blocks never change, and an append only adds
one after all others. So a stored form is a prefix of every later one, and a snapshot shares the
blocks of the head.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Collection, Sequence
from typing import ClassVar, Final, NamedTuple

import msgspec

from strongroom.engines.base import ContentMissing, Contents, Key
from strongroom.limits import INLINE_BODY_BYTES_MAX
from strongroom.store.blob.bodies.blocks import Span
from strongroom.store.blob.bodies.body import (
    Body,
    BodyChange,
    BodyFindings,
    BodyPlace,
    BodySweep,
    Feed,
    InspectedBody,
    NamedParts,
    OpenBody,
    P,
    ReadSpan,
)
from strongroom.store.blob.bodies.in_record import inspect_bytes, verified
from strongroom.store.blob.bodies.listed import GROUP_BYTES, GROUPS_MAX
from strongroom.store.blob.bodies.received import Received, inline_body
from strongroom.store.core import keys
from strongroom.store.core.records import Codec

# The records of one read hold about this many bytes of small blocks; there are at most so many
# records.
_READ_BYTES: Final = 512 * 1024
_READ_RECORDS_MAX: Final = 1000


class AppendedBlock(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One block: its length, and either its bytes with their CRC64, or its content."""

    size_bytes: int
    data: bytes = b""
    crc64: int = 0
    content: int | None = None


APPENDED: Final = Codec(AppendedBlock)


class _BlockAt(NamedTuple):
    start: int
    block: AppendedBlock


class Appended(Body, frozen=True, array_like=True, tag=6):
    """The blocks of the body `number` up to `size_bytes`; `count` of them were appended. A copy
    keeps the count and has other records, as a rule fewer."""

    number: int
    count: int
    size_bytes: int

    is_shared: ClassVar[bool] = True
    is_in_parts: ClassVar[bool] = True

    async def open(
        self, place: BodyPlace, offset: int, length: int, take: ReadSpan[P]
    ) -> OpenBody[P]:
        """The records are read in pages while the bytes are consumed, so the remaining contents are
        not known: a registered reader keeps all of them."""
        writer = functools.partial(copy_appended, self.count)
        end = offset + length
        blocks = await self._read_blocks(place, offset, end) if length else []
        is_small = all(one.block.content is None for one in blocks)
        if not length or (is_small and _end(blocks) >= end):
            return OpenBody(_joined(blocks, offset, end), None, (), writer)
        return OpenBody(self._pieces(place, blocks, offset, end, take), None, None, writer)

    async def _pieces(
        self, place: BodyPlace, blocks: list[_BlockAt], offset: int, end: int, take: ReadSpan[P]
    ) -> AsyncIterator[P]:
        while offset < end:
            small: list[_BlockAt] = []
            for one in blocks:
                content, stop = one.block.content, min(one.start + one.block.size_bytes, end)
                if content is None:
                    small.append(one)
                    continue
                if small:
                    yield _joined(small, offset, one.start)
                    offset, small = one.start, []
                opened = await place.store.contents.open(content)
                try:
                    span = Span(content, offset - one.start, stop - offset)
                    async for piece in take(opened, span):
                        yield piece
                finally:
                    opened.close()
                offset = stop
            if small:
                stop = min(_end(small), end)
                yield _joined(small, offset, stop)
                offset = stop
            if offset < end:
                blocks = await self._read_blocks(place, offset, end)

    async def _read_blocks(self, place: BodyPlace, offset: int, end: int) -> list[_BlockAt]:
        """From the block with the byte at `offset`, some or all up to `end`. Raises:
        ContentMissing."""
        average_bytes = max(1, self.size_bytes // max(1, self.count))
        few = max(16, _READ_BYTES // average_bytes)
        records = min(_READ_RECORDS_MAX, few, (end - offset) // average_bytes + 2)
        first, until = keys.appended_range(self.number, offset, self.size_bytes)
        page = await place.store.read_range(place.partition, True, first, until, records)
        blocks: list[_BlockAt] = []
        for item in page:
            block = APPENDED.decode(item.value)
            start = keys.appended_end(item.name) - block.size_bytes
            if start > offset if not blocks else start != _end(blocks):
                raise ContentMissing(f"a block of body {self.number} before offset {start}")
            blocks.append(_BlockAt(start, block))
            if _end(blocks) >= end:
                break
        if not blocks:
            raise ContentMissing(f"a block of body {self.number} at offset {offset}")
        return blocks

    @property
    def appended_count(self) -> int:
        return self.count

    def includes(self, earlier: Body) -> bool:
        """A later form of the same body has all blocks of `earlier`."""
        if not isinstance(earlier, Appended):
            return False
        return self.number == earlier.number and self.size_bytes >= earlier.size_bytes

    async def sweep_retired(self, sweep: BodySweep) -> NamedParts:
        """Blocks after this form's end stay: they may belong to forms that did not exist when
        `live` was read."""
        place = sweep.place
        shared = (body for body in sweep.live if isinstance(body, Appended))
        kept = max((body.size_bytes for body in shared if body.number == self.number), default=0)
        first, until = keys.appended_range(self.number, kept, self.size_bytes)
        while first < until:
            page = await place.store.read_range(
                place.partition, True, first, until, _READ_RECORDS_MAX
            )
            for item in page:
                key = Key(True, item.name)
                contents = appended_contents(item.name, item.value)
                await sweep.removal.add(place.partition, (key,), contents)
            if len(page) < _READ_RECORDS_MAX:
                break
            first = page[-1].name + b"\0"
        return self.named

    def inspect(self, found: InspectedBody) -> BodyFindings:
        """A body that was given up may have lost its first blocks already."""
        first, until = keys.appended_range(self.number, 0, self.size_bytes)
        end, is_whole, contents, problems = 0, True, set[int](), list[str]()
        blocks = found.records(first, until)
        for name, value in blocks:
            block = APPENDED.decode(value)
            is_whole = is_whole and keys.appended_end(name) == end + block.size_bytes
            end = keys.appended_end(name)
            contents.update(appended_contents(name, value))
            if block.content is None:
                problems += inspect_bytes(block.data, block.crc64, found).problems
        # A copy may have several records for one long block.
        if len(blocks) > self.count + self.size_bytes // GROUP_BYTES:
            problems.append(f"{found.which} says {self.count} blocks, but has {len(blocks)}")
        is_whole = is_whole and end == self.size_bytes
        return BodyFindings(self.size_bytes if is_whole else None, contents, tuple(problems))


class NewAppended(msgspec.Struct, frozen=True):
    """An append blob's body that no commit has taken yet: empty, or a copy. `count` is the number
    of blocks appended to the source of the copy."""

    parts: tuple[Received, ...] = ()
    count: int = 0

    crc64: ClassVar[None] = None

    @property
    def size_bytes(self) -> int:
        return sum(part.size_bytes for part in self.parts)

    def take(self, change: BodyChange) -> Body:
        end = 0
        for part in self.parts:
            end += part.size_bytes
            _put(change, change.stamp, end, part)
        return Appended(change.stamp, self.count, end)

    def discard(self, contents: Contents) -> None:
        for part in self.parts:
            part.discard(contents)


def append(body: Body, added: Received, change: BodyChange) -> Body:
    """Return the head's new form. The commit adopts the block's content."""
    assert isinstance(body, Appended)
    end = body.size_bytes + added.size_bytes
    _put(change, body.number, end, added)
    return Appended(body.number, body.count + 1, end)


def appended_contents(name: bytes, value: bytes) -> Collection[int]:
    """The content that a block's record names, if any."""
    content = APPENDED.decode(value).content
    return () if content is None else (content,)


async def copy_appended(count: int, contents: Contents, feed: Feed) -> NewAppended:
    """The copy keeps the number of blocks but has few records, so that one commit can take it. A
    block of more than GROUP_BYTES may become several records.

    If it fails, nothing is left behind.
    """
    left_bytes = feed.size_bytes or 0
    part_bytes = max(GROUP_BYTES, -(-left_bytes // GROUPS_MAX))
    parts: list[Received] = []
    try:
        while left_bytes:
            size_bytes = min(part_bytes, left_bytes)
            parts.append(await _copy_part(contents, feed, size_bytes))
            left_bytes -= size_bytes
    except BaseException:
        for part in parts:
            part.discard(contents)
        raise
    return NewAppended(tuple(parts), count)


async def _copy_part(contents: Contents, feed: Feed, size_bytes: int) -> Received:
    chunks = feed.next_bytes(size_bytes)
    if size_bytes <= INLINE_BODY_BYTES_MAX:
        return inline_body(b"".join([chunk async for chunk in chunks]), md5=False)
    written = await contents.write(chunks, size_bytes)
    return Received(written.size_bytes, written.crc64, None, None, written.id)


def _put(change: BodyChange, number: int, end: int, added: Received) -> None:
    if added.content is None:
        block = AppendedBlock(added.size_bytes, added.inline or b"", added.crc64)
    else:
        change.adopt(added.content)
        block = AppendedBlock(added.size_bytes, content=added.content)
    change.put(keys.appended(number, end), APPENDED.encode(block))


def _end(blocks: Sequence[_BlockAt]) -> int:
    """0 without blocks."""
    return blocks[-1].start + blocks[-1].block.size_bytes if blocks else 0


def _joined(blocks: Sequence[_BlockAt], offset: int, end: int) -> bytes:
    """The bytes [offset, end) of blocks whose bytes are in their records. Raises: DataDamaged."""
    if not blocks:
        return b""
    data = b"".join([verified(one.block.data, one.block.crc64) for one in blocks])
    return data[offset - blocks[0].start : end - blocks[0].start]
