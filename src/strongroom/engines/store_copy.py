"""The copying of a whole store, and the proof that the copy is equal.

Lives here: the order of the steps, checksums, digests. Must not live here: how engines read and
write (their transfer modules); it knows none of them.

    1. Contents, then records, go over in batches; every body is verified on its way.
    2. Source and copy are read anew, each by itself, and so is every body of the copy.
    3. Only if both are equal, the copy becomes a store that servers open.

A copy that was cut before step 3 goes on at the place of its last batch.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Final

import msgspec

from strongroom.engines.base import VERIFIED_BYTES_MAX
from strongroom.engines.checksum import crc64
from strongroom.engines.transfer import (
    PAGE_BYTES,
    ContentSum,
    CopyPlace,
    CopyRefused,
    SourceDamaged,
    StoredRecord,
    TransferSource,
    TransferTarget,
)

Progress = Callable[[int, int], None]
"""progress(bytes done, about all bytes)."""

_RECORD: Final = struct.Struct(">?HHHqI")
_CONTENT: Final = struct.Struct(">QQQ")
_DIGEST_BYTES: Final = 32


class StoreDigest(msgspec.Struct, frozen=True):
    """A store in short.

    Attributes:
        body_bytes: the length of all contents.
        digest: of the address, version and value of all records, and of the id, length and checksum
            of all contents.
        highest: the greatest version or id.
    """

    records: int
    contents: int
    body_bytes: int
    digest: str
    highest: int


class CopyReport(msgspec.Struct, frozen=True):
    """What was copied, and verified.

    Attributes:
        resumed: whether it went on with a copy that had been cut.
    """

    source: str
    target: str
    records: int
    contents: int
    body_bytes: int
    digest: str
    resumed: bool


async def copy_store(
    source: TransferSource, target: TransferTarget, progress: Progress | None = None
) -> CopyReport:
    """Copy a store, or go on with a copy that was cut; verify it, and finish it.

    Raises: CopyRefused: one of the two cannot be used, the source is damaged, or the copy differs;
        EngineError, OSError: as source and target raise them.
    """
    place = await target.begin(source.state, source.traits)
    bodies_bytes, records_bytes = await source.size_bytes()
    meter = _Meter(progress, 2 * bodies_bytes + 3 * records_bytes)
    await _copy_contents(source, target, place, meter)
    await _copy_records(source, target, place, meter)
    meter.reach(bodies_bytes + records_bytes)
    await source.ensure_unchanged()
    found = await _verified(source, target, meter)
    meter.end()
    await source.ensure_unchanged()
    await target.finish(max(source.traits.ceiling, found.highest))
    return CopyReport(
        source=source.state.shown,
        target=target.shown,
        records=found.records,
        contents=found.contents,
        body_bytes=found.body_bytes,
        digest=found.digest,
        resumed=place != CopyPlace(),
    )


async def _copy_contents(
    source: TransferSource, target: TransferTarget, place: CopyPlace, meter: _Meter
) -> None:
    async for page in source.contents(place.content):
        for batch in _batches(page):
            if batch[0].size_bytes > VERIFIED_BYTES_MAX:
                await target.put_long(batch[0], _checked_chunks(source, batch[0]))
            else:
                await target.put_bodies(await _checked_bodies(source, batch))
            meter.add(sum(one.size_bytes for one in batch))


async def _copy_records(
    source: TransferSource, target: TransferTarget, place: CopyPlace, meter: _Meter
) -> None:
    async for page in source.records(place.record):
        await target.put_records(page)
        meter.add(sum(map(_size_bytes, page)))


def _batches(contents: Sequence[ContentSum]) -> Iterator[Sequence[ContentSum]]:
    """A long content is a batch of its own; of the others, as many as fit."""
    batch: list[ContentSum] = []
    size_bytes = 0
    for one in contents:
        is_long = one.size_bytes > VERIFIED_BYTES_MAX
        if batch and (is_long or size_bytes + one.size_bytes > PAGE_BYTES):
            yield batch
            batch, size_bytes = [], 0
        if is_long:
            yield (one,)
        else:
            batch.append(one)
            size_bytes += one.size_bytes
    if batch:
        yield batch


async def _checked_bodies(
    source: TransferSource, contents: Sequence[ContentSum]
) -> list[tuple[ContentSum, bytes]]:
    bodies = await source.bodies(contents)
    for content, body in zip(contents, bodies, strict=True):
        _check(source, content, len(body), crc64(body))
    return list(zip(contents, bodies, strict=True))


async def _checked_chunks(source: TransferSource, content: ContentSum) -> AsyncIterator[bytes]:
    checksum = size_bytes = 0
    async for chunk in source.chunks(content):
        checksum = crc64(chunk, checksum)
        size_bytes += len(chunk)
        yield chunk
    _check(source, content, size_bytes, checksum)


def _check(source: TransferSource, content: ContentSum, size_bytes: int, checksum: int) -> None:
    if (size_bytes, checksum) != (content.size_bytes, content.crc64):
        raise SourceDamaged(
            f"{source.state.shown} is damaged: content {content.id} of {content.size_bytes} bytes "
            "differs from its checksum"
        )


async def _verified(source: TransferSource, target: TransferTarget, meter: _Meter) -> StoreDigest:
    """Read both anew. Raises: CopyRefused: they differ."""
    expected = await _digest(source, meter, reads_bodies=False)
    written = await target.written()
    try:
        found = await _digest(written, meter, reads_bodies=True)
    finally:
        await written.close()
    if found != expected:
        raise CopyRefused(
            f"{target.shown} differs from {source.state.shown}: {_shown(found)} instead of "
            f"{_shown(expected)}. It stays unfinished: delete it, and copy anew"
        )
    return found


def _shown(digest: StoreDigest) -> str:
    return (
        f"{digest.records} records and {digest.contents} contents with the digest "
        f"{digest.digest[:16]}"
    )


async def _digest(source: TransferSource, meter: _Meter, *, reads_bodies: bool) -> StoreDigest:
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    records = contents = body_bytes = highest = 0
    async for page in source.records(None):
        for record in page:
            digest.update(_encoded(record))
            highest = max(highest, record.version)
        records += len(page)
        meter.add(sum(map(_size_bytes, page)))
    async for sums in source.contents(0):
        if reads_bodies:
            await _read_bodies(source, sums, meter)
        for one in sums:
            digest.update(_CONTENT.pack(*one))
            body_bytes += one.size_bytes
        contents += len(sums)
        highest = max(highest, sums[-1].id)
    return StoreDigest(records, contents, body_bytes, digest.hexdigest(), highest)


async def _read_bodies(
    source: TransferSource, contents: Sequence[ContentSum], meter: _Meter
) -> None:
    for batch in _batches(contents):
        if batch[0].size_bytes > VERIFIED_BYTES_MAX:
            async for chunk in _checked_chunks(source, batch[0]):
                meter.add(len(chunk))
        else:
            await _checked_bodies(source, batch)
            meter.add(sum(one.size_bytes for one in batch))


def _encoded(record: StoredRecord) -> bytes:
    ((keyspace, partition), (hidden, name)), value, version = record
    lengths = (len(keyspace), len(partition), len(name), version, len(value))
    return b"".join((_RECORD.pack(hidden, *lengths), keyspace, partition, name, value))


def _size_bytes(record: StoredRecord) -> int:
    ((keyspace, partition), (_, name)), value, _ = record
    return len(keyspace) + len(partition) + len(name) + len(value)


class _Meter:
    """Counts what is done, and tells it. It never tells more than all, which is estimated."""

    def __init__(self, progress: Progress | None, total_bytes: int) -> None:
        self._progress = progress
        self._total_bytes = max(1, total_bytes)
        self._done_bytes = 0

    def add(self, size_bytes: int) -> None:
        self.reach(self._done_bytes + size_bytes)

    def end(self) -> None:
        self.reach(self._total_bytes)

    def reach(self, done_bytes: int) -> None:
        """So much is done, whatever was counted."""
        self._done_bytes = done_bytes
        if self._progress is not None:
            self._progress(min(self._done_bytes, self._total_bytes), self._total_bytes)
