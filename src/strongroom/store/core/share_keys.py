"""The keys of a share's usage and snapshots, in addition to the keys of shares and files in
keys.py.

Lives here: these keys.

| record                     | keyspace         | partition  | class  | key                        |
| -------------------------- | ---------------- | ---------- | ------ | -------------------------- |
| snapshot of a share        | `f` + account    | share name | face   | `g` + generation, stamp    |
| usage of a share           | `n` + generation | `n`        | hidden | `u`                        |
| which share it is          | `n` + generation | `n`        | hidden | `s`                        |
| past name                  | `n` + generation | `n`        | hidden | `q` + name's key, 0, until |
| past attributes of a file  | `a` + generation | id         | face   | `p` + until                |

A past record holds a state that a commit replaced or removed while a snapshot needed it. `until` is
the stamp of that commit. The past records of one name sort together, oldest first, in the order of
the names: no name holds U+0000. Past attributes are faces, so that a scan of a share's files also
finds those of deleted files.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from strongroom.engines.base import Key, Ref
from strongroom.store.core import keys
from strongroom.store.core.keys import file_names, number, share

USAGE_KEY: Final = Key(True, b"u")
NAMED_KEY: Final = Key(True, b"s")
_SNAPSHOT: Final = b"g"
_PAST_NAME: Final = b"q"
_PAST_ATTRIBUTES: Final = b"p"
_LAST: Final = (1 << 64) - 1
_NUMBERS_CACHED_MAX: Final = 64


def share_snapshot(account: str, name: str, generation: int, stamp: int) -> Ref:
    return Ref(share(account, name).partition, snapshot_key(generation, stamp))


def snapshot_key(generation: int, stamp: int) -> Key:
    return Key(False, _SNAPSHOT + number(generation) + number(stamp))


def snapshot_of(key: bytes) -> tuple[int, int] | None:
    """Return the generation and the stamp in a snapshot's key; None for any other key."""
    if key[:1] != _SNAPSHOT or len(key) != 17:
        return None
    return int.from_bytes(key[1:9], "big"), int.from_bytes(key[9:], "big")


@lru_cache(_NUMBERS_CACHED_MAX)
def share_usage(generation: int) -> Ref:
    return Ref(file_names(generation), USAGE_KEY)


@lru_cache(_NUMBERS_CACHED_MAX)
def share_named(generation: int) -> Ref:
    """The record that names the share of a generation. It exists once a snapshot was taken."""
    return Ref(file_names(generation), NAMED_KEY)


def past_name(name: Key, until: int) -> Key:
    return Key(True, _PAST_NAME + name.name + b"\0" + number(until))


def past_names(first: bytes, until: bytes | None) -> tuple[bytes, bytes]:
    """(first, until) of the past records of a range of names; None = all the rest."""
    last = bytes((_PAST_NAME[0] + 1,)) if until is None else _PAST_NAME + until
    return _PAST_NAME + first, last


def past_of_name(key: bytes) -> tuple[bytes, int] | None:
    """Return the key of the name and the end of its state; None if `key` is no past name's."""
    if key[:1] != _PAST_NAME or len(key) < 18:
        return None
    return key[1:-9], int.from_bytes(key[-8:], "big")


def past_attributes(until: int) -> Key:
    return Key(False, _PAST_ATTRIBUTES + number(until))


def past_attributes_range(after: int = 0) -> tuple[bytes, bytes]:
    """(first, until) of the past attributes of a file that ended at `after` or later."""
    return past_attributes(after).name, past_attributes(_LAST).name + b"\0"


def past_of_attributes(key: bytes) -> int | None:
    """Return the end of the state in a past attributes' key; None for any other key."""
    if key[:1] != _PAST_ATTRIBUTES or len(key) != 9:
        return None
    return int.from_bytes(key[1:], "big")


def is_name(ref: Ref) -> bool:
    partition, key = ref
    return partition.keyspace[:1] == b"n" and partition.name == b"n" and not key.hidden


def is_attributes(ref: Ref) -> bool:
    return ref.partition.keyspace[:1] == b"a" and ref.key == keys.FILE_KEY
