"""The files of a folder of bodies, and the calls that may block.

    STRONGROOM-BODIES   the mark (mark.py); replaced as a whole
    bodies/5e/          256 folders, made before the mark is; so none is made while it is served
    bodies/5e/00...     a body: its name is its id, as 16 hexadecimal digits

Lives here: `BodyFolder`, whose methods run in threads. Must not live here: time limits, and what an
error means for a caller (folder.py).

A body is written under its final name, which no other gateway looks up before its id was committed.
So no client of a network's file system keeps that the name is missing. A reader opens the file
anew, so its client asks the server for the length.
"""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO, Final

from strongroom.engines.bodies.base import BodiesAway, BodiesUnfit, FoundBody
from strongroom.engines.bodies.mark import BodiesMark, UnknownMark, parse_mark
from strongroom.platform.files import pread, pwrite, start_write_back, sync_file
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


def folder_of(body_id: int) -> str:
    """Ids are times, which differ little: the folder comes from a hash."""
    return _FOLDERS[(body_id * _MULTIPLIER & _WORD) >> 56]


def name_of(body_id: int) -> str:
    """Below the folder with the mark."""
    return f"{folder_of(body_id)}/{body_id:016x}"


class BodyFolder:
    """A folder with its mark.

    Arguments:
        path: of the folder, which may be a mount point.

    Attributes:
        mark: as it was read last.

    Raises: BodiesUnfit, OSError.
    """

    def __init__(self, path: str) -> None:
        self.path = path
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
                "a new folder is made ready by `strongroom store init URL --bodies FOLDER`"
            ) from None
        try:
            return parse_mark(text)
        except UnknownMark as error:
            raise BodiesUnfit(f"{self.path}: {error}") from None

    def put_mark(self, mark: BodiesMark, is_late: Callable[[], bool]) -> None:
        """Replace the mark unless it is too late when the new one is durable."""
        write_mark(self._root, mark, is_late)
        self.mark = mark

    def create(self, body_id: int) -> int:
        return self._root.create(name_of(body_id))

    def undo_create(self, body_id: int, descriptor: int) -> None:
        try:
            os.close(descriptor)
        finally:
            self.remove((body_id,))

    def sync_name(self, body_id: int) -> None:
        self._root.sync(folder_of(body_id))

    def check_name(self, body_id: int) -> None:
        """Raises: BodiesAway: whoever sweeps has removed the body. The file is opened, since then
        the server of a network's file system is asked."""
        try:
            self._root.reader(name_of(body_id)).close()
        except FileNotFoundError:
            raise BodiesAway(
                f"{self.path}: body {body_id} was removed while it was written"
            ) from None

    def open(self, body_id: int) -> tuple[BinaryIO, int]:
        """Return a body's file and its length."""
        file = self._root.reader(name_of(body_id))
        try:
            return file, os.fstat(file.fileno()).st_size
        except BaseException:
            file.close()
            raise

    def remove(self, body_ids: Sequence[int]) -> None:
        for body_id in body_ids:
            _unlinked(self._root, name_of(body_id))

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

    @property
    def folders(self) -> int:
        return len(_FOLDERS)

    def pages(self) -> Iterator[list[int]]:
        for number in range(self.folders):
            yield self.ids(number)

    def pieces(self, body_id: int) -> Iterator[bytes]:
        file, size_bytes = self.open(body_id)
        with file:
            for offset in range(0, size_bytes, _PIECE_BYTES):
                yield pread(file.fileno(), _PIECE_BYTES, offset)


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
            _unlinked(root, left)
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


def write_all(descriptor: int, data: bytes, offset: int) -> None:
    """Write all of it, and let the system begin to write it back."""
    written = pwrite(descriptor, data, offset)
    while written < len(data):
        # A short write hides its error; the next call raises it.
        written += pwrite(descriptor, memoryview(data)[written:], offset + written)
    start_write_back(descriptor, offset, len(data))


def _unlinked(root: OpenFolder, name: str) -> None:
    """Remove a file, unless it is gone."""
    try:
        root.unlink(name)
    except FileNotFoundError:
        pass


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
