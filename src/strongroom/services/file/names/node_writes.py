"""The writes on directories and files that a decision makes beside its main ones.

Lives here: the times of a parent, and the usage that counts against a share's quota. Sources:
smb.md 3.8 (times); "Get Share Stats", "Set Share Properties".

**Usage** is the sum of the files' lengths, holes included. It is stored among the share's names,
and each name's node says which length was counted for it. Both change in one commit of one
partition, so they always agree. A crash between the steps of a commit may leave a file whose length
differs from the counted one. The next change of its length corrects that.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from strongroom.engines.base import Ref, Step, Write
from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.file.attributes import Attribute, Touch
from strongroom.services.core.decisions import Found, ReadOne, Reads
from strongroom.services.file.names.permissions import DEFAULT_KEY
from strongroom.services.file.names.smb_properties import NOTHING_GIVEN, of_changed
from strongroom.services.tree.paths import PathChanged, Where
from strongroom.store.core import keys, share_keys
from strongroom.store.core.records import ShareRecord
from strongroom.store.file import file_records
from strongroom.store.file.file_records import FileRecord, UsageRecord
from strongroom.store.tree import tree_records
from strongroom.store.tree.tree_records import NodeRecord

_GIB: Final = 1 << 30


def root_attributes(generation: int) -> FileRecord:
    """The attributes that a share's root has until some are set."""
    return FileRecord(
        generation,
        generation,
        is_directory=True,
        attributes=int(Attribute.DIRECTORY),
        creation=generation,
        access=generation,
        write=generation,
        change=generation,
        permission=DEFAULT_KEY,
    )


def parent_ref(where: Where) -> Ref:
    """The attributes of a name's directory."""
    return keys.file_attributes(where.generation, where.parent)


def parent_touched(where: Where, parent: FileRecord | None, stamp: int) -> tuple[Step, ...]:
    """`directory_touched` for the directory of a name. `parent`: the attributes at `parent_ref`."""
    return directory_touched(where.generation, where.parent, parent, stamp)


def directory_touched(
    generation: int, directory: int, parent: FileRecord | None, stamp: int
) -> tuple[Step, ...]:
    """Return the step that updates a directory's times after a name in it was added, removed or
    changed. Its ETag and Last-Modified stay. `parent`: its attributes; the root may have none."""
    if parent is None:
        if directory != generation:
            return ()
        parent = root_attributes(generation)
    times = of_changed(NOTHING_GIVEN, parent, Touch.CHILD, stamp)
    after = msgspec.structs.replace(parent, **times)
    write = Write(keys.FILE_KEY, file_records.FILE.encode(after))
    return (Step(keys.file(generation, directory), (write,)),)


def usage_bytes(usage: UsageRecord | None) -> int:
    """A share without a record of its usage has none."""
    return 0 if usage is None else usage.size_bytes


def used(share: ShareRecord, usage: UsageRecord | None, more_bytes: int) -> tuple[Write, ...]:
    """Return the write that adds to a share's usage, or subtracts from it. ShareSizeLimitReached
    when more bytes exceed the share's quota."""
    if not more_bytes:
        return ()
    after = usage_bytes(usage) + more_bytes
    if more_bytes > 0 and after > share.quota_gib * _GIB:
        raise StorageError(file_errors.SHARE_SIZE_LIMIT_REACHED)
    value = file_records.USAGE.encode(UsageRecord(max(0, after)))
    return (Write(share_keys.share_usage(share.generation).key, value),)


class LengthReads(NamedTuple):
    """What a change of a file's length reads, to count it."""

    node: ReadOne[NodeRecord]
    usage: ReadOne[UsageRecord]

    @classmethod
    def of(cls, reads: Reads, generation: int, file_id: int) -> LengthReads:
        node = reads.add(keys.file_node(generation, file_id), tree_records.NODE)
        return cls(node, reads.add(share_keys.share_usage(generation), file_records.USAGE))


def recounted(
    share: ShareRecord, found: Found, read: LengthReads, size_bytes: int
) -> tuple[Step, ...]:
    """Return the step that counts a file's new length, if it differs from the counted one.
    PathChanged when the file is gone."""
    node = found[read.node]
    if node is None:
        raise PathChanged
    if node.size_bytes == size_bytes:
        return ()
    writes = used(share, found[read.usage], size_bytes - node.size_bytes)
    counted = msgspec.structs.replace(node, size_bytes=size_bytes)
    sized = Write(read.node.ref.key, tree_records.NODE.encode(counted))
    return (Step(keys.file_names(share.generation), (*writes, sized)),)
