"""The writes on directories and files that a decision makes beside its main ones.

Lives here: the times of a parent, and the usage that counts against a share's quota. Must not live
here: decisions. Sources: smb.md 3.8 (times); "Get Share Stats", "Set Share Properties".

**Usage** is the sum of the files' lengths, holes included. It is stored among the share's names,
and each name's node says which length was counted for it. Both change in one commit of one
partition, so they always agree. A crash between the steps of a commit may leave a file whose length
differs from the counted one. The next change of its length corrects that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from strongroom import file_errors
from strongroom.engines.base import Record, Ref, Step, Write
from strongroom.errors import StorageError
from strongroom.semantics.file.attributes import Attribute, Touch
from strongroom.services.file.paths import PathChanged, Where
from strongroom.services.file.permissions import DEFAULT_KEY
from strongroom.services.file.smb_properties import NOTHING_GIVEN, of_changed
from strongroom.store.core import keys, share_keys
from strongroom.store.core.records import ShareRecord
from strongroom.store.file import file_records
from strongroom.store.file.file_records import FileRecord, UsageRecord

_GIB: Final = 1 << 30


def root_attributes(generation: int) -> FileRecord:
    """Return the attributes that a share's root has until some are set."""
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
    """Return the address of the attributes of a name's directory."""
    return keys.file_attributes(where.generation, where.parent)


def parent_touched(where: Where, found: Record | None, stamp: int) -> tuple[Step, ...]:
    """Return the step of `directory_touched` for the directory of a name.

    Arguments:
        found: the record of `parent_ref`.
    """
    return directory_touched(where.generation, where.parent, found, stamp)


def directory_touched(
    generation: int, directory: int, found: Record | None, stamp: int
) -> tuple[Step, ...]:
    """Return the step that updates a directory's times after a name in it was added, removed or
    changed. Its ETag and Last-Modified stay.

    Arguments:
        directory: its id.
        found: the record of its attributes; the root may have none.
    """
    parent = file_records.FILE.of(found)
    if parent is None:
        if directory != generation:
            return ()
        parent = root_attributes(generation)
    times = of_changed(NOTHING_GIVEN, parent, Touch.CHILD, stamp)
    after = msgspec.structs.replace(parent, **times)
    write = Write(keys.FILE_KEY, file_records.FILE.encode(after))
    return (Step(keys.file(generation, directory), (write,)),)


def usage_bytes(found: Record | None) -> int:
    """Return the usage that a share's usage record holds."""
    usage = file_records.USAGE.of(found)
    return 0 if usage is None else usage.size_bytes


def used(share: ShareRecord, found: Record | None, more_bytes: int) -> tuple[Write, ...]:
    """Return the write that adds to a share's usage, or subtracts from it.

    Arguments:
        found: the record of `keys.share_usage`.

    Raises: StorageError ShareSizeLimitReached when more bytes exceed the share's quota.
    """
    if not more_bytes:
        return ()
    after = usage_bytes(found) + more_bytes
    if more_bytes > 0 and after > share.quota_gib * _GIB:
        raise StorageError(file_errors.SHARE_SIZE_LIMIT_REACHED)
    value = file_records.USAGE.encode(UsageRecord(max(0, after)))
    return (Write(share_keys.share_usage(share.generation).key, value),)


def length_refs(generation: int, file_id: int) -> tuple[Ref, Ref]:
    """Return the addresses of the records that a change of a file's length reads, to count it."""
    return keys.file_node(generation, file_id), share_keys.share_usage(generation)


def recounted(
    file_id: int, share: ShareRecord, found: Sequence[Record | None], size_bytes: int
) -> tuple[Step, ...]:
    """Return the step that counts a file's new length, if it differs from the counted one.

    Arguments:
        found: the records of `length_refs`.

    Raises: PathChanged when the file is gone; StorageError ShareSizeLimitReached.
    """
    node = file_records.NODE.of(found[0])
    if node is None:
        raise PathChanged
    if node.size_bytes == size_bytes:
        return ()
    writes = used(share, found[1], size_bytes - node.size_bytes)
    counted = msgspec.structs.replace(node, size_bytes=size_bytes)
    sized = Write(keys.file_node(share.generation, file_id).key, file_records.NODE.encode(counted))
    return (Step(keys.file_names(share.generation), (*writes, sized)),)
