"""The records of a map, and their codecs.

Lives here: the place of a map, its leaves, extents, stores and pending clears, their bounds, and
their encoding.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from strongroom.engines.base import DataDamaged, Partition, Record, Ref, ref_of
from strongroom.engines.checksum import crc64
from strongroom.limits import INLINE_BODY_BYTES_MAX, KIB, MIB
from strongroom.store.core import keys
from strongroom.store.core.records import Codec, DamagedRecord

LEAF_BYTES: Final = 64 * KIB
OFFSET_MAX: Final = LEAF_BYTES << 32
# The maximum length of one write, and of a clear that is applied leaf by leaf in its commit.
WRITE_BYTES_MAX: Final = 8 * MIB
INLINE_BYTES_MAX: Final = INLINE_BODY_BYTES_MAX
SECTOR_BYTES: Final = 512
# A leaf that would have more than this is rewritten in the same commit.
EXTENTS_MAX: Final = 160
STORES_MAX: Final = 32
# A map with this many pending clears accepts no more until a sweep has applied them.
CLEARS_MAX: Final = 256
_DATA_VERSION: Final = b"\x01"


class MapPlace(NamedTuple):
    """The address of a map: its partition, and its number, the stamp of its creation."""

    partition: Partition
    number: int

    def clears(self) -> Ref:
        return ref_of((self.partition, keys.map_clears(self.number)))

    def leaf(self, leaf: int) -> Ref:
        return ref_of((self.partition, keys.map_leaf(self.number, leaf)))

    def hollow(self, leaf: int) -> Ref:
        """It leads a sweep to a leaf that has holes alone."""
        return ref_of((self.partition, keys.map_leaf(self.number, leaf, keys.MAP_HOLLOW)))

    def data(self, leaf: int, born: int) -> Ref:
        return ref_of((self.partition, keys.map_data(self.number, leaf, born)))


class LeafStore(NamedTuple):
    """Bytes of one leaf that were stored together: a content, or inline data (`content` 0).

    `born` is the stamp of the leaf's first version that named it.
    """

    born: int
    size_bytes: int
    content: int


class Extent(NamedTuple):
    """Allocated bytes [start, start + length) of a leaf, and where they are stored. `written` is
    the stamp of the commit that wrote them."""

    start: int
    length: int
    store: LeafStore
    offset: int
    written: int

    @property
    def end(self) -> int:
        return self.start + self.length


Extents = tuple[Extent, ...]
"""The allocated bytes of a leaf, in order and without overlap."""


class Hole(NamedTuple):
    """The sectors [start, end) of a leaf lost bytes by a clear. `cleared` is its stamp."""

    start: int
    end: int
    cleared: int


Holes = tuple[Hole, ...]
"""Holes of a leaf, in order and without overlap. Part of a hole may be allocated again."""


class Leaf(NamedTuple):
    """One version of a leaf, which is valid from the stamp `since` on."""

    since: int
    extents: Extents
    holes: Holes = ()

    @property
    def is_empty(self) -> bool:
        return not self.extents and not self.holes

    @property
    def is_hollow(self) -> bool:
        return not self.extents and bool(self.holes)


class Clear(msgspec.Struct, frozen=True, array_like=True):
    """The bytes [start, end) of the content became holes with the stamp `stamp`."""

    stamp: int
    start: int
    end: int

    @property
    def is_end(self) -> bool:
        """The whole content was given up."""
        return (self.start, self.end) == (0, OFFSET_MAX)


class Clears(msgspec.Struct, frozen=True, array_like=True):
    """Clears, the oldest first, that are not yet applied to every leaf."""

    pending: tuple[Clear, ...] = ()


class _LeafRecord(msgspec.Struct, frozen=True, array_like=True):
    """The stored form of a leaf. Extents name their store by its index; `written` 0 means the
    store's `born`. A hole counts in sectors. Older records have none."""

    since: int
    stores: tuple[LeafStore, ...]
    extents: tuple[tuple[int, int, int, int, int], ...]
    holes: tuple[tuple[int, int, int], ...] = ()


CLEARS: Final = Codec(Clears)
_LEAF: Final = Codec(_LeafRecord)


def encode_leaf(leaf: Leaf) -> bytes:
    stores = tuple(stores_of(leaf.extents))
    index = {store: number for number, store in enumerate(stores)}
    extents = tuple(
        (
            one.start,
            one.length,
            index[one.store],
            one.offset,
            0 if one.written == one.store.born else one.written,
        )
        for one in leaf.extents
    )
    holes = tuple(
        (one.start // SECTOR_BYTES, one.end // SECTOR_BYTES, one.cleared) for one in leaf.holes
    )
    return _LEAF.encode(_LeafRecord(leaf.since, stores, extents, holes))


def decode_leaf(value: bytes) -> Leaf:
    record = _LEAF.decode(value)
    stores = record.stores
    try:
        extents = tuple(
            Extent(start, length, stores[index], offset, written or stores[index].born)
            for start, length, index, offset, written in record.extents
        )
    except IndexError as error:
        raise DamagedRecord("an extent of a leaf names a store that is not there") from error
    holes = tuple(
        Hole(start * SECTOR_BYTES, end * SECTOR_BYTES, cleared)
        for start, end, cleared in record.holes
    )
    return Leaf(record.since, extents, holes)


def leaf_of(record: Record | None) -> Leaf | None:
    return None if record is None else decode_leaf(record.value)


def clears_of(record: Record | None) -> tuple[Clear, ...]:
    return () if record is None else CLEARS.decode(record.value).pending


def stores_of(extents: Iterable[Extent]) -> dict[LeafStore, None]:
    """Each once, in the order in which they are named."""
    return dict.fromkeys(extent.store for extent in extents)


def contents_of(name: bytes, value: bytes) -> tuple[int, ...]:
    """The contents that a record of a map names.

    This is for a sweep that removes a whole partition: other versions of the leaf may name them
    too.
    """
    if name[:1] not in (keys.MAP_LEAF, keys.MAP_PAST):
        return ()
    stores = stores_of(decode_leaf(value).extents)
    return tuple(store.content for store in stores if store.content)


def encode_data(ref: Ref, data: bytes) -> bytes:
    """The checksum covers the key too."""
    return _DATA_VERSION + crc64(data, crc64(ref.key.name)).to_bytes(8, "big") + data


def decode_data(ref: Ref, value: bytes) -> bytes:
    if value[:1] != _DATA_VERSION or len(value) < 9:
        raise DamagedRecord(f"inline data of the version {value[:1]!r} is not known")
    data = value[9:]
    if crc64(data, crc64(ref.key.name)).to_bytes(8, "big") != value[1:9]:
        raise DataDamaged(f"inline data {ref.key.name!r}: its checksum differs")
    return data
