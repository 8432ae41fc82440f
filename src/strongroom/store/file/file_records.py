"""The records of directories and files.

Lives here: the stored structs and their codecs. The names that lead to files are in
store/tree/tree_records.py.

Attributes and data are in a partition for each id.
"""

from __future__ import annotations

from typing import Final

import msgspec

from strongroom.semantics.core.copies import Copy
from strongroom.store.core.records import Codec
from strongroom.values import ContentProperties, Lease, Metadata


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


FILE: Final = Codec(FileRecord)
USAGE: Final = Codec(UsageRecord)
PAST: Final = Codec(PastRecord)
NAMED: Final = Codec(NamedRecord)
PERMISSION: Final = Codec(PermissionRecord)
