"""A data directory: its layout, version stamp, and lock.

The files in it:

    FORMAT          one line: "strongroom 4", followed by the marks of Format: " test-clock",
                    " allow-reset", " backup", " foreign-etags" and " upgrading" (upgrade/)
    UNFINISHED      instead of FORMAT, while a backup, a restore or an import is made
                    (copy_target.py)
    LOCK            held by the one server that has the directory open, which holds segments/ too
    BACKUP          held shared by a backup; while it is, no segment may be deleted. Each backup
                    that is complete writes a mark there, so its time of change says when
    records.sqlite  the records (records/sqlite.py)
    segments/       the contents (segments.py)
    ballast         space kept back for a full disk (ballast.py)
    scrub.json      where the scrub is, and what it has found; may be missing (scrub/kept.py)
"""

from __future__ import annotations

import errno
import os
import re
from dataclasses import dataclass
from typing import Final

import msgspec

from strongroom.engines.base import EngineError
from strongroom.engines.embedded.disk.files import Files, write_file
from strongroom.platform import FOLDER_LOCK_NAME
from strongroom.platform import files as system
from strongroom.platform.locks import lock, open_directory

FORMAT_VERSION: Final = "4"
OLD_VERSION: Final = "3"  # the pages of its records are not bound to their numbers
RECORDS_NAME: Final = "records.sqlite"

_PRODUCT: Final = "strongroom"
_TEST_CLOCK: Final = "test-clock"
_ALLOW_RESET: Final = "allow-reset"
_BACKUP: Final = "backup"
_UPGRADING: Final = "upgrading"
_FOREIGN_ETAGS: Final = "foreign-etags"
_UNFINISHED: Final = "FORMAT.new"
_UNFINISHED_COPY: Final = "UNFINISHED"
SEGMENT_NAME: Final = re.compile(r"([0-9a-f]{16})\.seg")
# Windows locks no folders, nor do some file systems in a network. LOCK alone guards a directory
# there.
_NO_FOLDER_LOCKS: Final = frozenset({errno.EBADF, errno.ENOLCK, errno.EOPNOTSUPP, errno.EISDIR})
# The files allowed in a new data directory: an operator may place keys and roles there first.
_ALLOWED_BEFORE_CREATION: Final = frozenset(
    {"LOCK", "accounts.json", "roles.json", "lost+found", FOLDER_LOCK_NAME}
)


class DirectoryInUse(EngineError):
    """Another server has this data directory open."""


class UnknownFormat(EngineError):
    """The directory was written by a version that this one does not understand."""


class NotADataDirectory(EngineError):
    """The directory holds something else; nothing in it was touched."""


class TestClockMismatch(EngineError):
    """A directory made for a test clock is opened without one, or the reverse."""

    __test__ = False  # its name is not meant for test collectors


class ResetNotAllowed(EngineError):
    """A directory that was not created to be reset is opened to be."""


class Damaged(EngineError):
    """Parts of the data directory are missing."""


class Format(msgspec.Struct, frozen=True):
    """The content of the FORMAT file.

    Attributes:
        allow_reset: the directory was created to be reset.
        upgrading: the records of this version are written, but those of the old version are perhaps
            still in their place.
        foreign_etags: records may have ETags that another server gave. An older version would show
            others, so it refuses the mark.
    """

    version: str = FORMAT_VERSION
    test_clock: bool = False
    backup: bool = False
    upgrading: bool = False
    foreign_etags: bool = False
    allow_reset: bool = False

    @property
    def is_current(self) -> bool:
        """False for the version before the present one."""
        return self.version == FORMAT_VERSION

    def text(self) -> str:
        marks = [_TEST_CLOCK] * self.test_clock + [_ALLOW_RESET] * self.allow_reset
        marks += [_BACKUP] * self.backup + [_FOREIGN_ETAGS] * self.foreign_etags
        marks += [_UPGRADING] * self.upgrading
        return " ".join([_PRODUCT, self.version, *marks]) + "\n"


def parse_format(text: str, path: str) -> Format:
    """Parse a FORMAT file. Raises UnknownFormat; its text names the found and the known format."""
    words = text.split()
    known = {_TEST_CLOCK, _ALLOW_RESET, _BACKUP}
    if words[1:2] == [FORMAT_VERSION]:
        known |= {_UPGRADING, _FOREIGN_ETAGS}
    if (
        len(words) < 2
        or words[0] != _PRODUCT
        or words[1] not in (FORMAT_VERSION, OLD_VERSION)
        or set(words[2:]) - known
    ):
        raise UnknownFormat(
            f"{path} has the format {text.strip()[:80]!r}; this version of Strongroom knows "
            f"{_PRODUCT + ' ' + FORMAT_VERSION!r}, and upgrades {_PRODUCT + ' ' + OLD_VERSION!r}. "
            "Open it with the version that wrote it."
        )
    return Format(
        words[1],
        test_clock=_TEST_CLOCK in words,
        backup=_BACKUP in words,
        upgrading=_UPGRADING in words,
        foreign_etags=_FOREIGN_ETAGS in words,
        allow_reset=_ALLOW_RESET in words,
    )


@dataclass(frozen=True, slots=True)
class DirectoryLayout:
    """The paths of the files in a data directory. Raises NotADataDirectory for a path that SQLite
    cannot open."""

    path: str

    def __post_init__(self) -> None:
        try:
            self.path.encode()
        except UnicodeEncodeError:
            raise NotADataDirectory(
                f"{self.path!r} cannot be a data directory: SQLite opens only paths in UTF-8"
            ) from None

    @property
    def format(self) -> str:
        return os.path.join(self.path, "FORMAT")

    @property
    def unfinished(self) -> str:
        return os.path.join(self.path, _UNFINISHED)

    @property
    def unfinished_copy(self) -> str:
        return os.path.join(self.path, _UNFINISHED_COPY)

    @property
    def lock(self) -> str:
        return os.path.join(self.path, "LOCK")

    @property
    def backup_lock(self) -> str:
        return os.path.join(self.path, "BACKUP")

    @property
    def records(self) -> str:
        return os.path.join(self.path, RECORDS_NAME)

    @property
    def new_records(self) -> str:
        """The records that an upgrade writes."""
        return self.records + ".new"

    @property
    def new_format(self) -> str:
        """What an upgrade renames to FORMAT."""
        return self.format + ".next"

    @property
    def log(self) -> str:
        return self.records + "-wal"

    @property
    def segments(self) -> str:
        return os.path.join(self.path, "segments")

    @property
    def ballast(self) -> str:
        return os.path.join(self.path, "ballast")

    def segment(self, segment_id: int) -> str:
        """The engine gives the ids, so no name from outside becomes a path."""
        return os.path.join(self.segments, f"{segment_id:016x}.seg")

    def segment_ids(self) -> list[int]:
        """Of the existing files, ascending."""
        matches = map(SEGMENT_NAME.fullmatch, os.listdir(self.segments))
        return sorted(int(match[1], 16) for match in matches if match is not None)

    def read_format(self) -> Format:
        """Read FORMAT. Raises NotADataDirectory, UnknownFormat."""
        try:
            with open(self.format, encoding="utf-8", errors="replace") as file:
                text = file.read(4096)
        except FileNotFoundError:
            text = None
        if text is None:
            self.refuse_unfinished_copy()
            raise NotADataDirectory(f"{self.path} is not a data directory: no FORMAT")
        return parse_format(text, self.path)

    def refuse_unfinished_copy(self) -> None:
        """Raise NotADataDirectory if what writes this directory has not been completed."""
        if os.path.exists(self.unfinished_copy):
            raise NotADataDirectory(
                f"{self.path} is not whole: the backup, restore, import or copy that wrote it was "
                "interrupted, or is still at work. Run the same command again."
            )


def give_to_owner_of(path: str, made: int | str) -> None:
    """Give a file that was just created to the owner of another one, if root created it. A command
    that root runs would else lock the server's own user out.

    Arguments:
        path: the other file, or the folder.
        made: the new file's descriptor or path.

    Raises: OSError.
    """
    system.give_to_owner_of(path, made)


class FileLock:
    """An advisory lock on a file of the directory. It is released when the process ends, in any
    way."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor: int | None = None

    def acquire(self, shared: bool = False, wait: bool = False) -> bool:
        """Return False when another process holds it and `wait` is False."""
        if self._descriptor is not None:
            return True
        descriptor = self._open()
        try:
            is_held = lock(descriptor, shared=shared, wait=wait)
        except BaseException:
            os.close(descriptor)
            raise
        if not is_held:
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        return True

    def release(self) -> None:
        """Idempotent."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self) -> int:
        try:
            descriptor = self._opened(os.O_EXCL)
        except FileExistsError:
            return self._opened(0)
        give_to_owner_of(os.path.dirname(self._path), descriptor)
        return descriptor

    def _opened(self, flags: int) -> int:
        return system.open_file(self._path, os.O_RDWR | os.O_CREAT | flags, keeps_name=True)


class ServerLock:
    """The lock of the one server of a directory; also of a command that changes what a server owns.

    It locks LOCK, and the folder `segments` too. LOCK holds no data, so an operator may remove it,
    and a new file of that name is not locked.
    """

    def __init__(self, layout: DirectoryLayout) -> None:
        self._locks = (FileLock(layout.lock), _FolderLock(layout.segments))

    def acquire(self) -> bool:
        """Take what is there of the two. Return False when another process holds one of them, and
        hold neither then. Call it again when `segments` has been created."""
        if all(one.acquire() for one in self._locks):
            return True
        self.release()
        return False

    def release(self) -> None:
        """Idempotent."""
        for one in self._locks:
            one.release()


class _FolderLock(FileLock):
    """An advisory lock on a folder, as long as there is one."""

    def acquire(self, shared: bool = False, wait: bool = False) -> bool:
        try:
            return super().acquire(shared, wait)
        except FileNotFoundError:
            return True
        except OSError as error:
            if error.errno not in _NO_FOLDER_LOCKS:
                raise
            return True

    def _open(self) -> int:
        return open_directory(self._path)


class DataDirectory:
    """An opened, locked data directory.

    Arguments:
        path: the directory; created (with its parents) when it does not exist.
        files: the calls that change files.
        test_clock: whether it is opened with a movable clock.
        allow_reset: whether it is opened to be reset.

    Raises: DirectoryInUse, UnknownFormat, NotADataDirectory, TestClockMismatch, ResetNotAllowed,
        Damaged, OSError.
    """

    def __init__(
        self, path: str, files: Files, test_clock: bool, allow_reset: bool = False
    ) -> None:
        self.layout = DirectoryLayout(os.path.abspath(path))
        self.files = files
        self.is_new = False
        self.format = Format(test_clock=test_clock, allow_reset=allow_reset)
        self._test_clock = test_clock
        self._allow_reset = allow_reset
        _make_directories(files, self.layout.path)
        system.refuse_unsafe_volume(self.layout.path)
        self._refuse_foreign_directory()
        self._lock = ServerLock(self.layout)
        self._acquire()
        try:
            self._check_or_begin()
            self._acquire()
        except BaseException:
            self._lock.release()
            raise

    def finish_creation(self) -> None:
        """Stamp a new directory, once everything in it is complete and durable."""
        if self.is_new:
            self.files.sync_directory(self.layout.path)
            self.files.rename(self.layout.unfinished, self.layout.format)
        self.files.sync_directory(self.layout.path)

    @property
    def allows_reset(self) -> bool:
        """Whether it was created to be reset, and is opened to be."""
        return self._allow_reset and self.format.allow_reset

    def free_bytes(self) -> int:
        """How many more bytes the file system can hold. Raises OSError."""
        return self.files.free_bytes(self.layout.path)

    def close(self) -> None:
        """Release the lock, so that another server can open the directory."""
        self._lock.release()

    def _acquire(self) -> None:
        if not self._lock.acquire():
            raise DirectoryInUse(
                f"another server has {self.layout.path} open; stop it, or name another directory"
            )

    def _refuse_foreign_directory(self) -> None:
        names = set(os.listdir(self.layout.path))
        if names & {"FORMAT", _UNFINISHED} or names <= _ALLOWED_BEFORE_CREATION:
            return
        self.layout.refuse_unfinished_copy()
        raise NotADataDirectory(
            f"{self.layout.path} is not empty and is not a data directory of Strongroom"
        )

    def _check_or_begin(self) -> None:
        if not os.path.exists(self.layout.format):
            self._begin()
            return
        found = self.layout.read_format()
        if found.backup:
            raise UnknownFormat(
                f"{self.layout.path} is a backup; restore it into a new directory first"
            )
        if found.test_clock != self._test_clock:
            raise TestClockMismatch(
                f"{self.layout.path} was created {'with' if found.test_clock else 'without'} a "
                "test clock and can only be opened so"
            )
        if self._allow_reset and not found.allow_reset:
            raise ResetNotAllowed(
                f"{self.layout.path} was created without --allow-reset, so it is never reset; "
                "leave the flag out, or name a new directory"
            )
        self.format = found
        for path in (self.layout.records, self.layout.segments):
            if not os.path.exists(path):
                raise Damaged(f"{path} is missing")

    def _begin(self) -> None:
        """Start, or restart, to create the directory: nothing in it has been acknowledged."""
        self.is_new = True
        system.protect_new_files(self.layout.path)
        for name in sorted(os.listdir(self.layout.path)):
            if name.startswith(RECORDS_NAME) or name in {_UNFINISHED, "ballast"}:
                self.files.unlink(os.path.join(self.layout.path, name))
        write_file(self.files, self.layout.unfinished, self.format.text().encode())
        # This name marks the later files as ours, so it must be on the disk before them.
        self.files.sync_directory(self.layout.path)
        if not os.path.exists(self.layout.segments):
            self.files.make_directory(self.layout.segments)
        # Only its owner may read the file, whatever the directory's mode; SQLite gives its log the
        # same mode.
        self.files.close(self.files.create(self.layout.records))


def _make_directories(files: Files, path: str) -> None:
    if os.path.isdir(path):
        return
    parent = os.path.dirname(path)
    _make_directories(files, parent)
    files.make_directory(path)
    files.sync_directory(parent)
