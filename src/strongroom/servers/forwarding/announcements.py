"""What a gateway announces to the others: where it listens for them.

Lives here: the form of an announcement, and the choice of the address. Must not live here: how it
gets to the others (engines/gateways.py).
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence
from typing import Final

import msgspec

PROTOCOL: Final = 1
"""The version of the hop between gateways. Gateways of different versions do not forward to each
other."""
_WILDCARDS: Final = ("", "0.0.0.0", "::")
# Addresses for documentation (RFC 5737, RFC 3849). No packet is sent to them.
_FAR: Final = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))


class Announcement(msgspec.Struct, frozen=True, array_like=True):
    """Where a gateway listens, and how it is known.

    Attributes:
        fingerprint: the SHA-256 of the certificate's DER form.
    """

    protocol: int
    host: str
    port: int
    fingerprint: bytes


def encoded(announcement: Announcement) -> bytes:
    return msgspec.msgpack.encode(announcement)


def decoded(text: bytes | None) -> Announcement | None:
    """None for no announcement, and for one of another version."""
    if text is None:
        return None
    try:
        found = msgspec.msgpack.decode(text, type=Announcement)
    except msgspec.MsgspecError:
        return None
    return found if found.protocol == PROTOCOL else None


def default_host(listening_hosts: Sequence[str]) -> str:
    """Return the first host of a listener that others can connect to. A server that listens on all
    interfaces takes its own address on the way to other machines."""
    for host in listening_hosts:
        name = host.strip("[]")
        if name not in _WILDCARDS:
            return name
    return _own_address()


def _own_address() -> str:
    for family, far in _FAR:
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((far, 9))
                address = str(probe.getsockname()[0])
        except OSError:
            continue
        if not ipaddress.ip_address(address).is_unspecified:
            return address
    return socket.getfqdn()
