"""Attributes and times of files and directories: their REST names, bits, and which operation
updates which.

Times are arguments, in ticks. Sources: [MS-FSCC] sections 2.1.1, 2.4.7 and 2.6; "Create File" and
"Set File Properties" of the Azure Storage REST reference; file.md 3; smb.md 2.4, 3.3, 3.8.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable
from typing import Final

import msgspec

from strongroom.enums import FastHashEnum
from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError
from strongroom.times import parse_iso8601
from strongroom.values import LATEST_TICKS


class Attribute(enum.IntFlag):
    """The bits of FileAttributes on the wire."""

    NONE = 0
    READ_ONLY = 0x1
    HIDDEN = 0x2
    SYSTEM = 0x4
    DIRECTORY = 0x10
    ARCHIVE = 0x20
    NORMAL = 0x80
    TEMPORARY = 0x100
    OFFLINE = 0x1000
    NOT_CONTENT_INDEXED = 0x2000
    NO_SCRUB_DATA = 0x2_0000


# Plain numbers are combined in C, and the flags of an enum in Python.
_ARCHIVE: Final = int(Attribute.ARCHIVE)
_DIRECTORY: Final = int(Attribute.DIRECTORY)
# In the order in which REST writes them.
REST_NAMES: Final[dict[str, Attribute]] = {
    "ReadOnly": Attribute.READ_ONLY,
    "Hidden": Attribute.HIDDEN,
    "System": Attribute.SYSTEM,
    "Directory": Attribute.DIRECTORY,
    "Archive": Attribute.ARCHIVE,
    "Temporary": Attribute.TEMPORARY,
    "Offline": Attribute.OFFLINE,
    "NotContentIndexed": Attribute.NOT_CONTENT_INDEXED,
    "NoScrubData": Attribute.NO_SCRUB_DATA,
}
NO_ATTRIBUTES: Final = "None"
_ANY_CASE: Final = {name.lower(): bit for name, bit in REST_NAMES.items()}

SETTABLE_BY_SMB: Final = 0x3127
"""The attributes that SMB may set. The other bits are ignored, or `check_smb` refuses them."""
_REFUSED_BY_SMB: Final = 0xFFFF_8048
_FOR_FILES: Final = 0x2_3127
# A directory is never temporary (smb.md 2.4).
_FOR_DIRECTORIES: Final = _FOR_FILES & ~0x100 | 0x10


def parse(text: str, *, is_directory: bool) -> Attribute:
    """The bits of x-ms-file-attributes, `ReadOnly | Archive`; names in any case.

    `None` alone means no attributes. A directory always has Directory, whether named or not. A name
    that the kind of resource cannot have is refused.
    """
    bits = Attribute.NONE
    names = [name.strip().lower() for name in text.split("|")]
    for name in names if names != [NO_ATTRIBUTES.lower()] else []:
        bit = _ANY_CASE.get(name)
        if bit is None or bit & bits:
            raise StorageError(file_errors.INVALID_FILE_ATTRIBUTES)
        bits |= bit
    return _of_kind(bits, is_directory=is_directory)


def text(bits: int) -> str:
    """The value of x-ms-file-attributes in an answer; `None` when no named bit is set."""
    return " | ".join(name for name, bit in REST_NAMES.items() if bits & bit) or NO_ATTRIBUTES


def created(bits: int, *, is_directory: bool) -> int:
    """The attributes of a new file: those requested, and Archive; of a directory: Directory.

    Create File with `None` stores Archive (file.md 3), as SMB's CREATE always does (smb.md 2.4).
    """
    if is_directory:
        return bits & _FOR_DIRECTORIES | _DIRECTORY
    return bits & _FOR_FILES | _ARCHIVE


def check_smb(bits: int, *, is_directory: bool) -> int:
    """The attributes of a CREATE or a SetInfo, without the bits that SMB ignores.

    Reserved bits are refused (INVALID_PARAMETER), and so is a temporary directory.
    """
    if bits & _REFUSED_BY_SMB or (is_directory and bits & Attribute.TEMPORARY):
        raise StorageError(file_errors.INVALID_FILE_ATTRIBUTES)
    return bits & SETTABLE_BY_SMB


def smb_bits(bits: int) -> int:
    """The FileAttributes of an answer: NORMAL if no other bit is set."""
    return int(bits) or int(Attribute.NORMAL)


def _of_kind(bits: Attribute, *, is_directory: bool) -> Attribute:
    allowed = _FOR_DIRECTORIES if is_directory else _FOR_FILES
    if int(bits) & ~allowed:
        raise StorageError(file_errors.INVALID_FILE_ATTRIBUTES)
    return bits | (Attribute.DIRECTORY if is_directory else Attribute.NONE)


# 1601-01-01, where FILETIME starts, in ticks of this project; both count 100 ns.
FILETIME_EPOCH_TICKS: Final = 504_911_232_000_000_000
FILETIME_MAX: Final = LATEST_TICKS - FILETIME_EPOCH_TICKS
KEEP: Final = 0
"""A value in SetInfo: this time does not change."""
FREEZE: Final = -1
"""A value in SetInfo: later operations of this handle do not change this time."""
THAW: Final = -2
"""A value in SetInfo: later operations of this handle change this time again."""


def filetime(ticks: int) -> int:
    """0 for a time before 1601."""
    return max(0, ticks - FILETIME_EPOCH_TICKS)


def ticks_of_filetime(value: int) -> int:
    """The ticks of a FILETIME that a client has sent, as a signed number of 64 bits.

    A value below 1 or beyond the year 9999 is invalid. The caller handles KEEP, FREEZE and THAW
    first, which are no times.
    """
    if not 0 < value <= FILETIME_MAX:
        raise StorageError(file_errors.INVALID_FILE_TIME)
    return value + FILETIME_EPOCH_TICKS


_NOW: Final = "now"
_PRESERVE: Final = "preserve"
_ISO: Final = re.compile(r"[0-9-]{10}T[0-9:]{8}(\.[0-9]{1,7})?Z")


def rest_time(given: str | None, now: int, stored: int | None) -> int:
    """The ticks of a time header of REST (file.md 3).

    Arguments:
        given: `now`, `preserve`, or ISO 8601 with up to seven digits. None = the default:
            `preserve` for an existing file and `now` for a new one.
        now: the time of the request, in ticks.
        stored: the time that the file has; None = it is created.

    Raises: InvalidHeaderValue for another text, a time before 1601, and `preserve` on creation.
    """
    default = _NOW if stored is None else _PRESERVE
    requested = default if given is None else given.lower()
    if requested == _NOW:
        return now
    if requested == _PRESERVE and stored is not None:
        return stored
    ticks = parse_iso8601(given or "") if _ISO.fullmatch(given or "") else None
    if ticks is None or ticks <= FILETIME_EPOCH_TICKS:
        raise StorageError(file_errors.INVALID_FILE_TIME)
    return ticks


class Touch(FastHashEnum):
    """The kinds of operations on a file or directory, as far as its times depend on them."""

    CREATE = "it is created"
    OVERWRITE = "it is overwritten or superseded"
    WRITE = "bytes are written, cleared or copied into it"
    RESIZE = "its size is set"
    READ = "bytes are read"
    SET_PROPERTIES = "attributes, times, HTTP properties or security are set"
    SET_METADATA = "metadata is set"
    RENAME = "it is renamed"
    CHILD = "a name below it is added, removed or changed"


class TimeField(FastHashEnum):
    CREATION = "creation"
    ACCESS = "last access"
    WRITE = "last write"
    CHANGE = "change"


_C, _A, _W, _X = TimeField.CREATION, TimeField.ACCESS, TimeField.WRITE, TimeField.CHANGE
# smb.md 3.8. A time that a request sets itself takes precedence over its row. Reads do not update
# the last access, as in NTFS by default: a read would be a commit otherwise.
TOUCHED: Final[dict[Touch, frozenset[TimeField]]] = {
    Touch.CREATE: frozenset((_C, _A, _W, _X)),
    Touch.OVERWRITE: frozenset((_A, _W, _X)),
    Touch.WRITE: frozenset((_A, _W, _X)),
    Touch.RESIZE: frozenset((_A, _W, _X)),
    Touch.READ: frozenset(),
    Touch.SET_PROPERTIES: frozenset((_X,)),
    Touch.SET_METADATA: frozenset((_X,)),
    Touch.RENAME: frozenset((_X,)),
    Touch.CHILD: frozenset((_A, _W, _X)),
}
# smb.md 3.3: these mark a file for the next backup; a directory is never marked.
_ARCHIVES: Final = frozenset(
    (Touch.CREATE, Touch.OVERWRITE, Touch.WRITE, Touch.RESIZE, Touch.RENAME)
)


class FileTimes(msgspec.Struct, frozen=True):
    """In ticks."""

    creation: int
    access: int
    write: int
    change: int


def touched(
    times: FileTimes, touch: Touch, now: int, frozen: Iterable[TimeField] = ()
) -> FileTimes:
    """The times after an operation at `now`.

    Arguments:
        frozen: the times that the handle has frozen by FREEZE, or has set itself. REST freezes the
            last write by `x-ms-file-last-write-time: preserve`.
    """
    fields = TOUCHED[touch] - frozenset(frozen)
    return FileTimes(
        now if _C in fields else times.creation,
        now if _A in fields else times.access,
        now if _W in fields else times.write,
        now if _X in fields else times.change,
    )


def archived(bits: int, touch: Touch) -> int:
    """The attributes after an operation. An operation that changes a file sets Archive."""
    marks = touch in _ARCHIVES and not bits & _DIRECTORY
    return bits | _ARCHIVE if marks else bits
