"""The rules of the commands on a tree's files, and the handler of each.

Lives here: the table. Source: [MS-SMB2] sections 2.2.13 to 2.2.40 and 3.3.5.2.5 (payload); smb.md
1.3 and 2.
"""

from __future__ import annotations

import struct
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
from strongroom.servers.smb.state.declarations import CommandRule, CommandTable, Needs, PayloadSizes
from strongroom.wire.smb.commands import Command

_U32: Final = struct.Struct("<I")


def _sizes_at(*offsets: int) -> PayloadSizes:
    """Return a function that reads the greatest of the 32-bit numbers at these offsets of a
    body."""

    def size(body: memoryview) -> int:
        return int(_U32.unpack_from(body, offsets[0])[0])

    def greatest(body: memoryview) -> int:
        return max(int(_U32.unpack_from(body, at)[0]) for at in offsets)

    return size if len(offsets) == 1 else greatest


def _ioctl_sizes(body: memoryview) -> int:
    """Return the larger of the input's and the output's size, in bytes. Credits pay for each as one
    sum ([MS-SMB2] 3.3.5.2.5)."""
    sent, room = _sum_at(body, 28, 40), _sum_at(body, 32, 44)
    return max(sent, room)


def _sum_at(body: memoryview, *offsets: int) -> int:
    return sum(int(_U32.unpack_from(body, at)[0]) for at in offsets)


FILE_RULES: Final = (
    CommandRule(Command.CREATE, 57, Needs.TREE, create.create),
    CommandRule(Command.CLOSE, 24, Needs.OPEN, transfers.close, 8, allowed_when_expired=True),
    CommandRule(Command.FLUSH, 24, Needs.OPEN, transfers.flush, 8),
    CommandRule(
        Command.READ,
        49,
        Needs.OPEN,
        transfers.read,
        16,
        payload=_sizes_at(4),
        is_large=True,
        has_large_answer=True,
    ),
    CommandRule(
        Command.WRITE,
        49,
        Needs.OPEN,
        transfers.write,
        16,
        payload=_sizes_at(4),
        is_large=True,
        checks_channel_sequence=True,
    ),
    CommandRule(Command.LOCK, 48, Needs.OPEN, locking.lock, 8, allowed_when_expired=True),
    CommandRule(
        Command.IOCTL,
        57,
        Needs.TREE,
        ioctl.ioctl,
        8,
        payload=_ioctl_sizes,
        is_large=True,
        has_large_answer=True,
        checks_channel_sequence=True,
    ),
    CommandRule(
        Command.QUERY_DIRECTORY,
        33,
        Needs.OPEN,
        directory.query_directory,
        8,
        payload=_sizes_at(28),
        is_large=True,
        has_large_answer=True,
    ),
    CommandRule(
        Command.CHANGE_NOTIFY,
        32,
        Needs.OPEN,
        directory.change_notify,
        8,
        payload=_sizes_at(4),
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
        has_large_answer=True,
    ),
    CommandRule(
        Command.SET_INFO,
        33,
        Needs.OPEN,
        information.set_info,
        16,
        payload=_sizes_at(4),
        is_large=True,
        checks_channel_sequence=True,
    ),
    # StructureSize is 24 for oplocks and 36 for leases, which belong to no tree.
    CommandRule(
        Command.OPLOCK_BREAK, 24, Needs.SESSION, breaks.acknowledge, alternative_request_size=36
    ),
)
FILE_COMMANDS: Final[CommandTable] = {rule.command: rule for rule in FILE_RULES}
"""The commands of opens and trees."""
