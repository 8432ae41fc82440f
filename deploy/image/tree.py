"""The files of a layer in memory, and the layer as a tar archive whose bytes depend on them alone.

Lives here: `Tree`, its normal form, writing it to a folder. Must not live here: where files come
from (debian.py, wheels.py). Source of the format: the OCI image specification, "Image Layer
Filesystem Changeset".
"""

from __future__ import annotations

import fnmatch
import io
import os
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

# Debian keeps these folders as links into usr/.
_MERGED = ("bin", "lib", "lib32", "lib64", "sbin")
_EXECUTABLE = 0o111


@dataclass(frozen=True, slots=True)
class File:
    """A file with its bytes. It belongs to root."""

    data: bytes
    mode: int = 0o644


@dataclass(frozen=True, slots=True)
class Link:
    """A symbolic link."""

    target: str


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder, which may belong to another user than root."""

    mode: int = 0o755
    user: int = 0
    group: int = 0


Entry = File | Link | Folder


class Tree:
    """Files by their path, which is relative and has no `.` and `..`."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}

    def add(self, path: str, entry: Entry) -> None:
        """Add or replace one entry. Raises ValueError for a path that leaves the tree."""
        parts = PurePosixPath(path).parts
        if not parts or parts[0] == "/" or ".." in parts:
            raise ValueError(f"{path!r} is not a path inside of a layer")
        if parts[0] in _MERGED and not (len(parts) == 1 and isinstance(entry, Link)):
            parts = ("usr", *parts)
        self.entries["/".join(parts)] = entry

    def file(self, path: str) -> bytes:
        """Return a file's bytes, through symbolic links. Raises KeyError."""
        entry = self.entries[path]
        while isinstance(entry, Link):
            path = os.path.normpath(os.path.join(os.path.dirname(path), entry.target)).lstrip("/")
            entry = self.entries[path]
        if isinstance(entry, Folder):
            raise KeyError(path)
        return entry.data

    def leave_out(self, patterns: Iterable[str]) -> None:
        """Remove what lies below a pattern of fnmatch."""
        wanted = tuple(patterns)
        self.entries = {
            path: entry
            for path, entry in self.entries.items()
            if not any(fnmatch.fnmatchcase(path, pattern) for pattern in wanted)
        }

    def tar(self, seconds: int) -> bytes:
        """Return the layer, uncompressed.

        Arguments:
            seconds: the time of change of all files, since 1970.
        """
        found = io.BytesIO()
        with tarfile.open(fileobj=found, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for path, entry in sorted(self._with_parents().items()):
                archive.addfile(*_member(path, entry, seconds))
        return found.getvalue()

    def write_to(self, folder: Path) -> None:
        """Write all entries below a folder, to which absolute links then point."""
        for path, entry in sorted(self._with_parents().items()):
            place = folder / path
            if isinstance(entry, Folder):
                place.mkdir(exist_ok=True)
            elif isinstance(entry, Link):
                target = entry.target
                place.symlink_to(folder / target[1:] if target.startswith("/") else target)
            else:
                place.write_bytes(entry.data)
                place.chmod(entry.mode)

    def _with_parents(self) -> dict[str, Entry]:
        whole: dict[str, Entry] = {}
        for path in self.entries:
            for parent in PurePosixPath(path).parents:
                if parent.parts:
                    whole[str(parent)] = Folder()
        return whole | self.entries


def _member(path: str, entry: Entry, seconds: int) -> tuple[tarfile.TarInfo, io.BytesIO | None]:
    member = tarfile.TarInfo(path)
    member.mtime = seconds
    if isinstance(entry, File):
        member.mode, member.size = entry.mode, len(entry.data)
        return member, io.BytesIO(entry.data)
    if isinstance(entry, Link):
        member.type, member.mode, member.linkname = tarfile.SYMTYPE, 0o777, entry.target
        return member, None
    member.type, member.mode = tarfile.DIRTYPE, entry.mode
    member.uid, member.gid = entry.user, entry.group
    return member, None


def read_tar(data: bytes) -> Tree:
    """Return the files of a tar archive, without owners, times and special files."""
    tree = Tree()
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for member in archive:
            path = os.path.normpath(member.name)
            if path == ".":
                continue
            if member.isdir():
                tree.add(path, Folder(member.mode & 0o1777))
            elif member.issym():
                tree.add(path, Link(member.linkname))
            else:
                content = archive.extractfile(member)  # of a hard link: that of its target
                if content is None:
                    raise ValueError(f"{member.name!r} is no file, folder or link")
                tree.add(path, File(content.read(), 0o755 if member.mode & _EXECUTABLE else 0o644))
    return tree
