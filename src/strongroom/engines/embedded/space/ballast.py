"""The ballast: a file whose length is the space kept back for a full disk.

Lives here: how the file grows and shrinks. Must not live here: which updates may use its space
(reserve.py).

The file can be cut to any length. Its space is released in slices, so that another program that
fills the disk gets little of it. Its bytes cannot be compressed, because a file system with
compression would store zeros in almost no space.
"""

from __future__ import annotations

import hashlib
import os
from typing import Final

from strongroom.engines.embedded.disk.files import Files, is_no_space

BALLAST_BYTES: Final = 32 * 1024 * 1024

_PIECE_BYTES: Final = 1024 * 1024
# The free space that must remain after the ballast was filled.
_MARGIN_BYTES: Final = 1024 * 1024


class Ballast:
    """The ballast of one data directory.

    Arguments:
        path: the path of its file, which need not exist.
        full_bytes: the file's length when the ballast is whole.
    """

    def __init__(self, files: Files, path: str, full_bytes: int) -> None:
        self.full_bytes = full_bytes
        self._files = files
        self._path = path

    def held_bytes(self) -> int:
        """The current length of the file. Raises OSError."""
        try:
            return min(os.path.getsize(self._path), self.full_bytes)
        except FileNotFoundError:
            return 0

    def free_bytes(self) -> int:
        """How many more the file system can hold. Raises OSError."""
        return self._files.free_bytes(os.path.dirname(self._path))

    def cut(self, length: int) -> None:
        """Give up all but the first `length` bytes. Raises OSError; FileNotFoundError when the file
        was removed."""
        descriptor = self._files.reopen(self._path)
        try:
            self._files.truncate(descriptor, length)
            # Where the file system keeps a journal, the space is free only after this.
            self._files.sync(descriptor)
        finally:
            self._files.close(descriptor)

    def fill(self, length: int) -> bool:
        """Extend the file to `length` bytes. Return False when there is no space for that. Raises
        OSError."""
        held_bytes = self.held_bytes()
        if self.free_bytes() < length - held_bytes + _MARGIN_BYTES:
            return False
        try:
            descriptor = self._open()
        except OSError as error:
            if not is_no_space(error):
                raise
            return False
        try:
            size_bytes = max(0, min(_PIECE_BYTES, length - held_bytes))
            noise = hashlib.shake_128(b"ballast").digest(size_bytes)
            for offset in range(held_bytes, length, _PIECE_BYTES):
                data = _rotated(noise, offset // _PIECE_BYTES)[: length - offset]
                self._files.write_at(descriptor, data, offset)
            self._files.sync(descriptor)
        except OSError as error:
            if not is_no_space(error):
                raise
            self._files.truncate(descriptor, held_bytes)
            return False
        finally:
            self._files.close(descriptor)
        self._files.sync_directory(os.path.dirname(self._path))
        return True

    def _open(self) -> int:
        try:
            return self._files.reopen(self._path)
        except FileNotFoundError:
            return self._files.create(self._path)


def _rotated(noise: bytes, places: int) -> bytes:
    """Return the noise rotated by `places` bytes. So no block of one piece equals a block of
    another one: a file system may store equal blocks once."""
    return noise[places:] + noise[:places]
