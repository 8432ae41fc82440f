"""The hosts and ports that a server is to listen on, and the error when it cannot.

Lives here: names of listeners with their ports, and that error. Must not live here: opening them
(app.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from strongroom.servers import one_port, smb
from strongroom.servers.listener import RefusedListener, RequestedListener

GATEWAYS: Final = "gateways"
"""The name of the listener for other gateways."""
_OTHERS: Final = {smb.NAME: "SMB", "console": "the console"}


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
    except OSError as error:
        reason = error.strerror or str(error)
        raise CannotListen(
            f"--host {host}: no such name or address ({reason})",
            RefusedListener(None, host, 0, reason),
        ) from None


def not_listening(host: str, wanted: RequestedListener, error: OSError) -> CannotListen:
    """Return the error of a listener that cannot be opened. It says which flag chooses another
    port."""
    reason = error.strerror or str(error)
    refused = RefusedListener(wanted.name, host, wanted.port, reason)
    return CannotListen(_why_not(host, wanted, reason), refused)


def _why_not(host: str, wanted: RequestedListener, reason: str) -> str:
    if wanted.name == GATEWAYS:
        return (
            f"cannot listen on {host} port {wanted.port} for the other gateways: {reason}. Name an "
            "address of this machine by --gateway-address HOST, or HOST:PORT for a port of its own."
        )
    is_one = wanted.name == one_port.NAME
    flag = "--one-port" if is_one else f"--{wanted.name}-port"
    what = "all services" if is_one else f"the {wanted.name} service"
    if wanted.name in _OTHERS:
        what = _OTHERS[wanted.name]
    return (
        f"cannot listen on {host} port {wanted.port} for {what}: {reason}. Choose another port by "
        f"{flag}, or {flag} 0 for a free one; --port-base 0 takes free ones for all services."
    )
