"""Information classes of a share as a volume: its name, size, device and capabilities.

Sources: [MS-FSCC] section 2.5; smb.md 2.10.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from strongroom.wire.smb import statuses
from strongroom.wire.smb.information.file_information import Information
from strongroom.wire.smb.refusals import SmbRefusal

UNIT_BYTES: Final = 4096
"""The size of an allocation unit, in which space is reported."""
_SECTOR_BYTES: Final = 512
_NAME_UNITS_MAX: Final = 255
_DISK: Final = 7
_IS_MOUNTED: Final = 0x20
_CASE_PRESERVED: Final = 0x2
_UNICODE: Final = 0x4
_ALIGNED: Final = 0x3
# A name that Windows knows; the flags describe the actual capabilities.
_FORMAT_NAME: Final = "NTFS"
# Windows needs the size of its padded structures, not of the fixed fields only.
_VOLUME_ROOM: Final = 24
_ATTRIBUTE_ROOM: Final = 16


class VolumeClass(enum.IntEnum):
    """The values of FsInformationClass that are served."""

    VOLUME = 1
    SIZE = 3
    DEVICE = 4
    ATTRIBUTE = 5
    FULL_SIZE = 7
    OBJECT_ID = 8
    SECTOR_SIZE = 11


class VolumeInformation(msgspec.Struct, frozen=True):
    """The values of all classes for a share.

    Attributes:
        creation: a FILETIME.
        serial: 32 bits, stable.
        size_bytes: the quota.
    """

    label: str
    creation: int
    serial: int
    size_bytes: int
    used_bytes: int


def _volume(volume: VolumeInformation) -> Information:
    label = volume.label.encode("utf-16-le")
    fixed = struct.pack("<QIIBx", volume.creation, volume.serial, len(label), 0)
    return Information(fixed, label, _VOLUME_ROOM)


def _units(volume: VolumeInformation) -> tuple[int, int]:
    total = volume.size_bytes // UNIT_BYTES
    return total, max(0, total - -(-volume.used_bytes // UNIT_BYTES))


def _size(volume: VolumeInformation) -> Information:
    sectors = UNIT_BYTES // _SECTOR_BYTES
    return Information(struct.pack("<QQII", *_units(volume), sectors, _SECTOR_BYTES))


def _full_size(volume: VolumeInformation) -> Information:
    total, free = _units(volume)
    sectors = UNIT_BYTES // _SECTOR_BYTES
    return Information(struct.pack("<QQQII", total, free, free, sectors, _SECTOR_BYTES))


def _device(_: VolumeInformation) -> Information:
    return Information(struct.pack("<II", _DISK, _IS_MOUNTED))


def _attribute(_: VolumeInformation) -> Information:
    name = _FORMAT_NAME.encode("utf-16-le")
    flags = _CASE_PRESERVED | _UNICODE
    fixed = struct.pack("<III", flags, _NAME_UNITS_MAX, len(name))
    return Information(fixed, name, _ATTRIBUTE_ROOM)


def _sector_size(_: VolumeInformation) -> Information:
    return Information(struct.pack("<IIIIIII", _SECTOR_BYTES, *[UNIT_BYTES] * 3, _ALIGNED, 0, 0))


_QUERIES: Final[Mapping[int, Callable[[VolumeInformation], Information]]] = {
    VolumeClass.VOLUME: _volume,
    VolumeClass.SIZE: _size,
    VolumeClass.DEVICE: _device,
    VolumeClass.ATTRIBUTE: _attribute,
    VolumeClass.FULL_SIZE: _full_size,
    VolumeClass.SECTOR_SIZE: _sector_size,
}


def check_volume_query(information_class: int) -> None:
    if information_class == VolumeClass.OBJECT_ID:
        raise SmbRefusal(statuses.STATUS_NOT_SUPPORTED)
    if information_class not in _QUERIES:
        raise SmbRefusal(statuses.STATUS_INVALID_INFO_CLASS)


def query_volume(information_class: int, volume: VolumeInformation) -> Information:
    """The class has passed `check_volume_query`."""
    return _QUERIES[information_class](volume)
