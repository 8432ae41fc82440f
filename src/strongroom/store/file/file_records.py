"""The records of directories and files, and of a share's names.

Lives here: the stored structs and their codecs. Must not live here: rules, keys, HTTP.

The names of a share are in one partition, so that a rename is one commit. A *name* leads from a
parent's id and a folded name to an id. A *node* leads back from the id. It counts the children of a
directory, because a decision can guard a record, but not a range of names. Attributes and data are
in a partition for each id.
"""

from __future__ import annotations

from typing import Final

import msgspec

from strongroom.engines.links import Links
from strongroom.semantics.core.copies import Copy
from strongroom.store.core.records import Codec
from strongroom.values import ContentProperties, Lease, Metadata


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


class FileRecord(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The attributes of a directory or file. Times are ticks; `etag` and `modified` are stamps.

    `attributes` are the bits of semantics/file/attributes.py. A file's bytes are the map whose
    number is its id. `permission` is the key of its security descriptor. While `copy` is pending,
    the copied bytes lie beyond the file's length, which is 0.
    """

    etag: int
    modified: int
    is_directory: bool
    attributes: int
    creation: int
    access: int
    write: int
    change: int
    permission: str
    size_bytes: int = 0
    metadata: Metadata = ()
    properties: ContentProperties = ContentProperties()
    lease: Lease | None = None
    copy: Copy | None = None


class UsageRecord(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The part of a share's quota that its files use: the sum of the lengths that their nodes
    count."""

    size_bytes: int


class PastRecord(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A name or attributes that a commit replaced or removed. `value` is the old stored value.
    `since` is the stamp of the commit that wrote it."""

    since: int
    value: bytes


class NamedRecord(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The share that a partition of names belongs to."""

    account: str
    share: str


class PermissionRecord(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A security descriptor, as SDDL."""

    text: str


NAME: Final = Codec(NameRecord)
NAME_LINKS: Final = Links(hidden=False, head=b"\x01\x93\xcf", id_bytes=8, tail=b"\xc3")
"""How the record of a directory leads to the keys of the names in it. `NAME` writes its version, an
array of three, the id, the name, and `is_directory`. An id is a stamp, so it takes eight bytes."""
NODE: Final = Codec(NodeRecord)
FILE: Final = Codec(FileRecord)
USAGE: Final = Codec(UsageRecord)
PAST: Final = Codec(PastRecord)
NAMED: Final = Codec(NamedRecord)
PERMISSION: Final = Codec(PermissionRecord)
