"""The place of a record: its whole address as one string of bytes, in the order of scans.

Lives here: the encoding of an address and its decoding, and the number by which a partition is
locked. PostgreSQL compares `bytea` byte by byte, so its index has the order of the engine contract.

    place = class, keyspace, end, partition, end, key        class = b"f" (face) or b"h" (hidden)

`end` is two zero bytes. In a keyspace and in the name of a partition, a zero byte is followed by
0xFF. So no name is mistaken for an end, and a shorter name comes before a longer one that begins
with it. A key is the last part and is kept as it is.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from typing import Final

from strongroom.engines.base import Partition, Ref

_END: Final = b"\0\0"
_AFTER_END: Final = b"\0\1"
_FACE: Final = b"f"
_HIDDEN: Final = b"h"


def _escaped(name: bytes) -> bytes:
    return name.replace(b"\0", b"\0\xff") if b"\0" in name else name


def place_of(ref: Ref) -> bytes:
    (keyspace, name), (hidden, key) = ref
    return prefix_of(keyspace, name, hidden) + key


@lru_cache(maxsize=4096)
def prefix_of(keyspace: bytes, partition: bytes, hidden: bool) -> bytes:
    """The beginning of the places of all keys of one class in a partition."""
    kind = _HIDDEN if hidden else _FACE
    return b"".join((kind, _escaped(keyspace), _END, _escaped(partition), _END))


def after(prefix: bytes) -> bytes:
    """The smallest place after all that begin with a prefix of `prefix_of` or `keyspace_prefix`."""
    return prefix[: -len(_END)] + _AFTER_END


def keyspace_prefix(keyspace: bytes) -> bytes:
    """The beginning of the places of all face records of a keyspace."""
    return b"".join((_FACE, _escaped(keyspace), _END))


def position_place(prefix: bytes, partition: bytes, key: bytes) -> bytes:
    """The place of a position of a scan.

    Arguments:
        prefix: of the keyspace.
    """
    return b"".join((prefix, _escaped(partition), _END, key))


def position_of(place: bytes, prefix_bytes: int) -> tuple[bytes, bytes]:
    """The partition and the key of a place.

    Arguments:
        prefix_bytes: the length of the keyspace's prefix.
    """
    end = place.index(_END, prefix_bytes)
    partition = place[prefix_bytes:end]
    if b"\0" in partition:
        partition = partition.replace(b"\0\xff", b"\0")
    return partition, place[end + 2 :]


def keyspace_of(place: bytes) -> bytes:
    return place[1 : place.index(_END, 1)].replace(b"\0\xff", b"\0")


class LockNumbers:
    """The number of a partition, 64 bits with a sign: its advisory lock, and its row.

    Two partitions with one number share both; that only makes them wait for each other.

    Arguments:
        salt: of the store, so that nobody can choose names with the same number.

    Attributes:
        store: the number of the store as a whole.
    """

    def __init__(self, salt: bytes) -> None:
        self._salt = salt
        self.of = lru_cache(maxsize=8192)(self._of)
        self.store = self._number(b"store")

    def _of(self, partition: Partition) -> int:
        keyspace, name = partition
        return self._number(_escaped(keyspace) + _END + name)

    def _number(self, text: bytes) -> int:
        digest = blake2b(text, digest_size=8, key=self._salt).digest()
        return int.from_bytes(digest, "big", signed=True)
