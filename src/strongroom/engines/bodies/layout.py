"""The files of a folder of bodies, and the calls that may block.

    STRONGROOM-BODIES   the mark (mark.py); replaced as a whole
    bodies/5e/          256 folders, made before the mark is; so none is made while it is served
    bodies/5e/00...     a body: its name is its id, as 16 hexadecimal digits

Lives here: `BodyFolder`, see BlockingPlace. Must not live here: one body's file (folder_files.py),
what an error means for a caller (threaded.py).

A body is written under its final name, which no other gateway looks up before its id was committed.
So no client of a network's file system keeps that the name is missing. A reader opens the file
anew, so its client asks the server for the length.
"""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Final

from strongroom.engines.bodies.base import BodiesAway, BodiesUnfit, FoundBody
from strongroom.engines.bodies.blocking import PlaceLimits
from strongroom.engines.bodies.folder_files import (
    FolderReading,
    FolderWriting,
    unlinked,
    write_all,
)
from strongroom.engines.bodies.mark import BodiesMark, UnknownMark, parse_mark
from strongroom.engines.bodies.urls import FOLDER_SCHEME
from strongroom.platform.files import sync_file
from strongroom.platform.open_folder import OpenFolder, identity_at

MARK: Final = "STRONGROOM-BODIES"
_NEW_MARK: Final = "STRONGROOM-BODIES.new"
_BODIES: Final = "bodies"
_FOLDERS: Final = tuple(f"{_BODIES}/{number:02x}" for number in range(256))
_NAME: Final = re.compile(r"[0-9a-f]{16}")
_MARK_BYTES_MAX: Final = 4096
_PIECE_BYTES: Final = 1024 * 1024
_ALLOWED_BEFORE: Final = frozenset({"lost+found", _BODIES})
_STALE_TRIES: Final = 3
_MULTIPLIER: Final = 0x9E3779B97F4A7C15
_WORD: Final = (1 << 64) - 1
# What is left to be written when a body ends may be long; writing back begins with each piece.
_LIMITS: Final = PlaceLimits(call_s=10.0, look_s=5.0, long_s=120.0, threads=8, pieces=32)


def folder_of(body_id: int) -> str:
    """Ids are times, which differ little: the folder comes from a hash."""
    return _FOLDERS[(body_id * _MULTIPLIER & _WORD) >> 56]


def name_of(body_id: int) -> str:
    """Below the folder with the mark."""
    return f"{folder_of(body_id)}/{body_id:016x}"


class BodyFolder:
    """A folder with its mark. See BlockingPlace.

    Arguments:
        path: of the folder, which may be a mount point.

    Raises: BodiesUnfit, OSError.
    """

    limits = _LIMITS

    def __init__(self, path: str) -> None:
        self.path = path
        self.shown = FOLDER_SCHEME + path
        self._root = OpenFolder(path)
        self.mark = self._read_mark(self._root)

    def look(self) -> BodiesMark:
        """Read the mark where the path leads now. Raises: BodiesAway, BodiesUnfit, OSError."""
        root = self._root
        if identity_at(self.path) != root.identity:
            root = OpenFolder(self.path)  # it was mounted anew, or is not mounted
        try:
            mark = self._read_mark(root)
        except BodiesUnfit as error:
            raise BodiesAway(str(error)) from None
        if mark.store != self.mark.store:
            raise BodiesAway(f"{self.path} has the bodies of another store now")
        self._root, self.mark = root, mark
        return mark

    def _read_mark(self, root: OpenFolder) -> BodiesMark:
        try:
            text = _text_of(root, MARK)
        except FileNotFoundError:
            raise BodiesUnfit(
                f"{self.path} has no mark of a store's bodies. If it is a mount point, mount it; "
                f"a new folder is made ready by `strongroom store init URL --bodies {self.shown}`"
            ) from None
        try:
            return parse_mark(text)
        except UnknownMark as error:
            raise BodiesUnfit(f"{self.path}: {error}") from None

    def put_mark(self, mark: BodiesMark, is_late: Callable[[], bool]) -> None:
        """Replace the mark unless it is too late when the new one is durable."""
        write_mark(self._root, mark, is_late)
        self.mark = mark

    def begin(self, body_id: int) -> FolderWriting:
        name = name_of(body_id)
        return FolderWriting(self._root, name, folder_of(body_id), self._root.create(name))

    def open(self, body_id: int) -> FolderReading:
        return FolderReading(self._root.reader(name_of(body_id)))

    def remove(self, body_ids: Sequence[int]) -> None:
        for body_id in body_ids:
            unlinked(self._root, name_of(body_id))

    def ids(self, number: int) -> list[int]:
        """Return the ids of the bodies in one of the folders."""
        names = filter(_NAME.fullmatch, self._root.names(_FOLDERS[number]))
        return [
            one for one in (int(name, 16) for name in names) if folder_of(one) == _FOLDERS[number]
        ]

    def states(self, body_ids: Sequence[int]) -> list[FoundBody]:
        # The mark was written seconds ago, by the clock that the ages of bodies have.
        now = self._root.state(MARK)[1]
        return list(_states(self._root, body_ids, now))

    def pages(self) -> Generator[Sequence[int], None, None]:
        for number in range(len(_FOLDERS)):
            yield self.ids(number)

    def pieces(self, body_id: int) -> Iterator[bytes]:
        """See InspectedBodies."""
        body = self.open(body_id)
        try:
            for offset in range(0, body.size_bytes, _PIECE_BYTES):
                yield body.read(offset, _PIECE_BYTES)
        finally:
            body.close()

    def close(self) -> None:
        """It is closed when nobody refers to it any more."""


def make_ready(path: str, mark: BodiesMark) -> None:
    """Make an empty folder one for bodies. It stays as it is if it has the mark already.

    Raises: BodiesUnfit: it is not empty, or belongs to another store; OSError.
    """
    try:
        root = OpenFolder(path)
    except FileNotFoundError:
        raise BodiesUnfit(f"{path} does not exist: mount it, or make it, first") from None
    except NotADirectoryError:
        raise BodiesUnfit(f"{path} is no folder") from None
    names = set(root.names())
    if MARK in names:
        found = BodyFolder(path).mark
        if found.store != mark.store:
            raise BodiesUnfit(f"{path} has the bodies of another store; name an empty folder")
        return
    names = {name for name in names if not name.startswith(_NEW_MARK)}
    if names - _ALLOWED_BEFORE or (_BODIES in names and _has_bodies(root)):
        raise BodiesUnfit(f"{path} is not empty, and has no mark; name an empty folder")
    for name in (_BODIES, *_FOLDERS):
        try:
            root.make_folder(name)
        except FileExistsError:
            continue
    root.sync(_BODIES)
    write_mark(root, mark)


def write_mark(
    root: OpenFolder, mark: BodiesMark, is_late: Callable[[], bool] = lambda: False
) -> None:
    """Durable on return, and never half.

    A call that hung may go on when another gateway has written the mark many times. So each writer
    has a name of its own, and removes those of writers before.
    """
    for left in root.names():
        if left.startswith(_NEW_MARK):
            unlinked(root, left)
    own = f"{_NEW_MARK}.{mark.turn.hex}"
    descriptor = root.create(own)
    try:
        write_all(descriptor, mark.text(), 0)
        sync_file(descriptor)
    finally:
        os.close(descriptor)
    if is_late():
        raise TimeoutError(errno.ETIMEDOUT, "the mark was written too late, and is left as it was")
    root.rename(own, MARK)
    root.sync()


def _text_of(root: OpenFolder, name: str) -> bytes:
    """Read a small file, which may be replaced meanwhile."""
    for attempt in range(_STALE_TRIES):
        try:
            with root.reader(name) as file:
                return file.read(_MARK_BYTES_MAX) or b""
        except OSError as error:
            if error.errno != errno.ESTALE or attempt + 1 == _STALE_TRIES:
                raise
            time.sleep(0.05)
    raise AssertionError("it returns or raises before")


def _has_bodies(root: OpenFolder) -> bool:
    return any(
        set(root.names(f"{_BODIES}/{one}")) for one in root.names(_BODIES) if len(one) == 2
    ) or any(f"{_BODIES}/{one}" not in _FOLDERS for one in root.names(_BODIES))


def _states(root: OpenFolder, body_ids: Sequence[int], now: float) -> Iterator[FoundBody]:
    for body_id in body_ids:
        try:
            size_bytes, changed = root.state(name_of(body_id))
        except FileNotFoundError:
            continue  # it was removed just now
        yield FoundBody(body_id, size_bytes, now - changed)
