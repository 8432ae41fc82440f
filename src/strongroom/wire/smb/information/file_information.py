"""Information classes of files: the output of QUERY_INFO and the input of SET_INFO.

Also the truncation of an answer to the client's buffer. Entries of listings: directory_entries.py;
volumes: filesystem_information.py. Sources: [MS-FSCC] section 2.4; [MS-FSA] sections 2.1.5.12 and
2.1.5.15; smb.md 2.10, 2.11.

Alternate streams, extended attributes, links and short names do not exist, and their classes report
this.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from strongroom.errors import file as file_errors
from strongroom.wire.smb import statuses
from strongroom.wire.smb.refusals import SmbRefusal
from strongroom.wire.smb.structures import Layout

_STREAM_NAME: Final = "::$DATA".encode("utf-16-le")


class FileClass(enum.IntEnum):
    """The values of FileInformationClass that are served, and those with a specific error."""

    BASIC = 4
    STANDARD = 5
    INTERNAL = 6
    EA = 7
    ACCESS = 8
    RENAME = 10
    LINK = 11
    DISPOSITION = 13
    POSITION = 14
    FULL_EA = 15
    MODE = 16
    ALIGNMENT = 17
    ALL = 18
    ALLOCATION = 19
    END_OF_FILE = 20
    ALTERNATE_NAME = 21
    STREAM = 22
    COMPRESSION = 28
    NETWORK_OPEN = 34
    ATTRIBUTE_TAG = 35
    VALID_DATA_LENGTH = 39
    SHORT_NAME = 40
    NORMALIZED_NAME = 48
    ID = 59
    DISPOSITION_EX = 64
    RENAME_EX = 65


class NodeInformation(msgspec.Struct, frozen=True, kw_only=True):
    """The values of all classes for an open file or directory. Times are FILETIMEs.

    Attributes:
        file_id: the same for all opens of the file.
        access: the granted access of the open.
        mode, position: the open's, as the classes 16 and 14 show them.
        path: from the share's root, with a backslash between components; "" for the root.
    """

    creation: int
    last_access: int
    last_write: int
    change: int
    allocation: int
    size: int
    attributes: int
    file_id: int
    is_directory: bool
    is_delete_pending: bool = False
    access: int = 0
    mode: int = 0
    position: int = 0
    path: str = ""
    volume_serial: int = 0


class BasicInformation(msgspec.Struct, frozen=True):
    """FileBasicInformation (class 4): times and attributes.

    In a change, times are signed: 0, -1 and -2 have special meanings.
    """

    creation: int
    last_access: int
    last_write: int
    change: int
    attributes: int


class StandardInformation(msgspec.Struct, frozen=True):
    """FileStandardInformation (class 5)."""

    allocation: int
    size: int
    links: int
    is_delete_pending: int
    is_directory: int


class NetworkOpenInformation(msgspec.Struct, frozen=True):
    """FileNetworkOpenInformation (class 34). The responses to CREATE and CLOSE contain the same
    fields in the same order."""

    creation: int
    last_access: int
    last_write: int
    change: int
    allocation: int
    size: int
    attributes: int


class _Stream(msgspec.Struct, frozen=True):
    name_length: int
    size: int
    allocation: int


BASIC: Final = Layout(BasicInformation, "QQQQI4x")
_BASIC_CHANGE: Final = Layout(BasicInformation, "qqqqI4x")
STANDARD: Final = Layout(StandardInformation, "QQIBB2x")
NETWORK_OPEN: Final = Layout(NetworkOpenInformation, "QQQQQQI4x")
_STREAM: Final = Layout(_Stream, "4xIQQ")


class Information(msgspec.Struct, frozen=True):
    """An answer before truncation: a fixed part, and a variable part that may be truncated.

    Attributes:
        buffer_bytes_min: the smallest accepted buffer, if that is larger than the fixed part.
    """

    fixed: bytes
    variable: bytes = b""
    buffer_bytes_min: int = 0

    def truncated(self, room: int) -> tuple[int, bytes]:
        """The status and the data for a client buffer of this many bytes.

        Lengths in truncated data are those of the whole (BUFFER_OVERFLOW).

        Raises: SmbRefusal INFO_LENGTH_MISMATCH when the fixed part does not fit.
        """
        if room < max(len(self.fixed), self.buffer_bytes_min):
            raise SmbRefusal(statuses.STATUS_INFO_LENGTH_MISMATCH)
        data = self.fixed + self.variable
        if room < len(data):
            return statuses.STATUS_BUFFER_OVERFLOW, data[:room]
        return statuses.STATUS_SUCCESS, data


def network_open(node: NodeInformation) -> NetworkOpenInformation:
    return NetworkOpenInformation(
        node.creation,
        node.last_access,
        node.last_write,
        node.change,
        allocation=node.allocation,
        size=node.size,
        attributes=node.attributes,
    )


def _basic(node: NodeInformation) -> bytes:
    return BASIC.write(
        BasicInformation(
            node.creation, node.last_access, node.last_write, node.change, node.attributes
        )
    )


def _standard(node: NodeInformation) -> bytes:
    return STANDARD.write(
        StandardInformation(
            node.allocation,
            node.size,
            links=0 if node.is_delete_pending else 1,
            is_delete_pending=node.is_delete_pending,
            is_directory=node.is_directory,
        )
    )


def _number(value: int) -> bytes:
    return struct.pack("<I", value)


def _all(node: NodeInformation) -> Information:
    """FileAllInformation (class 18), with the path as smbd sends it. Linux refuses an answer
    without a name."""
    name = ("\\" + node.path).encode("utf-16-le", "surrogatepass")
    fixed = (
        _basic(node)
        + _standard(node)
        + struct.pack("<QII", node.file_id, 0, node.access)
        + struct.pack("<QIII", node.position, node.mode, 0, len(name))
    )
    return Information(fixed, name)


def _stream(node: NodeInformation) -> Information:
    """FileStreamInformation (class 22): the only stream of a file. A directory has none."""
    if node.is_directory:
        return Information(b"")
    stream = _Stream(len(_STREAM_NAME), node.size, node.allocation)
    return Information(_STREAM.write(stream), _STREAM_NAME)


def _normalized_name(node: NodeInformation) -> Information:
    name = node.path.encode("utf-16-le", "surrogatepass")
    return Information(_number(len(name)), name)


def _id(node: NodeInformation) -> bytes:
    return struct.pack("<QQQ", node.volume_serial, node.file_id, 0)


_Builder = Callable[[NodeInformation], Information]


def _fixed(build: Callable[[NodeInformation], bytes]) -> _Builder:
    return lambda node: Information(build(node))


_QUERIES: Final[Mapping[int, _Builder]] = {
    FileClass.BASIC: _fixed(_basic),
    FileClass.STANDARD: _fixed(_standard),
    FileClass.INTERNAL: _fixed(lambda node: struct.pack("<Q", node.file_id)),
    FileClass.EA: _fixed(lambda _: _number(0)),
    FileClass.ACCESS: _fixed(lambda node: _number(node.access)),
    FileClass.POSITION: _fixed(lambda node: struct.pack("<Q", node.position)),
    FileClass.MODE: _fixed(lambda node: _number(node.mode)),
    FileClass.ALIGNMENT: _fixed(lambda _: _number(0)),
    FileClass.ALL: _all,
    FileClass.STREAM: _stream,
    FileClass.COMPRESSION: _fixed(lambda node: struct.pack("<QHBBB3x", node.size, 0, 0, 0, 0)),
    FileClass.NETWORK_OPEN: _fixed(lambda node: NETWORK_OPEN.write(network_open(node))),
    FileClass.ATTRIBUTE_TAG: _fixed(lambda node: struct.pack("<II", node.attributes, 0)),
    FileClass.NORMALIZED_NAME: _normalized_name,
    FileClass.ID: _fixed(_id),
}
# There are no 8.3 names, so a file has no alternate name.
_REFUSED_QUERIES: Final[Mapping[int, int]] = {
    FileClass.FULL_EA: statuses.STATUS_NO_EAS_ON_FILE,
    FileClass.ALTERNATE_NAME: file_errors.STATUS_OBJECT_NAME_NOT_FOUND,
}


def check_query(information_class: int, *, has_normalized_names: bool) -> None:
    """Class 48 exists in dialect 3.1.1 only (`has_normalized_names`)."""
    refused = _REFUSED_QUERIES.get(information_class)
    if refused is not None:
        raise SmbRefusal(refused)
    if information_class not in _QUERIES:
        raise SmbRefusal(statuses.STATUS_INVALID_INFO_CLASS)
    if information_class == FileClass.NORMALIZED_NAME and not has_normalized_names:
        raise SmbRefusal(statuses.STATUS_NOT_SUPPORTED)


def query(information_class: int, node: NodeInformation) -> Information:
    """The class has passed `check_query`."""
    return _QUERIES[information_class](node)


class RenameChange(msgspec.Struct, frozen=True):
    """FileRenameInformation (class 10): the new path, from the share's root."""

    path: str
    replace_if_exists: bool


class DispositionChange(msgspec.Struct, frozen=True):
    """FileDispositionInformation (class 13)."""

    deletes: bool


class AllocationChange(msgspec.Struct, frozen=True):
    """FileAllocationInformation (class 19): the space that is allocated for the file."""

    size: int


class EndOfFileChange(msgspec.Struct, frozen=True):
    """FileEndOfFileInformation (class 20): the length of the file."""

    size: int


class ModeChange(msgspec.Struct, frozen=True):
    """FileModeInformation (class 16): the new mode of the open, within the bits of
    SETTABLE_MODE."""

    mode: int


# WRITE_THROUGH, SEQUENTIAL_ONLY, SYNCHRONOUS_IO_ALERT and _NONALERT ([MS-FSA] 2.1.5.15.7).
SETTABLE_MODE: Final = 0x36


class PositionChange(msgspec.Struct, frozen=True):
    """FilePositionInformation (class 14): the new current byte offset of an open."""

    position: int


FileChange = (
    BasicInformation
    | RenameChange
    | DispositionChange
    | AllocationChange
    | EndOfFileChange
    | ModeChange
    | PositionChange
)


class _Rename(msgspec.Struct, frozen=True):
    replace_if_exists: int
    root: int
    length: int


_RENAME: Final = Layout(_Rename, "B7xQI")
_CHANGE_SIZES: Final[Mapping[int, int]] = {
    FileClass.BASIC: 40,
    FileClass.RENAME: _RENAME.size,
    FileClass.DISPOSITION: 1,
    FileClass.POSITION: 8,
    FileClass.MODE: 4,
    FileClass.ALLOCATION: 8,
    FileClass.END_OF_FILE: 8,
}
# smb.md 2.11. The classes 64 and 65 are refused so that Windows falls back to 13 and 10. The status
# that it needs for this is not documented.
_REFUSED_CHANGES: Final[Mapping[int, int]] = {
    FileClass.LINK: statuses.STATUS_NOT_SUPPORTED,
    FileClass.FULL_EA: statuses.STATUS_EAS_NOT_SUPPORTED,
    FileClass.VALID_DATA_LENGTH: statuses.STATUS_NOT_SUPPORTED,
    FileClass.SHORT_NAME: statuses.STATUS_NOT_SUPPORTED,
    FileClass.DISPOSITION_EX: statuses.STATUS_INVALID_INFO_CLASS,
    FileClass.RENAME_EX: statuses.STATUS_INVALID_INFO_CLASS,
}


def read_change(information_class: int, data: memoryview) -> FileChange:
    """Parse the change in a SET_INFO, whose data may be longer than the class."""
    status = _REFUSED_CHANGES.get(information_class)
    if status is not None:
        raise SmbRefusal(status)
    size = _CHANGE_SIZES.get(information_class)
    if size is None:
        raise SmbRefusal(statuses.STATUS_INVALID_INFO_CLASS)
    if len(data) < size:
        raise SmbRefusal(statuses.STATUS_INFO_LENGTH_MISMATCH)
    return _CHANGES[FileClass(information_class)](data)


def _rename_change(data: memoryview) -> RenameChange:
    fixed = _RENAME.read(data)
    name = data[_RENAME.size : _RENAME.size + fixed.length]
    if fixed.root or not fixed.length or fixed.length % 2 or len(name) < fixed.length:
        raise SmbRefusal(file_errors.STATUS_INVALID_PARAMETER)
    return RenameChange(
        bytes(name).decode("utf-16-le", "surrogatepass"), bool(fixed.replace_if_exists)
    )


def _mode_change(data: memoryview) -> ModeChange:
    (mode,) = struct.unpack_from("<I", data)
    if mode & ~SETTABLE_MODE:
        raise SmbRefusal(file_errors.STATUS_INVALID_PARAMETER)
    return ModeChange(int(mode))


def _size(data: memoryview) -> int:
    (size,) = struct.unpack_from("<q", data)
    if size < 0:
        raise SmbRefusal(file_errors.STATUS_INVALID_PARAMETER)
    return int(size)


_CHANGES: Final[Mapping[FileClass, Callable[[memoryview], FileChange]]] = {
    FileClass.BASIC: _BASIC_CHANGE.read,
    FileClass.RENAME: _rename_change,
    FileClass.DISPOSITION: lambda data: DispositionChange(bool(data[0])),
    FileClass.POSITION: lambda data: PositionChange(_size(data)),
    FileClass.MODE: _mode_change,
    FileClass.ALLOCATION: lambda data: AllocationChange(_size(data)),
    FileClass.END_OF_FILE: lambda data: EndOfFileChange(_size(data)),
}
