"""Changes in directories, for the clients that watch them: CHANGE_NOTIFY of SMB.

Lives here: the watches of this process, and the one place to which REST and SMB report changes.
Must not live here: waiting for a change (handles/notifying.py). Sources: [MS-SMB2] section
3.3.5.19; [MS-FSA] section 2.1.5.11; [MS-FSCC] section 2.7.1; smb.md 2.9.

A change is reported after its commit. Changes between two requests of a client are kept for it, up
to a limit. Beyond the limit, the client is told to list the directory again.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.file import names
from strongroom.services.file.opens.open_handle import Handle

_KEPT_MAX: Final = 1024
_ALL_KEPT_MAX: Final = 65_536
"""Of all watches together. Each takes some 200 bytes of memory."""
WATCHES_MAX: Final = 2048
"""Of all handles together. Each change goes through all watches of its share."""


class NodeAction(enum.IntEnum):
    """The values are its numbers on the wire."""

    ADDED = 1
    REMOVED = 2
    MODIFIED = 3
    RENAMED_OLD_NAME = 4
    RENAMED_NEW_NAME = 5


class Aspect(enum.IntFlag):
    """The aspects of a file whose changes a client watches: the bits of CompletionFilter."""

    NONE = 0
    FILE_NAME = 0x1
    DIRECTORY_NAME = 0x2
    ATTRIBUTES = 0x4
    SIZE = 0x8
    LAST_WRITE = 0x10
    LAST_ACCESS = 0x20
    CREATION = 0x40
    EXTENDED_ATTRIBUTES = 0x80
    SECURITY = 0x100


class NodeChanged(NamedTuple):
    """A change of a name, or of its file or directory. `path` is from the share's root down."""

    action: NodeAction
    path: tuple[str, ...]
    aspects: Aspect


class KeptChangesLimit:
    """The number of changes that all watches together may still keep."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = _ALL_KEPT_MAX


class DirectoryWatch:
    """The changes of which one handle of a directory is notified.

    Attributes:
        kept: the changes since the last answer: actions, and paths relative to the directory.
        has_overflowed: whether there were more changes than are kept.
        is_deleted: whether the directory is to be deleted.
        room_bytes: the room of the first request; no later answer has more.
    """

    def __init__(
        self,
        handle: Handle,
        aspects: Aspect,
        limit: KeptChangesLimit,
        *,
        is_tree: bool,
        room_bytes: int,
    ) -> None:
        self._limit = limit
        self.handle = handle
        self.aspects = aspects
        self.is_tree = is_tree
        self.room_bytes = room_bytes
        self.kept: list[tuple[NodeAction, tuple[str, ...]]] = []
        self.has_overflowed = False
        self.is_deleted = False
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def can_answer(self) -> bool:
        return bool(self.kept) or self.has_overflowed or self.is_deleted

    def record(self, changes: Sequence[NodeChanged]) -> None:
        """Keep the changes that concern this watch, and wake the first request."""
        depth = len(self.handle.path)
        for change in changes:
            below = len(change.path) - depth
            is_within = below == 1 or (self.is_tree and below > 1)
            if not (is_within and self.aspects & change.aspects):
                continue
            if not all(map(names.same, self.handle.path, change.path)):
                continue
            row = (change.action, change.path[depth:])
            if row[0] is NodeAction.MODIFIED and self.kept and self.kept[-1] == row:
                continue
            if len(self.kept) >= _KEPT_MAX or not self._limit.left:
                self.clear()
                self.has_overflowed = True
            elif not self.has_overflowed:
                self.kept.append(row)
                self._limit.left -= 1
        self._wake()

    def clear(self) -> None:
        self._limit.left += len(self.kept)
        self.kept.clear()

    def delete(self) -> None:
        self.is_deleted = True
        self._wake()

    def take(self) -> tuple[tuple[tuple[NodeAction, tuple[str, ...]], ...], bool]:
        """Return the kept changes, and whether there were more; none of them is left."""
        changes, has_overflowed = tuple(self.kept), self.has_overflowed
        self.clear()
        self.has_overflowed = False
        return changes, has_overflowed

    @contextmanager
    def turn(self) -> Iterator[asyncio.Future[None]]:
        """Queue a request while the block runs. The future is done when it is the first one, and
        can be answered. What the block does not take is for the next request."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._wake()
        try:
            yield turn
        finally:
            self._waiting.remove(turn)
            self._wake()

    def _wake(self) -> None:
        if self.can_answer and self._waiting and not self._waiting[0].done():
            self._waiting[0].set_result(None)


class Watches:
    """All watches, by the generation of their share and by snapshot. In a snapshot nothing changes.
    This state is lost when the process ends."""

    def __init__(self) -> None:
        self._watches: dict[tuple[int, int | None], dict[int, DirectoryWatch]] = {}
        self._limit = KeptChangesLimit()
        self._count = 0

    def of(self, handle: Handle) -> DirectoryWatch | None:
        return self._watches.get(_volume(handle), {}).get(handle.id)

    def begin(
        self, handle: Handle, aspects: Aspect, *, is_tree: bool, room_bytes: int
    ) -> DirectoryWatch:
        """Watch a directory from now on. A handle that watches already keeps its first filter.
        INSUFFICIENT_RESOURCES when there are WATCHES_MAX."""
        present = self.of(handle)
        if present is not None:
            return present
        if self._count >= WATCHES_MAX:
            raise StorageError(file_errors.TOO_MANY_WATCHES)
        self._count += 1
        new = DirectoryWatch(handle, aspects, self._limit, is_tree=is_tree, room_bytes=room_bytes)
        self._watches.setdefault(_volume(handle), {})[handle.id] = new
        return new

    def forget(self, handle: Handle) -> None:
        """Idempotent."""
        watches = self._watches.get(_volume(handle), {})
        watch = watches.pop(handle.id, None)
        if watch is None:
            return
        watch.clear()
        self._count -= 1
        if not watches:
            del self._watches[_volume(handle)]

    def deleted(self, handle: Handle) -> None:
        """Answer the watches of a directory that was marked for deletion with DELETE_PENDING."""
        for watch in self._watches.get(_volume(handle), {}).values():
            if watch.handle.node_id == handle.node_id:
                watch.delete()

    def report(self, generation: int, *changes: NodeChanged) -> None:
        """Report durable changes. Those of one operation are reported together."""
        for watch in list(self._watches.get((generation, None), {}).values()):
            watch.record(changes)


def _volume(handle: Handle) -> tuple[int, int | None]:
    return handle.access.generation, handle.access.snapshot


def added(path: tuple[str, ...], *, is_directory: bool) -> NodeChanged:
    return NodeChanged(NodeAction.ADDED, path, name_aspect(is_directory=is_directory))


def removed(path: tuple[str, ...], *, is_directory: bool) -> NodeChanged:
    return NodeChanged(NodeAction.REMOVED, path, name_aspect(is_directory=is_directory))


def modified(path: tuple[str, ...], aspects: Aspect) -> NodeChanged:
    return NodeChanged(NodeAction.MODIFIED, path, aspects)


def renamed(
    old: tuple[str, ...], new: tuple[str, ...], *, is_directory: bool, replaces: bool
) -> tuple[NodeChanged, ...]:
    """Within one directory they are a pair of old and new name, else a removal and an addition."""
    aspect = name_aspect(is_directory=is_directory)
    replaced = (removed(new, is_directory=False),) if replaces else ()
    is_same_directory = len(old) == len(new) and all(map(names.same, old[:-1], new[:-1]))
    if is_same_directory:
        old_action, new_action = NodeAction.RENAMED_OLD_NAME, NodeAction.RENAMED_NEW_NAME
    else:
        old_action, new_action = NodeAction.REMOVED, NodeAction.ADDED
    return (
        *replaced,
        NodeChanged(old_action, old, aspect),
        NodeChanged(new_action, new, aspect),
    )


def name_aspect(*, is_directory: bool) -> Aspect:
    return Aspect.DIRECTORY_NAME if is_directory else Aspect.FILE_NAME


BYTES: Final = Aspect.SIZE | Aspect.LAST_WRITE
"""What changes when bytes are written or the length is set."""
PROPERTIES: Final = Aspect.ATTRIBUTES | Aspect.CREATION | Aspect.LAST_WRITE | Aspect.LAST_ACCESS
"""What changes when attributes or times are set."""
