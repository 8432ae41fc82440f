"""The rules of the commands that concern a tree's files, and who carries each one out.

Lives here: the table. Must not live here: commands of connections and sessions (the folder above).
Source: [MS-SMB2] sections 2.2.13 to 2.2.40 and 3.3.5.2.5 (payload); smb.md 1.3 and 2.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from strongroom.servers.smb.commands import (
    breaks,
    create,
    directory,
    information,
    ioctl,
    locking,
    transfers,
)
from strongroom.servers.smb.declarations import CommandRule, Needs, PayloadSizes
from strongroom.wire.smb.commands import Command

_U32: Final = struct.Struct("<I")


def _sizes_at(*offsets: int) -> PayloadSizes:
    """The greatest of the 32-bit numbers at these places of the body."""

    def sizes(body: memoryview) -> int:
        return max(int(_U32.unpack_from(body, at)[0]) for at in offsets)

    return sizes


def _ioctl_sizes(body: memoryview) -> int:
    """Input and output are paid for together ([MS-SMB2] 3.3.5.2.5)."""
    read: Callable[[int], int] = lambda at: int(_U32.unpack_from(body, at)[0])  # noqa: E731
    return max(read(28) + read(40), read(32) + read(44))


FILE_RULES: Final = (
    CommandRule(Command.CREATE, 57, Needs.TREE, create.create),
    CommandRule(Command.CLOSE, 24, Needs.OPEN, transfers.close, 8, when_expired=True),
    CommandRule(Command.FLUSH, 24, Needs.OPEN, transfers.flush, 8),
    CommandRule(
        Command.READ, 49, Needs.OPEN, transfers.read, 16, payload=_sizes_at(4), is_large=True
    ),
    CommandRule(
        Command.WRITE,
        49,
        Needs.OPEN,
        transfers.write,
        16,
        payload=_sizes_at(4),
        is_large=True,
        changes=True,
    ),
    CommandRule(Command.LOCK, 48, Needs.OPEN, locking.lock, 8, when_expired=True),
    CommandRule(
        Command.IOCTL,
        57,
        Needs.TREE,
        ioctl.ioctl,
        payload=_ioctl_sizes,
        is_large=True,
        changes=True,
    ),
    CommandRule(
        Command.QUERY_DIRECTORY,
        33,
        Needs.OPEN,
        directory.query_directory,
        8,
        payload=_sizes_at(28),
        is_large=True,
    ),
    CommandRule(
        Command.QUERY_INFO,
        41,
        Needs.OPEN,
        information.query_info,
        24,
        payload=_sizes_at(4, 12),
        is_large=True,
    ),
    CommandRule(
        Command.SET_INFO,
        33,
        Needs.OPEN,
        information.set_info,
        16,
        payload=_sizes_at(4),
        is_large=True,
        changes=True,
    ),
)
"""The commands of an open or a tree; OPLOCK_BREAK has two forms, `ACKNOWLEDGMENTS`."""
ACKNOWLEDGE: Final = breaks.acknowledge
"""OPLOCK_BREAK, whose StructureSize is 24 for oplocks and 36 for leases."""
