"""The reasons to refuse a CREATE: those of the request alone, and those of the existing file.

Lives here: the checks of options, access and attributes, and the access that is granted. Must not
live here: share modes (semantics/file/opens.py). Sources: [MS-SMB2] section 3.3.5.9; [MS-FSA]
section 2.1.5.1; smb.md 2.4.
"""

from __future__ import annotations

from typing import Final

from strongroom.errors import file as file_errors
from strongroom.errors.core import ErrorCode, StorageError
from strongroom.semantics.file import accesses, attributes, names, opens
from strongroom.semantics.file.accesses import Disposition
from strongroom.semantics.file.attributes import Attribute
from strongroom.services.file.handles.model import RequestedOpen
from strongroom.store.file.file_records import FileRecord

# Undefined bits of DesiredAccess (smb.md 2.4).
_NO_ACCESS: Final = 0x0CE0_FE00
_WRITES: Final = accesses.WRITE_DATA | accesses.APPEND_DATA
# Rights that MAXIMUM_ALLOWED leaves out for a handle of a snapshot, since it refuses every change.
_CHANGES: Final = (
    _WRITES
    | accesses.WRITE_EA
    | accesses.WRITE_ATTRIBUTES
    | accesses.DELETE
    | accesses.DELETE_CHILD
    | accesses.WRITE_DAC
    | accesses.WRITE_OWNER
)
_READ_ONLY: Final = int(Attribute.READ_ONLY)
_SHOWN: Final = int(Attribute.HIDDEN | Attribute.SYSTEM)
_OF_THERE: Final = (Disposition.OPEN, Disposition.OVERWRITE)
_FOR_DIRECTORIES: Final = (Disposition.CREATE, Disposition.OPEN, Disposition.OPEN_IF)


def check(asked: RequestedOpen) -> None:
    """Refuse an open whose request is wrong in itself."""
    names.check_path(asked.path)
    if not asked.access or asked.access & _NO_ACCESS:
        raise StorageError(file_errors.ACCESS_DENIED_TO_OPEN)
    attributes.check_smb(asked.attributes, is_directory=asked.must_be_directory)
    both = asked.must_be_directory and asked.must_be_file
    if both or (asked.must_be_directory and asked.disposition not in _FOR_DIRECTORIES):
        raise StorageError(file_errors.INVALID_OPEN)
    if asked.access & accesses.ACCESS_SYSTEM_SECURITY:
        raise StorageError(file_errors.PRIVILEGE_NOT_HELD)
    if asked.deletes_on_close and not _rights(asked) & accesses.DELETE:
        raise StorageError(file_errors.DELETE_ON_CLOSE_WITHOUT_DELETE)


def refusal(asked: RequestedOpen, record: FileRecord, *, is_root: bool) -> ErrorCode | None:
    """Return why the existing file does not permit this open; None = it does. Opens of others are
    not considered."""
    if asked.disposition is Disposition.CREATE:
        return file_errors.FILE_ALREADY_EXISTS
    if asked.must_be_directory and not record.is_directory:
        return file_errors.NOT_A_DIRECTORY
    if asked.must_be_file and record.is_directory:
        return file_errors.IS_A_DIRECTORY
    if asked.disposition not in opens.OVERWRITES:
        return None
    if record.is_directory:
        return file_errors.CANNOT_OVERWRITE_ROOT if is_root else file_errors.FILE_ALREADY_EXISTS
    if record.attributes & _SHOWN & ~asked.attributes:
        return file_errors.ATTRIBUTES_NOT_REPEATED
    return None


def _rights(asked: RequestedOpen) -> int:
    return accesses.granted(asked.access & ~accesses.MAXIMUM_ALLOWED)


def mask(asked: RequestedOpen, maximal: int) -> int:
    """The access that the handle is granted. MAXIMUM_ALLOWED stands for `maximal`. An open without
    buffering cannot append ([MS-FSA] section 2.1.5.1)."""
    granted = _rights(asked)
    if asked.access & accesses.MAXIMUM_ALLOWED:
        granted |= maximal
    if asked.is_unbuffered:
        granted &= ~accesses.APPEND_DATA
    return granted


def maximal_access(record: FileRecord, snapshot: int | None) -> int:
    """The most access that an open of a file or directory could make use of."""
    if snapshot is not None:
        return accesses.EVERYTHING & ~_CHANGES
    is_read_only = not record.is_directory and bool(record.attributes & _READ_ONLY)
    return accesses.EVERYTHING & ~(_WRITES if is_read_only else 0)


def check_changes_nothing(asked: RequestedOpen, *, is_there: bool) -> None:
    """Refuse an open in a snapshot that would change anything. Writes by its handle are refused
    later."""
    creates = not is_there and asked.disposition not in _OF_THERE
    overwrites = is_there and asked.disposition in opens.OVERWRITES
    if creates or overwrites or asked.deletes_on_close:
        raise StorageError(file_errors.SNAPSHOT_READ_ONLY)
