"""Which network addresses may be asked for copy sources.

Lives here: one rule over an address. Must not live here: names and connections (copy_client.py).
Source: the special-purpose registries of RFC 6890; the metadata addresses of the cloud providers.
"""

from __future__ import annotations

import ipaddress
from typing import Final

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# Where machines in clouds learn their secrets; some are neither private nor link-local.
_METADATA: Final = frozenset(
    ipaddress.ip_address(text)
    for text in ("169.254.169.254", "168.63.129.16", "100.100.100.200", "fd00:ec2::254")
)
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")


def may_ask(text: str, listed: bool) -> bool:
    """Whether a copy may read from this address.

    Arguments:
        listed: the operator named its host: then it may be private or loopback too. Link-local,
            multicast, unspecified and metadata addresses are never asked.
    """
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return all(_is_open(one, listed) for one in (address, *_embedded(address)))


def _is_open(address: _Address, listed: bool) -> bool:
    never = address.is_link_local or address.is_multicast or address.is_unspecified
    if never or address in _METADATA:
        return False
    if isinstance(address, ipaddress.IPv6Address) and _embedded(address):
        # A way to write an IPv4 address: that one is judged.
        return True
    return listed or address.is_global


def _embedded(address: _Address) -> tuple[ipaddress.IPv4Address, ...]:
    """The IPv4 addresses that a packet to this IPv6 address may end at."""
    if isinstance(address, ipaddress.IPv4Address):
        return ()
    found = [address.ipv4_mapped, address.sixtofour]
    if address.teredo is not None:
        found.extend(address.teredo)
    if address in _NAT64:
        found.append(ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF))
    return tuple(one for one in found if one is not None)
