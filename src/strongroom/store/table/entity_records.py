"""The records of an entity: a head that scans return, and the chunks of a large one.

Lives here: the split and its reverse.

A record is a version byte, the Timestamp (8 bytes), the number of chunks that follow it (1 byte),
and the fragment or its beginning. A chunk has the bytes that follow.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from strongroom.semantics.table.entities import StoredEntity
from strongroom.store.core.records import DamagedRecord

_VERSION: Final = 1
_PREFIX: Final = struct.Struct(">BQB")
PREFIX_BYTES: Final = _PREFIX.size
TIMESTAMP_AT: Final = 1
TIMESTAMP_BYTES: Final = 8
_TIMESTAMP: Final = "xQx"  # only the Timestamp of a prefix
HEAD_BYTES_MAX: Final = 48 * 1024
CHUNK_BYTES_MAX: Final = 60 * 1024
CHUNKS_MAX: Final = 255


class EntityHead(NamedTuple):
    """A decoded head record. If `chunks` is not 0, the rest of `fragment` is in that many
    chunks."""

    timestamp: int
    chunks: int
    fragment: bytes


def encode(stored: StoredEntity) -> list[bytes]:
    """The values of the head record and of the chunks."""
    fragment = stored.fragment
    if len(fragment) <= HEAD_BYTES_MAX:
        return [_PREFIX.pack(_VERSION, stored.timestamp, 0) + fragment]
    rest = fragment[HEAD_BYTES_MAX:]
    chunks = [rest[i : i + CHUNK_BYTES_MAX] for i in range(0, len(rest), CHUNK_BYTES_MAX)]
    prefix = _PREFIX.pack(_VERSION, stored.timestamp, len(chunks))
    return [prefix + fragment[:HEAD_BYTES_MAX], *chunks]


def timestamp_bytes(ticks: int) -> bytes:
    """Return a Timestamp as a head record stores it at TIMESTAMP_AT: it sorts as the ticks do."""
    return ticks.to_bytes(TIMESTAMP_BYTES, "big")


def head(value: bytes) -> EntityHead:
    if len(value) < PREFIX_BYTES or value[0] != _VERSION:
        raise DamagedRecord(f"an entity's record begins with {value[:1]!r}")
    _, timestamp, chunks = _PREFIX.unpack_from(value)
    return EntityHead(timestamp, chunks, value[PREFIX_BYTES:])


class _HeadCodec:
    """Decodes head records, as a `Codec` does."""

    def decode(self, data: bytes, /) -> EntityHead:
        return head(data)


HEAD: Final = _HeadCodec()


def small(values: Sequence[bytes]) -> tuple[Sequence[int], list[bytes]] | None:
    """The Timestamps and the fragments of head records (at least one), in their order.

    None when one of them has chunks, and so is incomplete.
    """
    prefixes = b"".join([value[:PREFIX_BYTES] for value in values])
    versions, chunks = prefixes[::PREFIX_BYTES], prefixes[PREFIX_BYTES - 1 :: PREFIX_BYTES]
    if len(prefixes) < PREFIX_BYTES * len(values) or set(versions) != {_VERSION}:
        for value in values:
            head(value)  # raises for the damaged one
    if any(chunks):
        return None
    timestamps = struct.unpack(f">{_TIMESTAMP * len(values)}", prefixes)
    return timestamps, [value[PREFIX_BYTES:] for value in values]


def any_large(values: Sequence[bytes]) -> bool:
    """Whether one of these may be the head of an entity with chunks, or a chunk."""
    return max(map(len, values), default=0) > HEAD_BYTES_MAX


def whole(found: EntityHead, chunks: Sequence[bytes]) -> StoredEntity:
    """All chunks in order. Raises: DamagedRecord when some are missing."""
    if len(chunks) != found.chunks:
        raise DamagedRecord(f"an entity has {len(chunks)} of {found.chunks} chunks")
    return StoredEntity(found.timestamp, b"".join((found.fragment, *chunks)))
