"""Which `Host` and `Origin` headers the server's own endpoints accept.

Lives here: the rule about `Host` and `Origin`. Must not live here: the endpoints
(own_endpoints.py). They need no key, so a page on the internet must not reach them through the
browser of a user who can. Such a page can point a host name of its own at this server (DNS
rebinding); then `Host` is that name. Or it can send a request without reading the answer; then
`Origin` names the page. Source: RFC 9110 section 7.2 (Host), RFC 6454 section 7 (Origin),
RFC 6761 section 6.3 (every name below `localhost` is this machine).
"""

from __future__ import annotations

import ipaddress
import re
from typing import Final

import msgspec

_LOCALHOST: Final = "localhost"
_READING: Final = frozenset({"GET", "HEAD"})
# A name, an IPv4 address, or an IPv6 address in brackets; perhaps a port.
_AUTHORITY: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]:/@?#\s]+)(?::[0-9]*)?")
_ORIGIN: Final = re.compile(r"[a-z]+://(.+)")
_SHOWN_CHARS: Final = 100


class OwnHosts(msgspec.Struct, frozen=True):
    """The host names of this server, in lower case.

    Attributes:
        names: exact names.
        suffixes: domains that are accepted with every name below them.
    """

    names: frozenset[str] = frozenset()
    suffixes: tuple[str, ...] = ()

    def refusal(self, method: str, host: str | None, origin: str | None) -> str | None:
        """Return the reason why a request may not use the endpoints, as readable text; None if it
        may.

        Arguments:
            host: the Host header. Without one (HTTP/1.0) the client is no browser.
            origin: the Origin header. It is checked for methods that may change something.
        """
        if host is not None and not self._is_own(host):
            shown = host[:_SHOWN_CHARS]
            return (
                f"{shown!r} is not a name of this server. Use an IP address or localhost, or start "
                "the server with --own-host NAME."
            )
        if origin is None or method in _READING or _may_change(origin, host):
            return None
        shown = origin[:_SHOWN_CHARS]
        return f"A page of {shown!r} may not change anything here: it is not of this machine."

    def _is_own(self, host: str) -> bool:
        name = _name(host)
        if name is None:
            return False
        if _is_localhost(name) or name in self.names or _address(name) is not None:
            return True
        return any(name == suffix or name.endswith(f".{suffix}") for suffix in self.suffixes)


def _may_change(origin: str, host: str | None) -> bool:
    """Whether a page is this server's own, or one of this machine."""
    match = _ORIGIN.fullmatch(origin.lower())
    if match is None:
        return False
    if host is not None and match[1] == host.lower():
        return True
    name = _name(match[1])
    if name is None:
        return False
    address = _address(name)
    return _is_localhost(name) if address is None else address.is_loopback


def _name(authority: str) -> str | None:
    """Return the host without its port, in lower case; None if it cannot be parsed."""
    match = _AUTHORITY.fullmatch(authority)
    return None if match is None else match[1].lower().removesuffix(".")


def _is_localhost(name: str) -> bool:
    return name == _LOCALHOST or name.endswith(f".{_LOCALHOST}")


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return None
