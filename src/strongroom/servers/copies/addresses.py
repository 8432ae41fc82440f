"""The rules that decide which hosts a copy may read from, by host name and by address.

Lives here: rules over names and addresses. Must not live here: resolving and connecting
(copies/client.py). Source: RFC 6890 and RFC 6052 for special addresses; the cloud providers' pages
on the addresses of their metadata services.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable
from typing import Final

import msgspec

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# Some of these addresses are neither private nor link-local.
_METADATA: Final = frozenset(
    ipaddress.ip_address(text)
    for text in (
        "169.254.169.254",
        "168.63.129.16",
        "100.100.100.200",
        "192.0.0.192",
        "fd00:ec2::254",
        "fd20:ce::254",
        "fd00:c1::a9fe:a9fe",
    )
)
_METADATA_NAMES: Final = frozenset(
    (
        "metadata",
        "metadata.google.internal",
        "metadata.goog",
        "metadata.azure.internal",
        "metadata.tencentyun.com",
        "instance-data",
        "instance-data.ec2.internal",
    )
)
_BROADCAST: Final = ipaddress.IPv4Address("255.255.255.255")
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
# The position of the IPv4 address in such an address depends on the local network.
_LOCAL_NAT64: Final = ipaddress.IPv6Network("64:ff9b:1::/48")
# The obsolete form of an IPv4 address in IPv6; `::` and `::1` lie in this range too.
_COMPATIBLE: Final = ipaddress.IPv6Network("::/96")
_BELOW_COMPATIBLE: Final = 2
_ENTRY: Final = re.compile(r"(\[[0-9a-f:.]+\]|(?:\*\.)?[a-z0-9_.-]+)(?::([0-9]{1,5}))?")


class _Entry(msgspec.Struct, frozen=True):
    """A host as the operator gave it; `port` None = any, `pattern` may begin with `*.`."""

    pattern: str
    port: int | None
    address: _Address | None


class SourceHosts(msgspec.Struct, frozen=True):
    """The hosts that the operator allowed as copy sources; if there are none, every public host is
    allowed."""

    entries: tuple[_Entry, ...] = ()

    @classmethod
    def parse(cls, texts: Iterable[str]) -> SourceHosts:
        """Parse texts `NAME`, `*.SUFFIX` or `ADDRESS`, each with `:PORT` to allow only that port.

        Raises: ValueError, with a message for the operator.
        """
        return cls(tuple(_entry(text) for text in texts))

    def may_resolve(self, host: str, port: int) -> bool:
        """Whether the name of this host may be resolved, judged by the name alone."""
        name = normalized_host(host)
        if name in _METADATA_NAMES:
            return False
        return not self.entries or _is_numeric(name) or self._is_named(name, port)

    def allows_address(self, host: str, port: int, address: str) -> bool:
        """Whether a copy may read from `address`, to which `host` resolved.

        An allowed address matches every spelling of itself, but no name that resolves to it.
        """
        name = normalized_host(host)
        listed = self._is_named(name, port)
        if not listed and _is_numeric(name):
            parsed = _parsed(address)
            listed = any(_fits(one, port) and one.address == parsed for one in self.entries)
        return is_address_allowed(address, listed) and (listed or not self.entries)

    def _is_named(self, name: str, port: int) -> bool:
        return any(_fits(one, port) and _matches(one.pattern, name) for one in self.entries)


def is_address_allowed(text: str, listed: bool) -> bool:
    """Whether a copy may read from this address.

    Arguments:
        listed: whether the operator allowed the host. Its address may then be private, loopback or
            unspecified too. Link-local, multicast, broadcast and metadata addresses are never
            allowed.
    """
    address = _parsed(text)
    if address is None:
        return False
    embedded = _embedded(address)
    if _is_always_refused(address) or any(map(_is_always_refused, embedded)):
        return False
    # If an IPv6 address embeds an IPv4 address, the IPv4 address is judged.
    return listed or all(map(_is_public, embedded or (address,)))


def normalized_host(host: str) -> str:
    """Return a host name in the form for comparisons: lower case, without a trailing dot."""
    return host.lower().rstrip(".")


def _entry(text: str) -> _Entry:
    entry = text.strip().lower()
    address = _parsed(entry)
    if address is not None:
        return _Entry(entry, None, address)
    match = _ENTRY.fullmatch(entry)
    port = None if match is None or match[2] is None else int(match[2])
    if match is None or (port is not None and not 0 < port < 65536):
        forms = "NAME, *.SUFFIX or ADDRESS, with or without :PORT"
        raise ValueError(f"{text!r} is no host for copies; it has the form {forms}")
    address = _parsed(match[1].strip("[]"))
    if match[1].startswith("[") and address is None:
        raise ValueError(f"{text!r} is no host for copies; there is no such address")
    return _Entry(normalized_host(match[1]), port, address)


def _fits(entry: _Entry, port: int) -> bool:
    return entry.port is None or entry.port == port


def _matches(pattern: str, name: str) -> bool:
    if pattern.startswith("*."):
        return name.endswith(pattern[1:]) and len(name) >= len(pattern)
    return name == pattern


def _is_numeric(name: str) -> bool:
    """Whether the resolver reads the name as an address, such as `127.1` and `0x7f000001`."""
    if ":" in name:
        return True
    try:
        socket.inet_aton(name)
    except OSError:
        return False
    return True


def _parsed(text: str) -> _Address | None:
    if "%" in text:
        # An address with a zone id is link-local, and matches no address of a list.
        return None
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _is_always_refused(address: _Address) -> bool:
    if address.is_link_local or address.is_multicast or address == _BROADCAST:
        return True
    return address in _METADATA or address in _LOCAL_NAT64


def _is_public(address: _Address) -> bool:
    site_local = isinstance(address, ipaddress.IPv6Address) and address.is_site_local
    return address.is_global and not site_local


def _embedded(address: _Address) -> tuple[ipaddress.IPv4Address, ...]:
    """Return the IPv4 addresses that a packet to this IPv6 address may be forwarded to."""
    if isinstance(address, ipaddress.IPv4Address):
        return ()
    embedded = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    is_compatible = address in _COMPATIBLE and int(address) >= _BELOW_COMPATIBLE
    if is_compatible or address in _NAT64:
        embedded.append(ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF))
    return tuple(one for one in embedded if one is not None)
