"""The keys of the tag index: where its entries are stored, and what each means.

Lives here: the rows "tag's entry" of the keyspace map (keys.py).

An entry maps a tag to a blob of the container that has it. The entries of previous versions have a
keyspace of their own, so a search for blobs reads none of them. A token is the stamp of the commit
that set the tags. The blob's head, or its version, names the token whose entries count.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from strongroom.engines.base import Key, Partition, Ref
from strongroom.store.core import keys

TAG_KEY: Final = Key(False, b"g")
_NUMBERS_CACHED_MAX: Final = 64
_KEYSPACE_BYTES: Final = 9


BLOBS: Final = b"g"
VERSIONS: Final = b"v"


@lru_cache(_NUMBERS_CACHED_MAX)
def tag_entries(generation: int) -> bytes:
    return BLOBS + keys.number(generation)


@lru_cache(_NUMBERS_CACHED_MAX)
def version_tag_entries(generation: int) -> bytes:
    return VERSIONS + keys.number(generation)


def is_tag_entries(keyspace: bytes) -> bool:
    """Of blobs or of versions."""
    return keyspace[:1] in (BLOBS, VERSIONS) and len(keyspace) == _KEYSPACE_BYTES


def tag_values(key: str, value: str = "") -> bytes:
    """The prefix of the partitions of all entries of a tag with this value, without the 0 that
    follows. Neither keys nor values nor names hold U+0000, so entries sort by key, value and
    name."""
    return key.encode() + b"\0" + value.encode()


def tag_entry(
    generation: int, key: str, value: str, name: str, token: int, version_id: int = 0
) -> Ref:
    """The entry that maps a tag to a blob, or to its previous version of this id (0 = the blob).
    Each entry has its own partition, so that commits on different blobs never conflict."""
    entry = tag_values(key, value) + b"\0" + name.encode() + b"\0" + keys.number(token)
    if version_id:
        entry += keys.number(version_id)
        return Ref(Partition(version_tag_entries(generation), entry), TAG_KEY)
    return Ref(Partition(tag_entries(generation), entry), TAG_KEY)


class TagEntry(NamedTuple):
    key: str
    value: str
    blob: str
    token: int
    version_id: int = 0


def tag_entry_of(partition: bytes) -> TagEntry:
    """The entry in a partition's name. Raises: ValueError."""
    parts = partition.split(b"\0", 3)
    if len(parts) != 4 or len(parts[3]) not in (8, 16):
        raise ValueError(f"no entry of a tag lies in {partition!r}")
    key, value, name = (part.decode() for part in parts[:3])
    token, version_id = parts[3][:8], parts[3][8:]
    return TagEntry(
        key, value, name, int.from_bytes(token, "big"), int.from_bytes(version_id, "big")
    )
