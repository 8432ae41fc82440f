"""The commands of SMB 2 and 3 by their numbers. Source: [MS-SMB2] section 2.2.1.2; smb.md 1.2."""

from __future__ import annotations

import enum
from typing import Final


class Command(enum.IntEnum):
    """By their numbers in requests and responses."""

    NEGOTIATE = 0
    SESSION_SETUP = 1
    LOGOFF = 2
    TREE_CONNECT = 3
    TREE_DISCONNECT = 4
    CREATE = 5
    CLOSE = 6
    FLUSH = 7
    READ = 8
    WRITE = 9
    LOCK = 10
    IOCTL = 11
    CANCEL = 12
    ECHO = 13
    QUERY_DIRECTORY = 14
    CHANGE_NOTIFY = 15
    QUERY_INFO = 16
    SET_INFO = 17
    OPLOCK_BREAK = 18


def name_of(number: int) -> str:
    """`UNKNOWN` for an undefined number."""
    return _NAMES.get(number, "UNKNOWN")


_NAMES: Final = {command.value: command.name for command in Command}
