"""Security descriptors as SDDL, the text form in which files store them: writing and parsing.

Bytes: security_descriptors.py; which text REST accepts: semantics/file. Source: [MS-DTYP] section
2.5.1.1 (SDDL).

An entry with a condition, a resource attribute or an unknown name is skipped, so SMB does not show
it. It stays in the text as long as SMB does not set a new list.
"""

from __future__ import annotations

import re
import uuid
from typing import Final

from strongroom.wire.smb.information.security_descriptors import (
    DACL_AUTO_INHERIT_REQUIRED,
    DACL_AUTO_INHERITED,
    DACL_PRESENT,
    DACL_PROTECTED,
    LABEL_TYPE,
    SACL_AUTO_INHERIT_REQUIRED,
    SACL_AUTO_INHERITED,
    SACL_PRESENT,
    SACL_PROTECTED,
    Ace,
    SecurityDescriptor,
)
from strongroom.wire.smb.information.sids import Sid, parse_sid, sid_text

_TYPES: Final = {
    "A": 0, "D": 1, "AU": 2, "AL": 3, "OA": 5, "OD": 6, "OU": 7, "OL": 8, "ML": LABEL_TYPE,
}  # fmt: skip
_TYPE_NAMES: Final = {number: name for name, number in _TYPES.items()}
_FLAGS: Final = {
    "OI": 0x1, "CI": 0x2, "NP": 0x4, "IO": 0x8, "ID": 0x10, "SA": 0x40, "FA": 0x80,
}  # fmt: skip
_RIGHTS: Final = {
    "GA": 0x1000_0000, "GR": 0x8000_0000, "GW": 0x4000_0000, "GX": 0x2000_0000,
    "RC": 0x2_0000, "SD": 0x1_0000, "WD": 0x4_0000, "WO": 0x8_0000,
    "RP": 0x10, "WP": 0x20, "CC": 0x1, "DC": 0x2, "LC": 0x4, "SW": 0x8, "LO": 0x80, "DT": 0x40,
    "CR": 0x100, "FA": 0x1F_01FF, "FR": 0x12_0089, "FW": 0x12_0116, "FX": 0x12_00A0,
    "KA": 0xF_003F, "KR": 0x2_0019, "KW": 0x2_0006, "KX": 0x2_0019,
    "NR": 0x2, "NW": 0x1, "NX": 0x4,
}  # fmt: skip
# The names of masks in written text; other masks are written as numbers.
_MASK_NAMES: Final = {
    _RIGHTS[name]: name for name in ("FA", "FR", "FW", "FX", "GA", "GR", "GW", "GX")
}
_ACL_FLAGS: Final = {
    "D": (("P", DACL_PROTECTED), ("AR", DACL_AUTO_INHERIT_REQUIRED), ("AI", DACL_AUTO_INHERITED)),
    "S": (("P", SACL_PROTECTED), ("AR", SACL_AUTO_INHERIT_REQUIRED), ("AI", SACL_AUTO_INHERITED)),
}  # fmt: skip
_NULL_ACL: Final = "NO_ACCESS_CONTROL"

_PRESENT: Final = {"D": DACL_PRESENT, "S": SACL_PRESENT}
_PRINCIPAL: Final = re.compile(r"([OG]):([A-Z]{2}|S-1-[-0-9A-Fa-fx]+)(?=[OGDS]:|\Z)")
_LIST: Final = re.compile(r"([DS]):((?:P|AR|AI|NO_ACCESS_CONTROL)*)")
_PLAIN_FIELDS: Final = 6


def sddl(descriptor: SecurityDescriptor, *, owner: Sid, group: Sid) -> str:
    """`owner` and `group` are defaults for a descriptor without them: a stored text has both."""
    text = f"O:{sid_text(descriptor.owner or owner)}G:{sid_text(descriptor.group or group)}"
    text += "D:" + _acl_text("D", descriptor.dacl, descriptor.control)
    if descriptor.sacl is not None or descriptor.control & SACL_PRESENT:
        text += "S:" + _acl_text("S", descriptor.sacl, descriptor.control)
    return text


def _acl_text(kind: str, acl: tuple[Ace, ...] | None, control: int) -> str:
    flags = "".join(name for name, bit in _ACL_FLAGS[kind] if control & bit)
    if acl is None:
        return flags + _NULL_ACL
    return flags + "".join(map(_ace_text, acl))


def _ace_text(ace: Ace) -> str:
    flags = "".join(name for name, bit in _FLAGS.items() if ace.flags & bit)
    if ace.type == LABEL_TYPE:
        rights = "".join(name for name in ("NW", "NR", "NX") if ace.mask & _RIGHTS[name])
    else:
        rights = _MASK_NAMES.get(ace.mask, "")
    guids = [
        "" if guid is None else str(uuid.UUID(bytes_le=guid))
        for guid in (ace.object_type, ace.inherited_type)
    ]
    fields = (_TYPE_NAMES[ace.type], flags, rights or f"0x{ace.mask:x}", *guids, sid_text(ace.sid))
    return f"({';'.join(fields)})"


def parse_sddl(text: str) -> SecurityDescriptor:
    """Parse a text that the rules of SDDL have accepted."""
    principals: dict[str, Sid | None] = {}
    at = 0
    while (match := _PRINCIPAL.match(text, at)) is not None:
        principals[match[1]] = parse_sid(match[2])
        at = match.end()
    lists: dict[str, tuple[Ace, ...] | None] = {}
    control = 0
    while (match := _LIST.match(text, at)) is not None:
        kind, flags = match[1], match[2]
        entries, at = _entries(text, match.end())
        control |= _PRESENT[kind] | _control(kind, flags)
        lists[kind] = None if _NULL_ACL in flags else entries
    return SecurityDescriptor(
        owner=principals.get("O"),
        group=principals.get("G"),
        dacl=lists.get("D"),
        sacl=lists.get("S"),
        control=control,
    )


def _control(kind: str, flags: str) -> int:
    named = flags.replace(_NULL_ACL, "")
    bits = dict(_ACL_FLAGS[kind])
    control = 0
    while named:
        name = "P" if named.startswith("P") else named[:2]
        control |= bits[name]
        named = named[len(name) :]
    return control


def _entries(text: str, at: int) -> tuple[tuple[Ace, ...], int]:
    """Parse the entries that begin at an offset of the text. Return them and the offset of their
    end."""
    entries: list[Ace] = []
    while text.startswith("(", at):
        depth, end = 0, at
        while end < len(text):
            depth += (text[end] == "(") - (text[end] == ")")
            end += 1
            if not depth:
                break
        ace = _entry(text[at + 1 : end - 1])
        if ace is not None:
            entries.append(ace)
        at = end
    return tuple(entries), at


def _entry(text: str) -> Ace | None:
    """Parse an entry without its parentheses; None for one that has no binary form here."""
    fields = text.split(";")
    number = _TYPES.get(fields[0])
    if number is None or len(fields) != _PLAIN_FIELDS:
        return None
    flags = 0
    for at in range(0, len(fields[1]), 2):
        flags |= _FLAGS.get(fields[1][at : at + 2], 0)
    mask, sid = _mask(fields[2]), parse_sid(fields[5])
    if sid is None or mask is None:
        return None
    guids = [uuid.UUID(field).bytes_le if field else None for field in fields[3:5]]
    return Ace(number, flags, mask, sid, guids[0], guids[1])


def _mask(text: str) -> int | None:
    """Parse an access mask; None for a number of more than 32 bits."""
    if text[:1].isdigit():
        mask = int(text, 16) if text.startswith("0x") else int(text, 10)
        return mask if mask < 1 << 32 else None
    mask = 0
    for at in range(0, len(text), 2):
        mask |= _RIGHTS[text[at : at + 2]]
    return mask
