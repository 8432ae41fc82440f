"""What a setup reads from the disk and the environment: its file, keys, and folders of samples.

Lives here: reading, within limits, and what is refused for its permissions. Must not live here: the
form of the file (document.py). Only `serve` has a setup, so a file of it is the operator's; but
whoever may write it could make accounts and give access. So it is refused if others may write it.
"""

from __future__ import annotations

import asyncio
import mimetypes
import os
import stat
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from strongroom.platform.files import rights_of_others
from strongroom.setup.document import SetupError

FILE_BYTES_MAX: Final = 4 * 1024 * 1024
_KEY_BYTES_MAX: Final = 4096
_CHUNK_BYTES: Final = 256 * 1024
# A pipe in place of a file must not make the server wait. Not every system has all of these.
_READ: Final = os.O_RDONLY | sum(
    getattr(os, name, 0) for name in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY")
)
_NO_LINK: Final[int] = getattr(os, "O_NOFOLLOW", 0)
# The program's own table, so that a folder has the same types on every machine.
_TYPES: Final = mimetypes.MimeTypes(filenames=())
_ENCODED: Final = {"gzip": "application/gzip", "bzip2": "application/x-bzip2"}
_ANY_TYPE: Final = "application/octet-stream"


def read_setup(path: Path) -> str:
    """Return the text of a setup file. Raises: SetupError."""
    try:
        return _read(path, FILE_BYTES_MAX, "w").decode()
    except UnicodeDecodeError as error:
        raise SetupError(f"{path}: it is not UTF-8 ({error.reason})") from None


def read_key(given: str, below: Path, environment: Mapping[str, str]) -> str:
    """Return a key, as base64.

    Arguments:
        given: the key itself, `env:NAME`, or `file:PATH`.
        below: the folder of a path that is not absolute.

    Raises: SetupError, which never has the key.
    """
    source, colon, name = given.partition(":")
    if not colon:
        return given.strip()
    if source == "env":
        key = environment.get(name, "").strip()
        if not key:
            raise SetupError(f"the environment variable {name} is not set")
        return key
    if source == "file":
        data = _read(below / name, _KEY_BYTES_MAX, "rw")
        return data.decode("ascii", "replace").strip()
    raise SetupError("a key is base64, env:NAME or file:PATH")


def _read(path: Path, bytes_max: int, refused: str) -> bytes:
    """Return the content of a file for which others have none of the refused rights, "w" or
    "rw"."""
    try:
        with open(os.open(path, _READ), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise SetupError(f"{path} is not a file")
            if set(refused) & set(rights_of_others(file.fileno())):
                verb = "write" if refused == "w" else "read or write"
                raise SetupError(f"other users may {verb} {path}: chmod go-{refused} {path}")
            data = file.read(bytes_max + 1)
    except OSError as error:
        raise SetupError(f"{path} cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise SetupError(f"{str(path)!r} is no path: {error}") from None
    if len(data) > bytes_max:
        raise SetupError(f"{path} is longer than {bytes_max} bytes")
    return data


class Sample(NamedTuple):
    """A file of a folder of samples, as a blob.

    Attributes:
        name: the blob's, with `/` between the folders.
        path: where it is. None: it is a link that leads out of the folder, or to no file.
    """

    name: str
    path: Path | None


def samples(folder: Path) -> Iterator[Sample]:
    """Yield the files below a folder, in the order of their names.

    A link is followed to a file inside of the folder only. Folders that are links are passed over.

    Raises: SetupError.
    """
    root = Path(os.path.realpath(folder))
    if not root.is_dir():
        raise SetupError(f"{folder} is not a folder")
    for place, folders, files in os.walk(root, onerror=_refuse):
        folders.sort()
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        for name in sorted([*files, *links]):
            path = Path(place) / name
            yield Sample(path.relative_to(root).as_posix(), _inside(root, path))


def _refuse(error: OSError) -> None:
    raise SetupError(f"{error.filename} cannot be read: {error.strerror}")


def _inside(root: Path, path: Path) -> Path | None:
    if not path.is_symlink():
        return path if path.is_file() else None
    target = Path(os.path.realpath(path))
    return target if target.is_relative_to(root) and target.is_file() else None


def content_type(name: str) -> str:
    media_type, encoding = _TYPES.guess_type(name)
    if encoding is not None:
        return _ENCODED.get(encoding, _ANY_TYPE)
    return media_type or _ANY_TYPE


class FileBody:
    """The body of a request: a file that is read while it is sent. Close it afterwards.

    Raises, when made: SetupError.
    """

    def __init__(self, path: Path) -> None:
        try:
            # It is read in pieces of its own size.
            self._file = open(os.open(path, _READ | _NO_LINK), "rb", buffering=0)  # noqa: SIM115
        except OSError as error:
            raise SetupError(f"{path} cannot be read: {error.strerror}") from None
        status = os.fstat(self._file.fileno())
        if not stat.S_ISREG(status.st_mode):
            self._file.close()
            raise SetupError(f"{path} is not a file")
        self.path = path
        self.size_bytes: int | None = status.st_size
        self.is_held_back = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self.size_bytes or 0
        while left:
            piece = await asyncio.to_thread(self._file.read, min(left, _CHUNK_BYTES))
            if not piece:
                raise SetupError(f"{self.path} became shorter while it was read")
            left -= len(piece)
            yield piece

    async def read_all(self, max_bytes: int) -> bytes:
        return b"".join([piece async for piece in self])

    def close(self) -> None:
        """Close the file. Idempotent."""
        self._file.close()


class RequestBytes:
    """The body of a request: bytes in memory."""

    def __init__(self, data: bytes) -> None:
        self.size_bytes: int | None = len(data)
        self.is_held_back = False
        self._data = data

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._data:
            yield self._data

    async def read_all(self, max_bytes: int) -> bytes:
        return self._data
