"""One body's file in a folder: written, synced and read by calls that may block.

Lives here: `FolderWriting` and `FolderReading`. Must not live here: where a file lies (layout.py).
"""

from __future__ import annotations

import errno
import functools
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO, Final

from strongroom.engines.bodies.base import BodiesAway
from strongroom.engines.bodies.blocking import NotDurable
from strongroom.platform.files import pread, pwrite, start_write_back, sync_data
from strongroom.platform.open_folder import OpenFolder

_NO_SPACE: Final = (errno.ENOSPC, errno.EDQUOT)


class FolderWriting:
    """See BlockingWriting.

    Arguments:
        name: of the body's file, below the root.
        folder: which has the name.
        descriptor: of the file, new.
    """

    pieces_at_once = 1

    def __init__(self, root: OpenFolder, name: str, folder: str, descriptor: int) -> None:
        self._root = root
        self._name = name
        self._folder = folder
        self._descriptor = descriptor
        self._at = 0

    def pieces(self, data: bytes, now_s: float) -> Sequence[Callable[[], None]]:
        work = functools.partial(write_all, self._descriptor, data, self._at)
        self._at += len(data)
        return (work,)

    def finish(self) -> None:
        with _durable():
            try:
                sync_data(self._descriptor)
            finally:
                self._close()
            self._root.sync(self._folder)
        self._check_name()

    def _check_name(self) -> None:
        """Raises: BodiesAway: whoever sweeps has removed the body. The file is opened, since then
        the server of a network's file system is asked."""
        try:
            self._root.reader(self._name).close()
        except FileNotFoundError:
            number = int(self._name.rpartition("/")[2], 16)
            raise BodiesAway(f"body {number} was removed while it was written") from None

    def give_up(self) -> None:
        try:
            self._close()
        finally:
            unlinked(self._root, self._name)

    def _close(self) -> None:
        """Idempotent. A close that fails has closed the descriptor too, and its number may be
        another file's by now."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


class FolderReading:
    """See BlockingReading. The file is closed with it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        try:
            self.size_bytes = os.fstat(file.fileno()).st_size
        except BaseException:
            file.close()
            raise

    def read(self, offset: int, length: int) -> bytes:
        file = self._file
        data = pread(file.fileno(), length, offset)
        while data and len(data) < length:
            more = pread(file.fileno(), length - len(data), offset + len(data))
            if not more:
                break
            data += more
        return data

    def close(self) -> None:
        self._file.close()


@contextmanager
def _durable() -> Iterator[None]:
    """A sync that fails for want of space loses this file only, which is removed then. After any
    other error, what of all written files is durable is not known."""
    try:
        yield
    except OSError as error:
        if error.errno in _NO_SPACE:
            raise
        raise NotDurable(error.errno, error.strerror) from None


def write_all(descriptor: int, data: bytes, offset: int) -> None:
    """Write all of it, and let the system begin to write it back."""
    written = pwrite(descriptor, data, offset)
    while written < len(data):
        # A short write hides its error; the next call raises it.
        written += pwrite(descriptor, memoryview(data)[written:], offset + written)
    start_write_back(descriptor, offset, len(data))


def unlinked(root: OpenFolder, name: str) -> None:
    """Remove a file, unless it is gone."""
    try:
        root.unlink(name)
    except FileNotFoundError:
        pass
