"""A store in a folder of one host: a file per key, replaced as a whole, under one flock.

Lives here: `FileStore`. Every write holds an flock on `.lock` in the folder, and a read sees the
last finished write. So get and cas are linearizable among the processes of one host. A network file
system may break that guarantee. A write goes to a temporary file, is flushed to the disk, and
renamed over the old one. The file holds one line of JSON (version and note), followed by the raw
value. Versions are numbers from a counter in a file of its own. So a key that was deleted and
created again never has an old version. Observers measure the time of leases. Waiters poll.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from strongroom.coordination.effects import (
    CONFLICT,
    Applied,
    CasOutcome,
    Entry,
    LeaseTerms,
    Unknown,
    Watched,
)
from strongroom.coordination.errors import CorruptRecord, StoreRefused, Unsupported
from strongroom.coordination.options.url_options import SWITCH, UrlOptions, check_options
from strongroom.coordination.schema.records import DECODE_ERRORS
from strongroom.coordination.store import Promises
from strongroom.coordination.stores.threaded_store import StoreBase
from strongroom.platform.files import open_reader, rename, sync_directory, sync_file, unlink
from strongroom.platform.locks import lock

_SUFFIX: Final = ".entry"
# A capital letter of a name, which is not part of an escape.
_CAPITAL: Final = re.compile(r"(?<!%)(?<!%.)[A-Z]")
_OPTIONS: Final = UrlOptions({"sync": SWITCH})


class FileStore(StoreBase):
    """A folder that the processes of one host share.

    Arguments:
        folder: created if it is missing.
        sync: whether every write is flushed to the disk before it is acknowledged.

    Raises:
        StoreRefused: the folder cannot be created.
    """

    def __init__(self, folder: Path, sync: bool = True) -> None:
        self._folder, self._sync = folder, sync
        self._thread_lock = threading.Lock()
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreRefused(f"{folder}: {error.strerror}") from error

    def get(self, key: str, timeout_s: float) -> Entry | None:
        # A rename is atomic, so a reader needs no lock: it sees the last finished write.
        return self._read(key)

    def cas(
        self,
        key: str,
        expected: str | None,
        value: bytes,
        timeout_s: float,
        lease: LeaseTerms | None = None,
        note: str = "",
    ) -> CasOutcome:
        with self._exclusive():
            entry = self._read(key)
            if (None if entry is None else entry.version) != expected:
                return CONFLICT
            with _refuse_os_errors(key):
                self._path(key).parent.mkdir(exist_ok=True)
            version = self._next_version()
            head = json.dumps({"version": version, "note": note})
            self._replace(self._path(key), head.encode() + b"\n" + value)
            return self._flush_and_report(self._path(key).parent, version)

    def delete(self, key: str, expected: str, timeout_s: float) -> CasOutcome:
        with self._exclusive():
            entry = self._read(key)
            if entry is None or entry.version != expected:
                return CONFLICT
            with _refuse_os_errors(key):
                unlink(os.fspath(self._path(key)))
            return self._flush_and_report(self._path(key).parent, expected)

    def list_keys(self, prefix: str, timeout_s: float) -> list[str]:
        found = (
            f"{path.parent.name}/{path.name.removesuffix(_SUFFIX)}"
            for path in self._folder.glob(f"*/*{_SUFFIX}")
        )
        return sorted(key for key in found if key.startswith(prefix))

    def watch(self, key: str, version: str | None, timeout_s: float) -> Watched:
        raise Unsupported("a folder cannot be watched; read it")

    def promises(self) -> Promises:
        return Promises(
            store=f"the folder {self._folder}",
            mutual_exclusion="clock-rate",
            assumption="all participants run on this host, on a local file system that keeps flock",
            fencing="durable",
            watch="poll",
            durable=self._sync,
            scope="host",
            poll_min_s=0.01,
            poll_max_s=0.25,
        )

    def after_fork(self) -> None:
        self._thread_lock = threading.Lock()

    def _path(self, key: str) -> Path:
        # Keys come from names.py: one slash, and no part that begins with a dot.
        kind, _, escaped = key.partition("/")
        if not kind.isidentifier() or not escaped or escaped.startswith(".") or "/" in escaped:
            raise StoreRefused(f"{key!r} is no key")
        if _CAPITAL.search(escaped) and (self._folder / ".LOCK").exists():
            raise StoreRefused(
                f"{key}: {self._folder} is on a file system that takes capital and small letters "
                "for the same, so two names could share a file. Use names without capital letters"
            )
        return self._folder / kind / f"{escaped}{_SUFFIX}"

    def _read(self, key: str) -> Entry | None:
        try:
            with open_reader(os.fspath(self._path(key))) as file:
                raw = file.read()
        except FileNotFoundError:
            if not self._folder.is_dir():
                # A missing folder means lost fences, so it must not look like an empty store.
                raise StoreRefused(f"{self._folder}: the folder is gone") from None
            return None
        except OSError as error:
            raise StoreRefused(f"{key}: {error.strerror}") from error
        head, newline, value = raw.partition(b"\n")
        try:
            document = json.loads(head)
            entry = Entry(value, str(document["version"]), None, str(document["note"]))
        except DECODE_ERRORS as error:
            raise CorruptRecord(key, raw, "a line of JSON and a value") from error
        if not newline:
            raise CorruptRecord(key, raw, "a line of JSON and a value")
        return entry

    def _next_version(self) -> str:
        path = self._folder / ".versions"
        try:
            with _refuse_os_errors(path):
                last = int(path.read_text()) if path.exists() else 0
        except ValueError as error:
            raise CorruptRecord(".versions", path.read_bytes(), "a number") from error
        self._replace(path, str(last + 1).encode())
        with _refuse_os_errors(path):
            self._flush(self._folder)
        return str(last + 1)

    def _replace(self, path: Path, raw: bytes) -> None:
        new = path.with_name(f"{path.name}.new")
        with _refuse_os_errors(path):
            with new.open("wb") as file:
                file.write(raw)
                file.flush()
                if self._sync:
                    sync_file(file.fileno())
            rename(os.fspath(new), os.fspath(path))

    def _flush_and_report(self, folder: Path, version: str) -> CasOutcome:
        """Flush a change of a folder to the disk, and return the outcome of the write."""
        try:
            self._flush(folder)
        except OSError as error:
            return Unknown(f"{folder}: {error.strerror}")  # a power cut may undo it
        return Applied(version)

    def _flush(self, folder: Path) -> None:
        if self._sync:
            sync_directory(os.fspath(folder))

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        path = self._folder / ".lock"
        with self._thread_lock:
            with _refuse_os_errors(path):
                file = path.open("ab")
            with file:
                with _refuse_os_errors(path):
                    lock(file.fileno(), shared=False, wait=True)
                yield


@contextmanager
def _refuse_os_errors(what: object) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreRefused(f"{what}: {error.strerror}") from error


def open_url(url: str, query: Mapping[str, str]) -> FileStore:
    """Return the store in a folder.

    Arguments:
        url: file:///path/to/folder
        query: `sync=0` skips flushing to the disk. It is faster, but a power cut may reset fences.
    """
    check_options(url, query, _OPTIONS)
    parts = urlsplit(url)
    folder = unquote(parts.path)
    is_absolute = folder.startswith("/") and "\0" not in folder
    if parts.netloc not in ("", "localhost") or not is_absolute:
        # The URL is not quoted: the part in place of the folder may be a password.
        raise Unsupported("the URL names no folder; write file:///path/to/folder")
    # file:///C:/folder names C:/folder on Windows. Elsewhere no path has a drive.
    folder = folder[1:] if os.path.splitdrive(folder[1:])[0] else folder
    return FileStore(Path(folder), sync=query.get("sync") != "0")
