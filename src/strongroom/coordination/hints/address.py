"""Reading a bus's URL: host, port, secrets, options; with errors that contain no secret."""

from __future__ import annotations

import ssl
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from strongroom.coordination.errors import Unsupported
from strongroom.coordination.options.url_options import (
    ANY,
    UrlOptions,
    check_host,
    check_options,
    port_of,
)


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a bus, and the user's credentials.

    Attributes:
        scheme, host, port, path: of the URL; the path without its first slash, decoded.
        user, password: decoded; None where the URL has none. Not part of `repr`.
    """

    scheme: str
    host: str
    port: int
    path: str
    user: str | None = field(repr=False)
    password: str | None = field(repr=False)

    @property
    def display_url(self) -> str:
        """The scheme, host and port, for messages."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


def address_of(
    url: str, port: int, query: Mapping[str, str], options: Collection[str] = ()
) -> Address:
    """Return the parts of a bus's URL.

    Arguments:
        url: SCHEME://[USER[:PASSWORD]@]HOST[:PORT][/PATH][?...]
        port: the port if the URL names none.
        options: the names that the query may have.

    Raises:
        Unsupported: no host, a bad port, an unknown option. Nothing of the URL but its host and the
            names of its options is quoted.
    """
    parts = urlsplit(url)
    port_used = port_of(parts, port)
    if not parts.hostname:
        raise Unsupported(f"the {parts.scheme}:// URL names no host: {parts.scheme}://HOST:{port}")
    check_host(parts.hostname)
    check_options(url, query, UrlOptions(dict.fromkeys(options, ANY)))
    return Address(
        scheme=parts.scheme,
        host=parts.hostname,
        port=port_used,
        path=unquote(parts.path.removeprefix("/")),
        user=None if parts.username is None else unquote(parts.username),
        password=None if parts.password is None else unquote(parts.password),
    )


def tls_of(ca: str | None) -> ssl.SSLContext:
    """Return a context for TLS, with which the server must prove its name.

    Arguments:
        ca: a file of certificates to trust; None: those of the system.
    """
    try:
        return ssl.create_default_context(cafile=ca)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise Unsupported(f"ca={ca} is no file of certificates: {reason}") from None
