"""The members and credentials of an etcd cluster: the meaning of etcd:// URLs.

Lives here: parsing the URL, for the store, the guard and the hints. No error quotes the URL, since
it may hold a password. Must not live here: requests (etcd/http.py).
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote

from strongroom.coordination.errors import Unsupported
from strongroom.coordination.options.url_options import (
    ANY,
    SWITCH,
    UrlOptions,
    check_options,
    split_hosts,
)

PORT: Final = 2379
_HOST: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?")
_FILES: Final = ("ca", "cert", "key")
_OPTIONS: Final = UrlOptions({"tls": SWITCH, **dict.fromkeys(_FILES, ANY)})
_FORM: Final = "etcd://[USER:PASSWORD@]HOST[:2379][,HOST...][/PREFIX]"


@dataclass(frozen=True, slots=True)
class EtcdAddress:
    """A cluster, a key prefix in it, and the user that connects.

    Attributes:
        members: http:// or https:// URLs, without secrets.
        prefix: the text that every key begins with; no slash at its end.
        user, password: decoded; empty if the URL has none.
        tls: the TLS context for https; None for http.
    """

    members: tuple[str, ...]
    prefix: str
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    tls: ssl.SSLContext | None = field(default=None, repr=False)


def address_of(url: str, query: Mapping[str, str]) -> EtcdAddress:
    """Return the cluster that a URL names.

    Arguments:
        url: etcd://USER:PASSWORD@HOST:2379,OTHER:2379/PREFIX. User and password are
            percent-encoded. The default prefix is "strongroom".
        query: `tls=1` enables TLS. `ca` names a file of authorities to trust instead of the
            system's. `cert` and `key` are files with which the client proves its identity. Each of
            these three also enables TLS.
    """
    netloc, path = split_hosts(url)
    secrets, _, hosts = netloc.rpartition("@")
    check_options(url, query, _OPTIONS)
    files = [name for name in _FILES if name in query]
    if files and query.get("tls") == "0":
        raise Unsupported(f"etcd://...?tls=0 does not go with {files[0]}=, which is for TLS")
    tls = _context(query) if files or query.get("tls") == "1" else None
    scheme = "http" if tls is None else "https"
    members = [_member(scheme, number, host) for number, host in enumerate(hosts.split(","), 1)]
    user, _, password = secrets.partition(":")
    prefix = unquote(path).strip("/") or "strongroom"
    return EtcdAddress(tuple(members), prefix, unquote(user), unquote(password), tls)


def _member(scheme: str, number: int, text: str) -> str:
    parts = _HOST.fullmatch(text)
    port = int(parts[2] or PORT) if parts else 0
    if parts is None or not 0 < port < 65536:
        raise Unsupported(
            f"member number {number} of the etcd:// URL is no HOST[:PORT] with a port from 1 to"
            f" 65535; write {_FORM}, with what is special in user and password percent-encoded"
        )
    return f"{scheme}://{parts[1]}:{port}"


def _context(query: Mapping[str, str]) -> ssl.SSLContext:
    if ("key" in query) and ("cert" not in query):
        raise Unsupported("etcd://...?key= needs cert=, the certificate that belongs to it")
    try:
        context = ssl.create_default_context(cafile=query.get("ca"))
        if "cert" in query:
            context.load_cert_chain(query["cert"], query.get("key"))
    except (OSError, ValueError) as error:
        files = ", ".join(f"{name}={query[name]}" for name in _FILES if name in query)
        raise Unsupported(f"etcd:// cannot use {files}: {error}") from error
    return context
