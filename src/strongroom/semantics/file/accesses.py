"""The stake of an open, by SMB or REST: the uses it makes of a file, and those it denies to others.

Access masks, share modes, the stake of each REST operation, and the one rule by which two stakes
conflict. The present opens: opens.py; cached state: oplocks.py. Sources: [MS-SMB2] section 2.2.13.1
(access mask); [MS-FSA] section 2.1.5.1.2.2 (sharing); "Managing file locks" of the REST reference;
smb.md 3.1, 4.1 to 4.4.
"""

from __future__ import annotations

import enum
from typing import Final

import msgspec

from strongroom.enums import FastHashEnum

READ_DATA: Final = 0x1
WRITE_DATA: Final = 0x2
APPEND_DATA: Final = 0x4
READ_EA: Final = 0x8
WRITE_EA: Final = 0x10
EXECUTE: Final = 0x20
DELETE_CHILD: Final = 0x40
READ_ATTRIBUTES: Final = 0x80
WRITE_ATTRIBUTES: Final = 0x100
DELETE: Final = 0x1_0000
READ_CONTROL: Final = 0x2_0000
WRITE_DAC: Final = 0x4_0000
WRITE_OWNER: Final = 0x8_0000
SYNCHRONIZE: Final = 0x10_0000
ACCESS_SYSTEM_SECURITY: Final = 0x100_0000
MAXIMUM_ALLOWED: Final = 0x200_0000
EVERYTHING: Final = 0x1F_01FF
# smb.md 3.1: each generic right, and the rights that it stands for.
_GENERIC: Final = {
    0x1000_0000: EVERYTHING,
    0x2000_0000: 0x12_00A0,
    0x4000_0000: 0x12_0116,
    0x8000_0000: 0x12_0089,
    MAXIMUM_ALLOWED: EVERYTHING,
}
# smb.md 3.6: an open with no other rights than these breaks nothing.
_STAT_FOR_LEASES: Final = READ_CONTROL | SYNCHRONIZE | READ_ATTRIBUTES | WRITE_ATTRIBUTES
_STAT_FOR_OPLOCKS: Final = SYNCHRONIZE | READ_ATTRIBUTES | WRITE_ATTRIBUTES


class Use(enum.IntFlag):
    """The uses of a file that share modes grant or deny. READ, WRITE and DELETE are ShareAccess's
    bits.

    HANDLE is the use that every SMB open makes of a file, even an open for attributes only. Only
    REST's Delete File denies it: "no SMB handle at all" (smb.md 4.1).
    """

    NONE = 0
    READ = 1
    WRITE = 2
    DELETE = 4
    HANDLE = 8


ALL_SHARED: Final = Use.READ | Use.WRITE | Use.DELETE
# Plain numbers are combined in C, and the flags of an enum in Python.
_USES: Final = tuple(map(Use, range(Use.HANDLE * 2)))
_READING: Final = READ_DATA | EXECUTE
_WRITING: Final = WRITE_DATA | APPEND_DATA


class Stake(msgspec.Struct, frozen=True):
    """The uses that an open makes of a file, and those that it denies to the opens of others."""

    uses: Use
    denies: Use

    def conflicts(self, other: Stake) -> bool:
        """Whether the two opens exclude each other. The rule is symmetric, so their order does not
        matter."""
        mine, theirs = int(self.uses), int(other.uses)
        return bool(mine & int(other.denies) or theirs & int(self.denies))


class Disposition(enum.IntEnum):
    """CreateDisposition of SMB2 CREATE (smb.md 2.4)."""

    SUPERSEDE = 0
    OPEN = 1
    CREATE = 2
    OPEN_IF = 3
    OVERWRITE = 4
    OVERWRITE_IF = 5


# The access that a disposition needs besides the requested access ([MS-FSA] 2.1.5.1.2).
IMPLIED: Final = {
    Disposition.SUPERSEDE: DELETE,
    Disposition.OPEN: 0,
    Disposition.CREATE: 0,
    Disposition.OPEN_IF: 0,
    Disposition.OVERWRITE: WRITE_DATA,
    Disposition.OVERWRITE_IF: WRITE_DATA,
}


def granted(mask: int) -> int:
    """Replace the generic rights of a desired access by the rights they stand for."""
    rights = mask
    for generic, meant in _GENERIC.items():
        if mask & generic:
            rights = (rights & ~generic) | meant
    return rights


def uses_of(mask: int) -> Use:
    """The uses that a mask without generic rights makes: EXECUTE reads, APPEND_DATA writes."""
    reads = int(Use.READ) if mask & _READING else 0
    writes = int(Use.WRITE) if mask & _WRITING else 0
    deletes = int(Use.DELETE) if mask & DELETE else 0
    return _USES[reads | writes | deletes]


def is_stat(mask: int, disposition: Disposition, *, is_lease: bool) -> bool:
    """Whether an SMB open is for attributes only, so that it breaks no cached state of others.

    Arguments:
        mask: without generic rights.
        is_lease: whether the open asks for a lease; only then READ_CONTROL counts as an attribute.
    """
    harmless = _STAT_FOR_LEASES if is_lease else _STAT_FOR_OPLOCKS
    return not mask & ~harmless and not IMPLIED[disposition]


def stake_of_handle(mask: int, share: Use, disposition: Disposition = Disposition.OPEN) -> Stake:
    """The stake of an SMB open during admission: what its disposition implies counts too.

    Afterwards the handle keeps the stake of disposition OPEN. An open for attributes only denies
    nothing, whatever its share mode is (smb.md 3.1).

    Arguments:
        mask: without generic rights.
        share: what it shares with others: of READ, WRITE and DELETE.
    """
    uses = uses_of(mask | IMPLIED[disposition])
    denies = _USES[int(ALL_SHARED) & ~int(share)] if uses else Use.NONE
    return Stake(_USES[int(uses) | int(Use.HANDLE)], denies)


# A rename opens the new parent to add a name there, and shares reading and writing with others ([S]
# rename.*, smb.md 3.7). So it fails while another open of that directory has DELETE, or shares no
# writing.
RENAME_PARENT: Final = Stake(Use.WRITE, Use.DELETE)


class FileOperation(FastHashEnum):
    """The operations of REST on one file. An operation on two files counts as one on each."""

    LIST_FILES = "List Directories and Files"
    GET_PROPERTIES = "Get File Properties"
    GET_METADATA = "Get File Metadata"
    GET_FILE = "Get File"
    LIST_RANGES = "List Ranges"
    PUT_RANGE = "Put Range"
    SET_PROPERTIES = "Set File Properties"
    SET_METADATA = "Set File Metadata"
    CREATE_FILE = "Create File"
    LEASE_FILE = "Lease File"
    DELETE_FILE = "Delete File"
    COPY_SOURCE = "the source of Copy File, Put Range from URL"
    COPY_DESTINATION = "the destination of Copy File"
    ABORT_COPY = "Abort Copy File"
    RENAME_SOURCE = "the source of Rename File"
    RENAME_TARGET = "the replaced target of Rename File"


_NOTHING: Final = Stake(Use.NONE, Use.NONE)
_READS: Final = Stake(Use.READ, Use.NONE)
_WRITES: Final = Stake(Use.WRITE, Use.NONE)
_REPLACES: Final = Stake(Use.WRITE | Use.DELETE, Use.NONE)

# smb.md 4.1 and 4.2. REST shares everything for the time of a request, but for two operations:
# - A lease denies Write and Delete. It also counts as a reader. That yields the documents' table,
#   in which the share mode Write+Delete fails Lease File.
# - Delete File denies every handle.
# Copy and Rename are inferences. The source of a copy is read, and its destination is replaced as
# by Create File. The source of a rename is deleted where it was. Its target is deleted, so that no
# handle may be open, as for Delete File and for SMB's own renames (smb.md 3.7).
REST_STAKES: Final[dict[FileOperation, Stake]] = {
    FileOperation.LIST_FILES: _NOTHING,
    FileOperation.GET_PROPERTIES: _NOTHING,
    FileOperation.GET_METADATA: _NOTHING,
    FileOperation.GET_FILE: _READS,
    FileOperation.LIST_RANGES: _READS,
    FileOperation.PUT_RANGE: _WRITES,
    FileOperation.SET_PROPERTIES: _WRITES,
    FileOperation.SET_METADATA: _WRITES,
    FileOperation.CREATE_FILE: _REPLACES,
    FileOperation.LEASE_FILE: Stake(
        Use.READ | Use.WRITE | Use.DELETE,
        Use.WRITE | Use.DELETE,
    ),
    FileOperation.DELETE_FILE: Stake(Use.DELETE, Use.HANDLE),
    FileOperation.COPY_SOURCE: _READS,
    FileOperation.COPY_DESTINATION: _REPLACES,
    FileOperation.ABORT_COPY: _NOTHING,
    FileOperation.RENAME_SOURCE: Stake(Use.DELETE, Use.NONE),
    FileOperation.RENAME_TARGET: Stake(Use.WRITE | Use.DELETE, Use.HANDLE),
}

# While a file has a REST lease, SMB opens with Write or Delete fail, whatever they share (smb.md
# 4.3). Read+Delete fails too: the article leaves it out of its list, but it contains Delete.
LEASED: Final = Stake(Use.NONE, Use.WRITE | Use.DELETE)

# Operations that the attribute ReadOnly refuses (smb.md 4.4, file.md 6). Set File Properties is
# among them unless it takes the attribute away, which is the only way to do so over REST.
READ_ONLY_REFUSES: Final = frozenset(
    (
        *(FileOperation.PUT_RANGE, FileOperation.SET_PROPERTIES, FileOperation.SET_METADATA),
        *(FileOperation.CREATE_FILE, FileOperation.DELETE_FILE),
        *(FileOperation.COPY_DESTINATION, FileOperation.RENAME_TARGET),
    )
)

# Operations that a pending copy to the file refuses: those that would change, move or remove it.
PENDING_COPY_REFUSES: Final = frozenset((*READ_ONLY_REFUSES, FileOperation.RENAME_SOURCE))
