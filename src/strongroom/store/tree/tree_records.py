"""The records of a tree of names.

Lives here: the stored structs and their codecs. Must not live here: rules, keys, what the names
lead to.

All names of a tree are in one partition, so that a rename is one commit. A *name* leads from a
parent's id and a folded name to an id. A *node* leads back from the id. It counts the children of a
directory, because a decision can guard a record, but not a range of names.
"""

from __future__ import annotations

from typing import Final

import msgspec

from strongroom.engines.links import Links
from strongroom.store.core.records import Codec


class NameRecord(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The id that a name leads to. `name` has the case that was given; the key has it folded."""

    id: int
    name: str
    is_directory: bool


class NodeRecord(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The parent and folded name of an id, and the number of names below it.

    Attributes:
        size_bytes: the length of a file that the share's usage counts for it.
    """

    parent: int
    name: str
    is_directory: bool
    children: int = 0
    size_bytes: int = 0


NAME: Final = Codec(NameRecord)
NAME_LINKS: Final = Links(hidden=False, head=b"\x01\x93\xcf", id_bytes=8, tail=b"\xc3")
"""How the record of a directory leads to the keys of the names in it. `NAME` writes its version, an
array of three, the id, the name, and `is_directory`. An id is a stamp, so it takes eight bytes."""
NODE: Final = Codec(NodeRecord)
