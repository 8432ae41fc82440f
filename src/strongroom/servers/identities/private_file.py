"""Small files of the operator: reads within a size limit, atomic replacement, change detection.

Lives here: what the accounts file, the roles file and a key set have in common. Must not live here:
their formats.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from strongroom.platform.files import open_file, rename, sync_file
from strongroom.platform.locks import locked_folder

T = TypeVar("T")

_log = logging.getLogger(__name__)
_Fingerprint = tuple[int, int, int, int]


def read(path: Path, bytes_max: int, parse: Callable[[bytes], T], refusal: type[ValueError]) -> T:
    """Read a file and return its parsed content.

    Arguments:
        bytes_max: a longer file is refused.
        parse: raises `refusal` with the reason if the content is invalid.

    Raises: OSError; `refusal` with the name of the file.
    """
    with open(path, "rb") as file:
        return _parsed(path, file.read(bytes_max + 1), bytes_max, parse, refusal)


def _parsed(
    path: Path,
    text: bytes,
    bytes_max: int,
    parse: Callable[[bytes], T],
    refusal: type[ValueError],
) -> T:
    if len(text) > bytes_max:
        raise refusal(f"{path}: longer than {bytes_max} bytes")
    try:
        return parse(text)
    except refusal as error:
        raise refusal(f"{path}: {error}") from None


class RowsFormat(msgspec.Struct, Generic[T], frozen=True):
    """The format of a file of rows; `bytes_max`, `parse` and `refusal` are as for `read`."""

    bytes_max: int
    parse: Callable[[bytes], tuple[T, ...]]
    serialise: Callable[[Iterable[T]], bytes]
    refusal: type[ValueError]


def change(path: Path, rows: RowsFormat[T], edit: Callable[[tuple[T, ...]], tuple[T, ...]]) -> None:
    """Replace a file atomically by the rows that `edit` returns.

    `edit` gets the present rows, and no rows if there is no file. A reader sees the old file or the
    new one, even after a power cut. A file lock makes concurrent changes follow each other. Only
    the owner can read the file.

    Raises: as `read`; also if nobody could read the new file, which is then not written.
    """
    limits = rows.bytes_max, rows.parse, rows.refusal
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked_folder(os.fspath(path.parent)) as directory:
        try:
            before = read(path, *limits)
        except FileNotFoundError:
            before = ()
        text = rows.serialise(edit(before))
        _parsed(path, text, *limits)
        _write(path, text)
        sync_file(directory)


def _write(path: Path, text: bytes) -> None:
    temporary = path.with_name(path.name + ".new")
    temporary.unlink(missing_ok=True)  # left by an interrupted change
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    descriptor = open_file(os.fspath(temporary), flags, follows_links=False)
    with os.fdopen(descriptor, "wb") as file:
        file.write(text)
        file.flush()
        sync_file(file.fileno())
    rename(os.fspath(temporary), os.fspath(path))


class WatchedFile(Generic[T]):
    """The content of a file, kept current: each `get` checks by one `stat` whether the file has
    changed.

    If the file cannot be read or is invalid, the error is logged once and the last valid value
    stays. A file that could not be read is read again by the next `get`.

    Arguments:
        path: the file; it need not exist.
        load: returns the value of the file. It raises OSError, or ValueError with the reason.
        absent: the value if there is no file.
        outlives_file: whether the last valid value stays when the file is deleted.

    Raises: OSError, ValueError: the file exists and cannot be used.
    """

    def __init__(
        self, path: Path, load: Callable[[Path], T], absent: T, *, outlives_file: bool = False
    ) -> None:
        self._path = path
        self._text = os.fspath(path)
        self._load = load
        self._absent = absent
        self._outlives_file = outlives_file
        self._seen = _fingerprint(self._text)
        self._is_unread = False  # whether the last read of the file failed
        self._value = absent if self._seen is None else load(path)

    @property
    def exists(self) -> bool:
        """Whether the file existed at the last check."""
        return self._seen is not None

    def get(self) -> T:
        # Usually the file still does not exist. `access` raises no exception and costs a third of
        # `stat`.
        if self._seen is None and not os.access(self._text, os.F_OK):
            return self._value
        try:
            seen = _fingerprint(self._text)
        except OSError:  # a directory above the file is no longer accessible
            return self._value
        if seen != self._seen or self._is_unread:
            has_changed, self._seen = seen != self._seen, seen
            if seen is None:
                self._on_deleted()
            else:
                self._reload(has_changed)
        return self._value

    def _on_deleted(self) -> None:
        self._is_unread = False
        if self._outlives_file:
            _log.warning("%s is gone; what it said before stays", self._path)
        else:
            _log.warning("%s is gone, and with it what it said", self._path)
            self._value = self._absent

    def _reload(self, has_changed: bool) -> None:
        try:
            self._value = self._load(self._path)
        except (OSError, ValueError) as error:
            # A read may succeed later: a lack of file descriptors is temporary.
            self._is_unread = isinstance(error, OSError)
            if has_changed:
                _log.error("%s is not used, what it said before stays: %s", self._path, error)
        else:
            self._is_unread = False
            _log.info("%s has changed, and is used from now on", self._path)


def _fingerprint(path: str) -> _Fingerprint | None:
    """It changes with each change of a file; None if there is no file."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino
