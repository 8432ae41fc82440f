"""Free ports of loopback for servers under test.

Lives here: the choice. It stays below 32768, where systems take the ports of outgoing connections:
one of those could be taken between the choice and its use.
"""

from __future__ import annotations

import itertools
import os
import socket
from typing import Final

HOST: Final = "127.0.0.1"
_FIRST: Final = 20_000
_COUNT: Final = 12_000
# Processes begin at different places, so that test runs beside each other seldom meet.
_next = itertools.count(os.getpid() * 131)


def free_port() -> int:
    """A port that nobody listens on. Raises OSError when there is none."""
    for _ in range(_COUNT):
        port = _FIRST + next(_next) % _COUNT
        if is_free(port):
            return port
    raise OSError("no port is free")


def is_free(port: int) -> bool:
    """Whether nobody listens on the port now."""
    with socket.socket() as probe:
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def port_flags(blob_port: int | None = None) -> tuple[str, ...]:
    """Flags of `strongroom serve` for ports of its own; the Blob service's may be given."""
    blob = free_port() if blob_port is None else blob_port
    return (
        *("--blob-port", str(blob)),
        *("--queue-port", str(free_port())),
        *("--table-port", str(free_port())),
        *("--file-port", str(free_port())),
    )
