"""The calls of srvsvc and wkssvc that clients need to browse a server, and their results.

One function for each call, from its stub to the stub of its result; PDUs: pipe.py. Sources:
[MS-SRVS] sections 2.2.4 and 3.1.4; [MS-WKST] section 3.2.4.1; smb.md 2.3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from strongroom.wire.smb.rpc.ndr import NdrReader, NdrWriter

IPC: Final = "IPC$"
_DISK: Final = 0
_IPC_TYPE: Final = 0x8000_0003
_OK: Final = 0
_INVALID_LEVEL: Final = 124
_NO_SUCH_SHARE: Final = 2310
_PLATFORM_NT: Final = 500
_VERSION: Final = (10, 0)
_SERVER_TYPE: Final = 0x0000_9003
"""The server type bits: workstation, server, and NT."""
_UNLIMITED: Final = 0xFFFF_FFFF
_READ_EXECUTE_ALL: Final = 0


class ListedShare(msgspec.Struct, frozen=True):
    """A share as clients see it when they browse."""

    name: str
    remark: str = ""
    type: int = _DISK


IPC_SHARE: Final = ListedShare(IPC, "Remote IPC", _IPC_TYPE)


class Inventory(msgspec.Struct, frozen=True):
    """The server's inventory: its own name, the caller's account, and the account's shares."""

    server: str
    shares: tuple[ListedShare, ...]
    account: str = ""

    @property
    def all(self) -> tuple[ListedShare, ...]:
        """The shares, and the IPC$ share."""
        return (*self.shares, IPC_SHARE)


RemoteCall = Callable[[NdrReader, Inventory], NdrWriter]
_Row = Callable[[NdrWriter, ListedShare], None]


def _level_1(out: NdrWriter, share: ListedShare) -> None:
    out.text(share.name)
    out.number(share.type)
    out.text(share.remark)


def _level_2(out: NdrWriter, share: ListedShare) -> None:
    _level_1(out, share)
    out.number(_READ_EXECUTE_ALL)
    out.number(_UNLIMITED)
    out.number(1)
    # The path of a share on the server's disk is not disclosed, and there is no password.
    out.text("")
    out.null()


def _level_501(out: NdrWriter, share: ListedShare) -> None:
    _level_1(out, share)
    out.number(0)


def _level_502(out: NdrWriter, share: ListedShare) -> None:
    _level_2(out, share)
    out.number(0)
    out.null()


_SHARE_LEVELS: Final[Mapping[int, _Row]] = {
    0: lambda out, share: out.text(share.name),
    1: _level_1,
    2: _level_2,
    501: _level_501,
    502: _level_502,
    1005: lambda out, _: out.number(0),
}
_ENUM_LEVELS: Final = (0, 1, 2, 501, 502)


def share_enum(stub: NdrReader, inventory: Inventory) -> NdrWriter:
    """Answer NetrShareEnum with all shares at once; the client's preferred length is ignored."""
    stub.unique_string()
    level = stub.number()
    out = NdrWriter()
    out.number(level)
    out.number(level)
    row = _SHARE_LEVELS[level] if level in _ENUM_LEVELS else None
    shares = inventory.all if row is not None else ()
    out.pointer()
    out.number(len(shares))
    if row is None:
        out.null()
    else:
        out.pointer()
        out.number(len(shares))
        for share in shares:
            row(out, share)
        out.write_deferred()
    out.number(len(shares))
    out.null()
    out.number(_INVALID_LEVEL if row is None else _OK)
    return out


def share_get_info(stub: NdrReader, inventory: Inventory) -> NdrWriter:
    """Answer NetrShareGetInfo; the share's name is case-insensitive."""
    stub.unique_string()
    name, level = stub.string().lower(), stub.number()
    row = _SHARE_LEVELS.get(level)
    share = next((share for share in inventory.all if share.name.lower() == name), None)
    if share is None or row is None:
        return _nothing(level, _INVALID_LEVEL if row is None else _NO_SUCH_SHARE)
    out = NdrWriter()
    out.number(level)
    out.pointer()
    row(out, share)
    out.write_deferred()
    out.number(_OK)
    return out


def _nothing(level: int, error: int) -> NdrWriter:
    out = NdrWriter()
    out.number(level)
    out.null()
    out.number(error)
    return out


def server_get_info(stub: NdrReader, inventory: Inventory) -> NdrWriter:
    """Answer NetrServerGetInfo of the levels 100 and 101."""
    stub.unique_string()
    level = stub.number()
    if level not in (100, 101):
        return _nothing(level, _INVALID_LEVEL)
    out = NdrWriter()
    out.number(level)
    out.pointer()
    out.number(_PLATFORM_NT)
    out.text(inventory.server)
    if level == 101:
        for number in (*_VERSION, _SERVER_TYPE):
            out.number(number)
        out.text("")
    out.write_deferred()
    out.number(_OK)
    return out


def workstation_get_info(stub: NdrReader, inventory: Inventory) -> NdrWriter:
    """Answer NetrWkstaGetInfo of level 100."""
    stub.unique_string()
    level = stub.number()
    if level != 100:
        return _nothing(level, _INVALID_LEVEL)
    out = NdrWriter()
    out.number(level)
    out.pointer()
    out.number(_PLATFORM_NT)
    out.text(inventory.server)
    out.text(inventory.server)
    for number in _VERSION:
        out.number(number)
    out.write_deferred()
    out.number(_OK)
    return out
