"""Small files of the server's operator: read within a bound, replaced whole, seen when they change.

Lives here: what the accounts file, the roles file and a key set have in common. Must not live here:
their formats.
"""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Generic, TypeVar

T = TypeVar("T")

_PRIVATE: Final = 0o600
_log = logging.getLogger(__name__)
_Seen = tuple[int, int, int, int]


def read(path: Path, bytes_max: int, parse: Callable[[bytes], T], refusal: type[ValueError]) -> T:
    """A file's content as a value.

    Arguments:
        bytes_max: a longer file is not read.
        parse: raises `refusal`, which says what is wrong with a content.

    Raises: OSError; `refusal` with the name of the file.
    """
    with open(path, "rb") as file:
        text = file.read(bytes_max + 1)
    if len(text) > bytes_max:
        raise refusal(f"{path}: longer than {bytes_max} bytes")
    try:
        return parse(text)
    except refusal as error:
        raise refusal(f"{path}: {error}") from None


def change(
    path: Path,
    read: Callable[[Path], tuple[T, ...]],
    serialise: Callable[[Iterable[T]], bytes],
    edit: Callable[[tuple[T, ...]], tuple[T, ...]],
) -> None:
    """Replace a file by what `edit` makes of its rows (none when there is no file).

    A reader sees the old file or the new one, also after a power cut; two changes at a time follow
    each other. The file is readable by its owner only.

    Raises: OSError, whatever `read` and `edit` raise.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _locked(path.parent) as directory:
        try:
            before = read(path)
        except FileNotFoundError:
            before = ()
        _write(path, serialise(edit(before)))
        os.fsync(directory)


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
    """The content of a file as it is now: `get` looks whether it has changed, by a `stat`.

    A file that cannot be read or breaks a rule is logged once, and its last good state stays. One
    that could not be read is tried again at the next look.

    Arguments:
        path: the file; it need not exist.
        load: its content as a value. Raises: OSError, ValueError that says what is wrong.
        absent: the value where there is no file.
        outlives_file: whether the last good state stays when the file is gone too.

    Raises: OSError, ValueError: the file is there and cannot be used.
    """

    def __init__(
        self, path: Path, load: Callable[[Path], T], absent: T, *, outlives_file: bool = False
    ) -> None:
        self._path = path
        self._text = os.fspath(path)
        self._load = load
        self._absent = absent
        self._outlives_file = outlives_file
        self._seen = _stamp(self._text)
        self._is_unread = False  # its last state, since reading it failed
        self._value = absent if self._seen is None else load(path)

    @property
    def exists(self) -> bool:
        """Whether there was a file when it was last looked at."""
        return self._seen is not None

    def get(self) -> T:
        """The value of the file's last good state."""
        # Most often there is none, as before; asking without an exception costs a third.
        if self._seen is None and not os.access(self._text, os.F_OK):
            return self._value
        try:
            seen = _stamp(self._text)
        except OSError:  # a directory above it was closed to us
            return self._value
        if seen != self._seen or self._is_unread:
            has_changed, self._seen = seen != self._seen, seen
            if seen is None:
                self._lose()
            else:
                self._take(has_changed)
        return self._value

    def _lose(self) -> None:
        self._is_unread = False
        if self._outlives_file:
            _log.warning("%s is gone; what it said before stays", self._path)
        else:
            _log.warning("%s is gone, and with it what it said", self._path)
            self._value = self._absent

    def _take(self, has_changed: bool) -> None:
        try:
            self._value = self._load(self._path)
        except (OSError, ValueError) as error:
            # What could not be read may be readable soon: a lack of descriptors passes.
            self._is_unread = isinstance(error, OSError)
            if has_changed:
                _log.error("%s is not used, what it said before stays: %s", self._path, error)
        else:
            self._is_unread = False


def _stamp(path: str) -> _Seen | None:
    """A value that changes with each change of a file; None when there is no file. Raises:
    OSError."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino
