"""Free loopback ports for servers under test.

Lives here: the choice of a port. It is below 32768, because systems use higher ports for outgoing
connections. One of those could be taken between its choice and its use.
"""

from __future__ import annotations

import itertools
import os
import socket
from typing import Final

HOST: Final = "127.0.0.1"
_FIRST: Final = 20_000
_COUNT: Final = 12_000
# Processes start at different ports, so that parallel test runs seldom collide.
_next = itertools.count(os.getpid() * 131)


def free_port() -> int:
    """Return a port that no process listens on. Raises OSError if there is none."""
    for _ in range(_COUNT):
        port = _FIRST + next(_next) % _COUNT
        if is_free(port):
            return port
    raise OSError("no port is free")


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
