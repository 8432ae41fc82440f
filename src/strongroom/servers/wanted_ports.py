"""The hosts and ports that a server is to listen on, and the error when it cannot.

Lives here: names of listeners with their ports, that error, and the look whether a port is free.
Must not live here: opening them (app.py).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from strongroom.servers import one_port, smb
from strongroom.servers.connections.accepting import why_not_bound
from strongroom.servers.listener import RefusedListener, RequestedListener

GATEWAYS: Final = "gateways"
"""The name of the listener for other gateways."""
_OTHERS: Final = {smb.NAME: "SMB", "console": "the console"}
_log = logging.getLogger(__name__)


class WantedPort(NamedTuple):
    """A port that is to be opened: the name of its listener, the host, the port (0 = a free
    one)."""

    name: str
    host: str
    port: int


class CannotListen(Exception):
    """The server cannot listen on its address or port; the text says which and why.

    `refused` has the same as values, for programs with other flags than `strongroom serve`.
    """

    def __init__(self, text: str, refused: RefusedListener | None = None) -> None:
        super().__init__(text)
        self.refused = refused


def wanted_ports(of_services: Mapping[str, int], of_all: int | None) -> dict[str, int]:
    """By the listener's name. `of_all` is the port of all services; None = there is none."""
    return dict(of_services) if of_all is None else {**of_services, one_port.NAME: of_all}


async def check_host(host: str) -> None:
    """Refuse a host that is no name or address. Raises CannotListen."""
    try:
        await asyncio.get_running_loop().getaddrinfo(host.strip("[]") or None, 0)
    except (OSError, UnicodeError) as error:  # the latter for a part of more than 63 characters
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise CannotListen(
            f"--host {host}: no such name or address ({reason})",
            RefusedListener(None, host, 0, reason),
        ) from None


async def warn_of_taken(wanted: Iterable[WantedPort]) -> None:
    """Log a warning for each port that could not be opened now. For a server that will open them
    later: on one machine, the server before it may have them until then."""
    for one in wanted:
        error = await why_not_bound(one.host.strip("[]"), one.port)
        if error is not None:
            _log.warning(
                "this gateway waits, and could not serve now: it %s If the gateway that serves now "
                "has that port on this machine, nothing is wrong.",
                _why_not(one, error.strerror or str(error)),
            )


def not_listening(host: str, wanted: RequestedListener, error: OSError) -> CannotListen:
    """Return the error of a listener that cannot be opened. It says which flag chooses another
    port."""
    reason = error.strerror or str(error)
    refused = RefusedListener(wanted.name, host, wanted.port, reason)
    return CannotListen(_why_not(WantedPort(wanted.name, host, wanted.port), reason), refused)


def _why_not(wanted: WantedPort, reason: str) -> str:
    where = f"{wanted.host} port {wanted.port}"
    if wanted.name == GATEWAYS:
        return (
            f"cannot listen on {where} for the other gateways: {reason}. Name an address of this "
            "machine by --gateway-address HOST, or HOST:PORT for a port of its own."
        )
    is_one = wanted.name == one_port.NAME
    flag = "--one-port" if is_one else f"--{wanted.name}-port"
    what = "all services" if is_one else f"the {wanted.name} service"
    if wanted.name in _OTHERS:
        what = _OTHERS[wanted.name]
    return (
        f"cannot listen on {where} for {what}: {reason}. Choose another port by {flag}, or "
        f"{flag} 0 for a free one; --port-base 0 takes free ones for all services."
    )
