"""Chains of records: how the value of one record leads to the key of the next one.

Lives here: the declared layout. Must not live here: following a chain (chains.py), any one layout.

A layout is data, not a function. So an engine that is a server of its own can follow a chain in one
statement: it compares and cuts bytes.
"""

from __future__ import annotations

import msgspec


class Links(msgspec.Struct, frozen=True):
    """The layout of the records of a chain, all in one partition.

    The first key is an id and the first name, joined. A value leads on if it begins with `head`,
    which an id follows, and ends with `tail`. The next key is that id and the next name, joined.

    Attributes:
        hidden: the class of all keys.
        id_bytes: the length of an id.
    """

    hidden: bool
    head: bytes
    id_bytes: int
    tail: bytes = b""

    def next_id(self, value: bytes) -> bytes | None:
        """Return the id to which a value leads, None if it leads nowhere."""
        begin = len(self.head)
        end = begin + self.id_bytes
        if len(value) < end + len(self.tail):
            return None
        if not (value.startswith(self.head) and value.endswith(self.tail)):
            return None
        return value[begin:end]
