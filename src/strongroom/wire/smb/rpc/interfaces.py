"""The interfaces that the pipes of IPC$ serve: their ids, and their calls by number.

Sources: [MS-SRVS], [MS-WKST] and [MS-LSAT], sections 1.9 and 3.1.4; smb.md 2.3.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Mapping
from typing import Final

import msgspec

from strongroom.wire.smb.rpc import lsa
from strongroom.wire.smb.rpc.calls import (
    RemoteCall,
    server_get_info,
    share_enum,
    share_get_info,
    workstation_get_info,
)

SRVSVC: Final = "srvsvc"
WKSSVC: Final = "wkssvc"
LSARPC: Final = "lsarpc"


def syntax(name: str, major: int) -> bytes:
    """The bytes of an interface's or a transfer syntax's id."""
    return uuid.UUID(name).bytes_le + struct.pack("<I", major)


class Interface(msgspec.Struct, frozen=True):
    """The interface behind a pipe.

    Attributes:
        syntax: its id and version, as a bind names it.
        calls: by operation number.
    """

    syntax: bytes
    calls: Mapping[int, RemoteCall]


INTERFACES: Final[Mapping[str, Interface]] = {
    SRVSVC: Interface(
        syntax("4b324fc8-1670-01d3-1278-5a47bf6ee188", 3),
        {15: share_enum, 16: share_get_info, 21: server_get_info},
    ),
    WKSSVC: Interface(syntax("6bffd098-a112-3610-9833-46c3f87e345a", 1), {0: workstation_get_info}),
    LSARPC: Interface(syntax("12345778-1234-abcd-ef00-0123456789ab", 0), lsa.CALLS),
}
"""By the names of their pipes, in lower case."""
