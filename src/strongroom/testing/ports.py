"""Free loopback ports for servers under test.

Lives here: the choice of a port. It is below 32768, because systems use higher ports for outgoing
connections. One of those could be taken between its choice and its use.

A chosen port stays bound by a socket that never listens. So other processes do not choose it, even
while the server that uses it restarts. Source: socket(7) of Linux, SO_REUSEADDR: only a listening
socket blocks an address that all its sockets agreed to share.
"""

from __future__ import annotations

import itertools
import os
import socket
from collections import deque
from typing import Final

from strongroom.platform.sockets import RESERVES_PORTS, take_address_of_ended_server

HOST: Final = "127.0.0.1"
_FIRST: Final = 20_000
_COUNT: Final = 12_000
# Processes start at different ports, so that parallel test runs seldom collide.
_next = itertools.count(os.getpid() * 131)
# Each needs a descriptor, so that the oldest is given back.
_reserved: deque[socket.socket] = deque(maxlen=128)


def free_port() -> int:
    """Return a port that no process listens on or has chosen. Raises OSError if there is none.

    On Linux it stays reserved for servers that set SO_REUSEADDR before they bind, until this
    process ends or has chosen 128 more.
    """
    for _ in range(_COUNT):
        port = _FIRST + next(_next) % _COUNT
        if _reserve(port) if RESERVES_PORTS else is_free(port):
            return port
    raise OSError("no port is free")


def _reserve(port: int) -> bool:
    made = socket.socket()
    try:
        made.bind((HOST, port))
        # Only now: with it, the port of another reservation could be bound.
        take_address_of_ended_server(made)
    except OSError:
        made.close()
        return False
    if len(_reserved) == _reserved.maxlen:
        _reserved.popleft().close()
    _reserved.append(made)
    return True


def is_free(port: int) -> bool:
    """Return whether no process listens on the port now."""
    with socket.socket() as probe:
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def port_flags(blob_port: int | None = None) -> tuple[str, ...]:
    """Return flags of `strongroom serve` for free ports; the Blob service's port may be given."""
    blob = free_port() if blob_port is None else blob_port
    return (
        *("--blob-port", str(blob)),
        *("--queue-port", str(free_port())),
        *("--table-port", str(free_port())),
        *("--file-port", str(free_port())),
    )
