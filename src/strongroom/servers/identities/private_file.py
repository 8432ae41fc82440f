"""Small files of the server's operator: read within a bound, replaced whole, seen when they change.

Lives here: what the accounts file, the roles file and a key set have in common. Must not live here:
their formats.
"""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Generic, TypeVar

T = TypeVar("T")

_PRIVATE: Final = 0o600
_log = logging.getLogger(__name__)
_Seen = tuple[int, int, int, int]


def read(path: Path, bytes_max: int) -> bytes | None:
    """A file's content; None when it is longer than `bytes_max`. Raises: OSError."""
    with open(path, "rb") as file:
        text = file.read(bytes_max + 1)
    return None if len(text) > bytes_max else text


@contextmanager
def changing(path: Path) -> Iterator[Callable[[bytes], None]]:
    """Replace a file: `with changing(path) as replace: replace(content)`.

    A reader sees the old file or the new one, also after a power cut; two changes at a time follow
    each other. The file is readable by its owner only.

    Raises: OSError.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _locked(path.parent) as directory:

        def replace(content: bytes) -> None:
            _write(path, content)
            os.fsync(directory)

        yield replace


@contextmanager
def _locked(directory: Path) -> Iterator[int]:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def _write(path: Path, text: bytes) -> None:
    temporary = path.with_name(path.name + ".new")
    temporary.unlink(missing_ok=True)  # a change that was cut off
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(temporary, flags, _PRIVATE), "wb") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


class WatchedFile(Generic[T]):
    """What a file says now: `get` looks whether it has changed, by a `stat`.

    A file that cannot be read or breaks a rule is logged once, and its last good state stays.

    Arguments:
        path: the file; it need not exist.
        bytes_max: a longer file is not read.
        parse: its content as a value. Raises: ValueError that says what is wrong.
        absent: the value where there is no file.

    Raises: OSError, ValueError: the file is there and cannot be used.
    """

    def __init__(self, path: Path, bytes_max: int, parse: Callable[[bytes], T], absent: T) -> None:
        self._path = path
        self._bytes_max = bytes_max
        self._parse = parse
        self._absent = absent
        self._seen = self._stamp()
        self._value = absent if self._seen is None else self._load()

    @property
    def exists(self) -> bool:
        """Whether there was a file when it was last looked at."""
        return self._seen is not None

    def get(self) -> T:
        """The value of the file's last good state."""
        try:
            seen = self._stamp()
        except OSError:  # a directory above it was closed to us
            return self._value
        if seen != self._seen:
            self._seen = seen
            self._take(seen)
        return self._value

    def _take(self, seen: _Seen | None) -> None:
        if seen is None:
            _log.warning("%s is gone", self._path)
            self._value = self._absent
            return
        try:
            self._value = self._load()
        except (OSError, ValueError) as error:
            _log.error("%s is not used, what it said before stays: %s", self._path, error)

    def _load(self) -> T:
        text = read(self._path, self._bytes_max)
        if text is None:
            raise ValueError(f"it is longer than {self._bytes_max} bytes")
        return self._parse(text)

    def _stamp(self) -> _Seen | None:
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            return None
        return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino
