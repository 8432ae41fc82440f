"""Security identifiers: their bytes, their text, and the SDDL names of well-known ones.

Sources: [MS-DTYP] sections 2.4.2 (SID), 2.4.2.4 (well-known SIDs) and 2.5.1.1 (SDDL names).

There is no domain, so names relative to a domain stand for SIDs of the domain 0-0-0.
"""

from __future__ import annotations

import struct
from typing import Final

import msgspec

from strongroom.wire.smb.structures import MalformedMessage

SUB_AUTHORITIES_MAX: Final = 15
_HEAD_BYTES: Final = 8
_AUTHORITY_DECIMAL_MAX: Final = (1 << 32) - 1


class Sid(msgspec.Struct, frozen=True):
    """A SID of revision 1."""

    authority: int
    sub_authorities: tuple[int, ...]

    @property
    def size(self) -> int:
        """In bytes."""
        return _HEAD_BYTES + 4 * len(self.sub_authorities)


_BUILTIN: Final = {
    "AO": 548, "BA": 544, "BG": 546, "BO": 551, "BU": 545, "CD": 574, "ER": 573, "HA": 578,
    "IS": 568, "LU": 559, "MU": 558, "NO": 556, "PO": 550, "PU": 547, "RD": 555, "RE": 552,
    "RM": 580, "RU": 554, "SO": 549, "AA": 579, "MS": 577, "ES": 576, "RA": 575, "CY": 569,
}  # fmt: skip
_NT: Final = {
    "AN": 7, "AU": 11, "ED": 9, "IU": 4, "LS": 19, "NS": 20, "NU": 2, "PS": 10, "RC": 12, "SU": 6,
    "SY": 18, "WR": 33,
}  # fmt: skip
_DOMAIN: Final = {
    "CA": 517, "CN": 522, "DA": 512, "DC": 515, "DD": 516, "DG": 514, "DU": 513, "EA": 519,
    "EK": 527, "KA": 526, "LA": 500, "LG": 501, "PA": 520, "RO": 498, "RS": 553, "SA": 518,
    "AP": 525,
}  # fmt: skip
_LABELS: Final = {"LW": 4096, "ME": 8192, "MP": 8448, "HI": 12288, "SI": 16384}
_OTHER: Final = {
    "WD": Sid(1, (0,)),
    "CO": Sid(3, (0,)),
    "CG": Sid(3, (1,)),
    "OW": Sid(3, (4,)),
    "AC": Sid(15, (2, 1)),
    "AS": Sid(18, (1,)),
    "SS": Sid(18, (2,)),
    "UD": Sid(5, (84, 0, 0, 0, 0, 0)),
}
NAMED: Final[dict[str, Sid]] = {
    **{name: Sid(5, (32, number)) for name, number in _BUILTIN.items()},
    **{name: Sid(5, (number,)) for name, number in _NT.items()},
    **{name: Sid(5, (21, 0, 0, 0, number)) for name, number in _DOMAIN.items()},
    **{name: Sid(16, (number,)) for name, number in _LABELS.items()},
    **_OTHER,
}
"""The SID that each SDDL abbreviation stands for."""
_NAMES: Final = {sid: name for name, sid in NAMED.items()}


def read_sid(data: memoryview) -> Sid:
    if len(data) < _HEAD_BYTES:
        raise MalformedMessage("a SID has 8 bytes at least")
    revision, count = data[0], data[1]
    if revision != 1 or count > SUB_AUTHORITIES_MAX or len(data) < _HEAD_BYTES + 4 * count:
        raise MalformedMessage(f"no SID: revision {revision}, {count} sub-authorities")
    authority = int.from_bytes(data[2:_HEAD_BYTES], "big")
    return Sid(authority, struct.unpack_from(f"<{count}I", data, _HEAD_BYTES))


def write_sid(sid: Sid) -> bytes:
    count = len(sid.sub_authorities)
    head = bytes((1, count)) + sid.authority.to_bytes(6, "big")
    return head + struct.pack(f"<{count}I", *sid.sub_authorities)


def sid_text(sid: Sid) -> str:
    """The SID as SDDL writes it: by its name if it has one."""
    name = _NAMES.get(sid)
    return sid_number_text(sid) if name is None else name


def sid_number_text(sid: Sid) -> str:
    """In numbers, as `S-1-5-32-544`."""
    authority = (
        str(sid.authority) if sid.authority <= _AUTHORITY_DECIMAL_MAX else f"0x{sid.authority:012X}"
    )
    return "-".join(("S-1", authority, *map(str, sid.sub_authorities)))


def parse_sid(text: str) -> Sid | None:
    """Parse a SID in SDDL; None for an unknown name, and for a number that is too large."""
    if not text.startswith("S-1-"):
        return NAMED.get(text)
    try:
        numbers = [int(number, 0) for number in text[4:].split("-")]
    except ValueError:
        numbers = [_decimal(number) for number in text[4:].split("-")]
    authority, subs = numbers[0], tuple(numbers[1:])
    is_sid = (
        0 <= authority < 1 << 48
        and 1 <= len(subs) <= SUB_AUTHORITIES_MAX
        and all(0 <= sub < 1 << 32 for sub in subs)
    )
    return Sid(authority, subs) if is_sid else None


def _decimal(number: str) -> int:
    """Parse a number with leading zeros, which Python's own syntax refuses; -1 for other text."""
    return int(number, 10) if number.isascii() and number.isdigit() else -1
