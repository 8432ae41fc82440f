"""The keys of the lines: where the gateways with requests that wait for one thing are recorded.

Lives here: the row "line of waiting gateways" of the keyspace map (keys.py).

A line has a partition of its own, named by a digest of the thing's address. So it does not hold up
other commits on the thing, and a thing that is deleted leaves nothing to be swept. The key is a
face, so that one scan finds all lines.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from strongroom.engines.base import Key, Partition, Ref

LINES: Final = b"l"
LINE_KEY: Final = Key(False, b"l")
_DIGEST_BYTES: Final = 16


def line(thing: Ref) -> Ref:
    """The record of the gateways that wait for something. `thing` is the record that has it."""
    (keyspace, name), key = thing
    parts = (len(keyspace).to_bytes(1, "big"), keyspace, len(name).to_bytes(2, "big"), name)
    digest = blake2b(b"".join((*parts, key.name)), digest_size=_DIGEST_BYTES).digest()
    return Ref(Partition(LINES, digest), LINE_KEY)
