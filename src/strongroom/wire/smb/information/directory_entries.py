"""Entries of a listing: the seven information classes of QUERY_DIRECTORY, and how many entries fit.

Sources: [MS-FSCC] sections 2.4.8 to 2.4.28; [MS-FSA] section 2.1.5.6.3; smb.md 2.8.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from strongroom.wire.smb import statuses
from strongroom.wire.smb.refusals import SmbRefusal

_ALIGNMENT: Final = 8


class DirectoryClass(enum.IntEnum):
    """FileInformationClass of QUERY_DIRECTORY."""

    DIRECTORY = 1
    FULL_DIRECTORY = 2
    BOTH_DIRECTORY = 3
    NAMES = 12
    ID_BOTH_DIRECTORY = 37
    ID_FULL_DIRECTORY = 38
    ID_EXTD_DIRECTORY = 60


class DirectoryEntry(msgspec.Struct, frozen=True):
    """A listing's entry for one name. Times are FILETIMEs."""

    name: str
    creation: int
    last_access: int
    last_write: int
    change: int
    size: int
    allocation: int
    attributes: int
    file_id: int


def _times_and_sizes(entry: DirectoryEntry, name_length: int) -> bytes:
    return struct.pack(
        "<QQQQ", entry.creation, entry.last_access, entry.last_write, entry.change
    ) + struct.pack("<QQII", entry.size, entry.allocation, entry.attributes, name_length)


_NO_EAS: Final = bytes(4)
_NO_SHORT_NAME: Final = bytes(26)


def _full(entry: DirectoryEntry, name_length: int) -> bytes:
    return _times_and_sizes(entry, name_length) + _NO_EAS


def _both(entry: DirectoryEntry, name_length: int) -> bytes:
    return _full(entry, name_length) + _NO_SHORT_NAME


def _names(_: DirectoryEntry, name_length: int) -> bytes:
    return struct.pack("<I", name_length)


def _id_both(entry: DirectoryEntry, name_length: int) -> bytes:
    return _both(entry, name_length) + struct.pack("<2xQ", entry.file_id)


def _id_full(entry: DirectoryEntry, name_length: int) -> bytes:
    return _full(entry, name_length) + struct.pack("<4xQ", entry.file_id)


def _id_extd(entry: DirectoryEntry, name_length: int) -> bytes:
    return _full(entry, name_length) + struct.pack("<IQQ", 0, entry.file_id, 0)


# The fields between NextEntryOffset and FileIndex, and the name.
_FIXED: Final[Mapping[int, Callable[[DirectoryEntry, int], bytes]]] = {
    DirectoryClass.DIRECTORY: _times_and_sizes,
    DirectoryClass.FULL_DIRECTORY: _full,
    DirectoryClass.BOTH_DIRECTORY: _both,
    DirectoryClass.NAMES: _names,
    DirectoryClass.ID_BOTH_DIRECTORY: _id_both,
    DirectoryClass.ID_FULL_DIRECTORY: _id_full,
    DirectoryClass.ID_EXTD_DIRECTORY: _id_extd,
}
_LINK_BYTES: Final = 8


def check_directory_class(information_class: int) -> None:
    if information_class not in _FIXED:
        raise SmbRefusal(statuses.STATUS_INVALID_INFO_CLASS)


class EntryBuffer:
    """Collects the directory entries of one response while they fit into it.

    Arguments:
        information_class: a class that has passed `check_directory_class`.
        room: OutputBufferLength of the request, in bytes.
    """

    def __init__(self, information_class: int, room: int) -> None:
        self._fixed = _FIXED[information_class]
        self._room = room
        self._data = bytearray()
        self._last = 0
        self.count = 0

    @property
    def data(self) -> bytes:
        """The entries so far; the last one has no successor and no padding."""
        return bytes(self._data)

    def add(self, entry: DirectoryEntry) -> bool:
        """Append an entry if it fits, and return whether it did.

        Raises: SmbRefusal INFO_LENGTH_MISMATCH when the buffer is too small for the first one.
        """
        name = entry.name.encode("utf-16-le", "surrogatepass")
        made = bytes(_LINK_BYTES) + self._fixed(entry, len(name)) + name
        start = len(self._data) + -len(self._data) % _ALIGNMENT
        if start + len(made) > self._room:
            if not self.count:
                raise SmbRefusal(statuses.STATUS_INFO_LENGTH_MISMATCH)
            return False
        if self.count:
            struct.pack_into("<I", self._data, self._last, start - self._last)
        self._data += bytes(start - len(self._data)) + made
        self._last = start
        self.count += 1
        return True
