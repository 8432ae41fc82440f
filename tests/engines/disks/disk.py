"""A simulated disk that can lose power, fail, or fill up; data that was not synced may be lost.

Lives here: the model of durable data, for every change that an embedded store makes to files. Must
not live here: SQLite's side of it (sqlite.py), or what a store promises.

Changes go through to real files, so a store runs on it as on any disk. The disk also keeps every
file's synced bytes, the writes since then, and every directory's entries. From them,
`after_power_cut` builds a directory as a machine might find it after a power cut. Each write that
was not synced is kept, lost, or torn at a sector. Each name that was not synced is kept or lost.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from strongroom.clock import ManualClock
from strongroom.engines.embedded.bodies.buffers import ALIGNMENT_BYTES
from strongroom.engines.embedded.disk.files import OsFiles

SECTORS_BYTES: Final = (512, 4096)

Fault = Callable[[str, str], int | None]
"""fault(operation, path) returns the errno to raise instead of the operation, or None."""


@dataclass(eq=False, slots=True)
class _File:
    """One file: its durable bytes, and the writes since the last sync, in order."""

    durable: bytearray = field(default_factory=bytearray)
    # (offset, bytes) of a write; (length, None) of a truncation to that length.
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class _Entry:
    """A change of a name that its directory's sync has not made durable; target None: an unlink."""

    path: str
    target: _File | None
    renamed_from: str | None = None


class Disk:
    """The simulated disk below the directory `root`.

    Arguments:
        root: the directory of the real files; files that exist already are durable.
        capacity_bytes: a write that needs more than this in total fails with ENOSPC.
    """

    def __init__(self, root: Path, capacity_bytes: int | None = None) -> None:
        self.root = os.path.abspath(root)
        self.capacity_bytes = capacity_bytes
        self.fault: Fault | None = None
        self.operations = 0
        self.cut_at: int | None = None
        self.lost_power = False
        self._lock = threading.RLock()
        self._names: dict[str, _File] = {}
        self._durable_names: dict[str, _File] = {}
        self._directories: set[str] = {self.root}
        self._entries: dict[str, list[_Entry]] = {self.root: []}
        self._new_directories: set[str] = set()
        for path, directories, files in os.walk(self.root):
            self._directories |= {os.path.join(path, one) for one in directories}
            self._entries |= {os.path.join(path, one): [] for one in directories}
            for one in files:
                data = bytearray(Path(path, one).read_bytes())
                file = _File(data, size_bytes=len(data))
                self._names[os.path.join(path, one)] = file
        self._durable_names |= self._names

    def used_bytes(self) -> int:
        """Return the sum of all files' lengths."""
        with self._lock:
            return sum(file.size_bytes for file in self._names.values())

    def size_bytes(self, path: str) -> int:
        """Return a file's length."""
        with self._lock:
            return self._names[path].size_bytes

    def free_bytes(self) -> int:
        """Return the rest of the capacity."""
        if self.capacity_bytes is None:
            return 1 << 50
        return max(0, self.capacity_bytes - self.used_bytes())

    def begin_operation(self, operation: str, path: str) -> None:
        """Count an operation that is about to start. Raises OSError if it is made to fail."""
        with self._lock:
            self.operations += 1
            if self.cut_at is not None and self.operations >= self.cut_at:
                self.lost_power = True
            if self.lost_power:
                raise OSError(errno.EIO, "the power is gone", path)
        # Called without the lock, as a fault may also delay the operation.
        number = self.fault(operation, path) if self.fault is not None else None
        if number is not None:
            raise OSError(number, os.strerror(number), path)

    def created(self, path: str) -> None:
        """Record that a file was created."""
        with self._lock:
            file = self._names[path] = _File()
            self._entries[os.path.dirname(path)].append(_Entry(path, file))

    def exists(self, path: str) -> bool:
        """Return whether the file exists."""
        return path in self._names

    def require_room(self, path: str, length: int, offset: int) -> None:
        """Raise OSError if the disk is too full for `length` bytes at `offset`."""
        with self._lock:
            growth = offset + length - self._names[path].size_bytes
            if growth > 0 and growth > self.free_bytes():
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    def written(self, path: str, data: bytes | bytearray | memoryview, offset: int) -> None:
        """Record a write of `data`. Raises OSError if the disk is full."""
        with self._lock:
            self.require_room(path, len(data), offset)
            file = self._names[path]
            file.pending.append((offset, bytes(data)))
            file.size_bytes = max(file.size_bytes, offset + len(data))

    def truncated(self, path: str, length: int) -> None:
        """Record that a file was truncated to `length`."""
        with self._lock:
            file = self._names[path]
            file.pending.append((length, None))
            file.size_bytes = length

    def synced(self, path: str) -> None:
        """Record a sync of a file: everything written to it is durable now."""
        with self._lock:
            file = self._names[path]
            for change in file.pending:
                _apply(file.durable, change)
            file.pending.clear()

    def directory_made(self, path: str) -> None:
        """Record that a directory was created."""
        with self._lock:
            self._directories.add(path)
            self._new_directories.add(path)
            self._entries[path] = []

    def directory_synced(self, path: str) -> None:
        """Record a sync of a directory: its names are durable now."""
        with self._lock:
            for entry in self._entries.get(path, []):
                _rename(self._durable_names, entry)
            self._entries[path] = []
            self._new_directories -= {
                one for one in self._new_directories if os.path.dirname(one) == path
            }

    def unlinked(self, path: str) -> None:
        """Record that a name was removed."""
        with self._lock:
            del self._names[path]
            self._entries[os.path.dirname(path)].append(_Entry(path, None))

    def renamed(self, source: str, target: str) -> None:
        """Record that a file was renamed within its directory."""
        with self._lock:
            file = self._names.pop(source)
            self._names[target] = file
            self._entries[os.path.dirname(target)].append(_Entry(target, file, source))

    def after_power_cut(self, target: Path, seed: int) -> None:
        """Build what a machine may find after a power cut now, in the empty directory `target`.

        Arguments:
            target: an empty directory.
            seed: 0 loses everything that was not synced, 1 keeps it; others mix and tear.
        """
        with self._lock:
            chance = _SeededRandom(seed)
            keep = {0: 0.0, 1: 1.0}.get(seed, (0.1, 0.5, 0.9)[chance.below(3)])
            names = dict(self._durable_names)
            for entries in self._entries.values():
                for entry in entries:
                    if chance.random() < keep:
                        _rename(names, entry)
            gone = {one for one in self._new_directories if chance.random() >= keep}
            directories = {one for one in self._directories if not _below(one, gone)}
            for path in sorted(directories):
                os.makedirs(os.path.join(target, os.path.relpath(path, self.root)), exist_ok=True)
            for path, file in names.items():
                if os.path.dirname(path) in directories:
                    data = _contents_after_cut(file, chance, keep)
                    Path(target, os.path.relpath(path, self.root)).write_bytes(data)


class _SeededRandom:
    """Random numbers that a seed repeats."""

    def __init__(self, seed: int) -> None:
        self._source = ManualClock(seed=seed)

    def random(self) -> float:
        """Return a number from 0 up to, but not including, 1."""
        return int.from_bytes(self._source.random_bytes(4)) / (1 << 32)

    def below(self, bound: int) -> int:
        """Return a whole number from 0 up to, but not including, `bound`."""
        return int(self.random() * bound)


def _below(path: str, gone: set[str]) -> bool:
    return any(path == one or path.startswith(one + os.sep) for one in gone)


def _rename(names: dict[str, _File], entry: _Entry) -> None:
    if entry.renamed_from is not None:
        names.pop(entry.renamed_from, None)
    if entry.target is None:
        names.pop(entry.path, None)
    else:
        names[entry.path] = entry.target


def _apply(data: bytearray, change: tuple[int, bytes | None]) -> None:
    position, written = change
    if len(data) < position:
        data.extend(bytes(position - len(data)))
    if written is None:
        del data[position:]
    else:
        data[position : position + len(written)] = written


def _contents_after_cut(file: _File, chance: _SeededRandom, keep: float) -> bytes:
    data = bytearray(file.durable)
    for position, written in file.pending:
        if written is None:
            if chance.random() < keep:
                _apply(data, (position, None))
            continue
        if keep in (0.0, 1.0) or chance.random() < 0.5:
            if chance.random() < keep:
                _apply(data, (position, written))
            continue
        sector = SECTORS_BYTES[chance.below(len(SECTORS_BYTES))]
        start = 0
        while start < len(written):
            # Sector boundaries are those of the disk, not of the write.
            end = min(len(written), start + sector - (position + start) % sector)
            if chance.random() < keep:
                _apply(data, (position + start, written[start:end]))
            start = end
    return bytes(data)


class DiskFiles:
    """The embedded engine's `Files` on a simulated disk."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._files = OsFiles()
        self._paths: dict[int, str] = {}

    def make_directory(self, path: str) -> None:
        self._disk.begin_operation("mkdir", path)
        self._files.make_directory(path)
        self._disk.directory_made(path)

    def create(self, path: str) -> int:
        self._disk.begin_operation("create", path)
        descriptor = self._files.create(path)
        self._disk.created(path)
        self._paths[descriptor] = path
        return descriptor

    def reopen(self, path: str) -> int:
        descriptor = self._files.reopen(path)
        self._paths[descriptor] = path
        return descriptor

    def open_past_cache(self, path: str) -> int:
        descriptor = self._files.open_past_cache(path)
        self._paths[descriptor] = path
        return descriptor

    def write_aligned(self, descriptor: int, data: Sequence[memoryview], offset: int) -> None:
        if any(size % ALIGNMENT_BYTES for size in (offset, *map(len, data))):
            raise OSError(errno.EINVAL, "a write past the cache is not aligned")
        path = self._paths[descriptor]
        self._disk.begin_operation("write", path)
        self._disk.written(path, b"".join(data), offset)
        self._files.write_aligned(descriptor, data, offset)

    def write_at(self, descriptor: int, data: bytes | memoryview, offset: int) -> None:
        path = self._paths[descriptor]
        self._disk.begin_operation("write", path)
        self._disk.written(path, data, offset)
        self._files.write_at(descriptor, data, offset)

    def truncate(self, descriptor: int, length: int) -> None:
        path = self._paths[descriptor]
        self._disk.begin_operation("truncate", path)
        self._files.truncate(descriptor, length)
        self._disk.truncated(path, length)

    def sync(self, descriptor: int) -> None:
        path = self._paths[descriptor]
        self._disk.begin_operation("sync", path)
        self._disk.synced(path)

    def sync_directory(self, path: str) -> None:
        self._disk.begin_operation("syncdir", path)
        self._disk.directory_synced(path)

    def close(self, descriptor: int) -> None:
        del self._paths[descriptor]
        self._files.close(descriptor)

    def rename(self, source: str, target: str) -> None:
        self._disk.begin_operation("rename", source)
        self._files.rename(source, target)
        self._disk.renamed(source, target)

    def unlink(self, path: str) -> None:
        self._disk.begin_operation("unlink", path)
        self._files.unlink(path)
        self._disk.unlinked(path)

    def free_bytes(self, path: str) -> int:
        return self._disk.free_bytes()
