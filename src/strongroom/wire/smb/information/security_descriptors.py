"""Security descriptors as self-relative bytes, the form that SMB transmits.

The bytes, and the parts of a descriptor that a request selects; SDDL: sddl.py. Sources: [MS-DTYP]
sections 2.4.4 (ACE), 2.4.5 (ACL) and 2.4.6 (SECURITY_DESCRIPTOR); smb.md 2.10 and 5.2.
"""

from __future__ import annotations

import struct
from typing import Final

import msgspec

from strongroom.wire.smb import statuses
from strongroom.wire.smb.information.sids import Sid, read_sid, write_sid
from strongroom.wire.smb.refusals import SmbRefusal
from strongroom.wire.smb.structures import Layout, MalformedMessage

OWNER: Final = 0x1
GROUP: Final = 0x2
DACL: Final = 0x4
SACL: Final = 0x8
LABEL: Final = 0x10

_OWNER_DEFAULTED: Final = 0x1
DACL_PRESENT: Final = 0x4
SACL_PRESENT: Final = 0x10
DACL_AUTO_INHERIT_REQUIRED: Final = 0x100
SACL_AUTO_INHERIT_REQUIRED: Final = 0x200
DACL_AUTO_INHERITED: Final = 0x400
SACL_AUTO_INHERITED: Final = 0x800
DACL_PROTECTED: Final = 0x1000
SACL_PROTECTED: Final = 0x2000
_SELF_RELATIVE: Final = 0x8000
_OF_SACL: Final = SACL_PRESENT | SACL_AUTO_INHERIT_REQUIRED | SACL_AUTO_INHERITED | SACL_PROTECTED
LABEL_TYPE: Final = 0x11

SERVED_TYPES: Final = frozenset((0, 1, 2, 3, 5, 6, 7, 8, LABEL_TYPE))
"""The types of access control entries that SDDL can write without a condition; see sddl.py."""
OBJECT_TYPES: Final = frozenset((5, 6, 7, 8))
_ACL_REVISION: Final = 2
_ACL_REVISION_OBJECTS: Final = 4
_ACL_BYTES_MAX: Final = 0xFFFF


class Ace(msgspec.Struct, frozen=True):
    """An entry of an ACL.

    Attributes:
        object_type, inherited_type: GUIDs of the object types; None = absent.
    """

    type: int
    flags: int
    mask: int
    sid: Sid
    object_type: bytes | None = None
    inherited_type: bytes | None = None


class SecurityDescriptor(msgspec.Struct, frozen=True, kw_only=True):
    """A descriptor, or some parts of one.

    Attributes:
        control: only the bits about the ACLs.
        dacl, sacl: None = absent, or a null ACL, depending on `control`.
    """

    owner: Sid | None = None
    group: Sid | None = None
    dacl: tuple[Ace, ...] | None = None
    sacl: tuple[Ace, ...] | None = None
    control: int = 0


class _Head(msgspec.Struct, frozen=True):
    revision: int
    control: int
    owner: int
    group: int
    sacl: int
    dacl: int


class _AclHead(msgspec.Struct, frozen=True):
    revision: int
    size: int
    count: int


class _AceHead(msgspec.Struct, frozen=True):
    type: int
    flags: int
    size: int
    mask: int


_HEAD: Final = Layout(_Head, "BxHIIII")
_ACL: Final = Layout(_AclHead, "BxHH2x")
_ACE: Final = Layout(_AceHead, "BBHI")


def read_descriptor(data: memoryview) -> SecurityDescriptor:
    head = _HEAD.read(data)
    if head.revision != 1 or not head.control & _SELF_RELATIVE:
        raise MalformedMessage("no self-relative security descriptor")
    has_dacl = head.control & DACL_PRESENT and head.dacl
    has_sacl = head.control & SACL_PRESENT and head.sacl
    return SecurityDescriptor(
        owner=read_sid(_at(data, head.owner)) if head.owner else None,
        group=read_sid(_at(data, head.group)) if head.group else None,
        dacl=_read_acl(_at(data, head.dacl)) if has_dacl else None,
        sacl=_read_acl(_at(data, head.sacl)) if has_sacl else None,
        control=head.control & ~(_SELF_RELATIVE | _OWNER_DEFAULTED),
    )


def _at(data: memoryview, offset: int) -> memoryview:
    if not _HEAD.size <= offset < len(data):
        raise MalformedMessage(f"a part of the descriptor lies at {offset}")
    return data[offset:]


def _read_acl(data: memoryview) -> tuple[Ace, ...]:
    head = _ACL.read(data)
    if head.revision not in (_ACL_REVISION, _ACL_REVISION_OBJECTS):
        raise MalformedMessage(f"an ACL has no revision {head.revision}")
    if not _ACL.size <= head.size <= len(data):
        raise MalformedMessage(f"an ACL of {head.size} bytes is not within the descriptor")
    rest = data[_ACL.size : head.size]
    entries = []
    for _ in range(head.count):
        entry = _ACE.read(rest)
        if not _ACE.size <= entry.size <= len(rest) or entry.size % 4:
            raise MalformedMessage(f"an entry of {entry.size} bytes is not within its ACL")
        entries.append(_read_ace(entry, rest[_ACE.size : entry.size]))
        rest = rest[entry.size :]
    return tuple(entries)


def _read_ace(head: _AceHead, rest: memoryview) -> Ace:
    if head.type not in SERVED_TYPES:
        raise MalformedMessage(f"entries of type {head.type} are not served")
    guids: list[bytes | None] = [None, None]
    if head.type in OBJECT_TYPES:
        if len(rest) < 4:
            raise MalformedMessage("an entry's object types are cut off")
        (present,) = struct.unpack_from("<I", rest)
        rest = rest[4:]
        for index in range(2):
            if present & 1 << index:
                if len(rest) < 16:
                    raise MalformedMessage("an entry's object types are cut off")
                guids[index], rest = bytes(rest[:16]), rest[16:]
    return Ace(head.type, head.flags, head.mask, read_sid(rest), *guids)


def write_descriptor(descriptor: SecurityDescriptor) -> bytes:
    """The self-relative bytes, in the order that Windows gives them. Parts that are absent have no
    offset.

    Raises: SmbRefusal INVALID_ACL for a list of more bytes than an ACL may have. REST accepts some,
        since entries may be shorter as text.
    """
    parts = [
        _write_acl(descriptor.sacl) if descriptor.sacl is not None else b"",
        _write_acl(descriptor.dacl) if descriptor.dacl is not None else b"",
        write_sid(descriptor.owner) if descriptor.owner is not None else b"",
        write_sid(descriptor.group) if descriptor.group is not None else b"",
    ]
    at, offsets = _HEAD.size, []
    for part in parts:
        offsets.append(at if part else 0)
        at += len(part)
    control = descriptor.control | _SELF_RELATIVE
    sacl, dacl, owner, group = offsets
    head = _Head(1, control, owner, group, sacl=sacl, dacl=dacl)
    return _HEAD.write(head) + b"".join(parts)


def _write_acl(acl: tuple[Ace, ...]) -> bytes:
    entries = b"".join(map(_write_ace, acl))
    if _ACL.size + len(entries) > _ACL_BYTES_MAX:
        raise SmbRefusal(statuses.STATUS_INVALID_ACL)
    has_objects = any(ace.type in OBJECT_TYPES for ace in acl)
    revision = _ACL_REVISION_OBJECTS if has_objects else _ACL_REVISION
    return _ACL.write(_AclHead(revision, _ACL.size + len(entries), len(acl))) + entries


def _write_ace(ace: Ace) -> bytes:
    rest = write_sid(ace.sid)
    if ace.type in OBJECT_TYPES:
        guids = (ace.object_type, ace.inherited_type)
        present = sum(1 << index for index, guid in enumerate(guids) if guid is not None)
        rest = struct.pack("<I", present) + b"".join(guid or b"" for guid in guids) + rest
    return _ACE.write(_AceHead(ace.type, ace.flags, _ACE.size + len(rest), ace.mask)) + rest


def parts_of(descriptor: SecurityDescriptor, wanted: int) -> SecurityDescriptor:
    """The parts that AdditionalInformation selects: OWNER, GROUP, DACL, SACL, LABEL."""
    control = descriptor.control
    kept_control = (control & ~_OF_SACL if wanted & DACL else 0) | (
        control & _OF_SACL if wanted & SACL else 0
    )
    label = tuple(ace for ace in descriptor.sacl or () if ace.type == LABEL_TYPE)
    sacl = descriptor.sacl if wanted & SACL else label if wanted & LABEL and label else None
    return SecurityDescriptor(
        owner=descriptor.owner if wanted & OWNER else None,
        group=descriptor.group if wanted & GROUP else None,
        dacl=descriptor.dacl if wanted & DACL else None,
        sacl=sacl,
        control=kept_control | (SACL_PRESENT if sacl is not None else 0),
    )


def with_parts(
    stored: SecurityDescriptor, given: SecurityDescriptor, wanted: int
) -> SecurityDescriptor:
    """The stored descriptor with the selected parts replaced by those of the given one.

    AdditionalInformation selects the parts. An owner or a group that is selected but absent is
    kept. LABEL replaces the labels of the SACL.
    """
    sacl, sacl_control = stored.sacl, stored.control & _OF_SACL
    if wanted & SACL:
        sacl, sacl_control = given.sacl, given.control & _OF_SACL
    elif wanted & LABEL:
        labels = tuple(ace for ace in given.sacl or () if ace.type == LABEL_TYPE)
        others = tuple(ace for ace in stored.sacl or () if ace.type != LABEL_TYPE)
        sacl = others + labels or None
        sacl_control |= SACL_PRESENT
    dacl_control = (given if wanted & DACL else stored).control & ~_OF_SACL
    return SecurityDescriptor(
        owner=given.owner if wanted & OWNER and given.owner is not None else stored.owner,
        group=given.group if wanted & GROUP and given.group is not None else stored.group,
        dacl=given.dacl if wanted & DACL else stored.dacl,
        sacl=sacl,
        control=dacl_control | (sacl_control if sacl is not None else 0),
    )
