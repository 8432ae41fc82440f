"""The URL of a place for bodies: `file:///shared`, or `rados://POOL?conf=/etc/ceph/ceph.conf`.

Lives here: their forms. No import of what opens one, since flags need only this.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlsplit

FOLDER_SCHEME: Final = "file://"
POOL_SCHEME: Final = "rados://"
_CONFIGURATION: Final = "/etc/ceph/ceph.conf"
_USER: Final = "client.admin"
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")
_FORM: Final = "rados://POOL?conf=/etc/ceph/ceph.conf&ns=NAMESPACE&user=client.NAME"


class PoolUrl(NamedTuple):
    """Where a pool of Ceph is.

    Attributes:
        configuration: the path of Ceph's configuration, which also names the keyring.
        namespace: in the pool; empty = the default one.
        user: who reads and writes, in Ceph's terms.
    """

    pool: str
    configuration: str = _CONFIGURATION
    namespace: str = ""
    user: str = _USER

    def __str__(self) -> str:
        namespace = f"&ns={self.namespace}" if self.namespace else ""
        user = f"&user={self.user}" if self.user != _USER else ""
        return f"{POOL_SCHEME}{self.pool}?conf={quote(self.configuration)}{namespace}{user}"


def is_pool(url: str) -> bool:
    """Whether a URL names a pool of Ceph."""
    return url.startswith(POOL_SCHEME)


def folder_of(url: str) -> str:
    """Return the path of a folder. Raises: ValueError, which says what to give."""
    path = unquote(url.removeprefix(FOLDER_SCHEME))
    if not url.startswith(FOLDER_SCHEME) or not _is_path(path):
        raise ValueError(
            "give the URL of a folder that all gateways mount, such as file:///shared, or of a "
            "pool of Ceph, such as rados://POOL?conf=/etc/ceph/ceph.conf"
        )
    return path.rstrip("/")


def pool_of(url: str) -> PoolUrl:
    """Return where a pool is. Raises: ValueError, which says what to give."""
    try:
        parts = urlsplit(url)
    except ValueError:
        raise ValueError(f"give a pool of Ceph as {_FORM}") from None
    given = dict(pairs := parse_qsl(parts.query, keep_blank_values=True))
    if parts.path.strip("/") or parts.fragment or len(given) != len(pairs):
        raise ValueError(f"give a pool of Ceph as {_FORM}")
    found = PoolUrl(
        parts.netloc,
        given.pop("conf", _CONFIGURATION),
        given.pop("ns", ""),
        given.pop("user", _USER),
    )
    if given:
        raise ValueError(f"{min(given)} is no part of a pool's URL; give {_FORM}")
    _check(found)
    return found


def _check(found: PoolUrl) -> None:
    if not _NAME.fullmatch(found.pool):
        raise ValueError(f"the name of a pool has letters, digits and . _ - only; give {_FORM}")
    if not _is_path(found.configuration):
        raise ValueError(f"conf is the whole path of Ceph's configuration; give {_FORM}")
    if found.namespace and not _NAME.fullmatch(found.namespace):
        raise ValueError(f"the name in ns has letters, digits and . _ - only; give {_FORM}")
    kind, dot, name = found.user.partition(".")
    if kind != "client" or not dot or not _NAME.fullmatch(name):
        raise ValueError(f"user is a user of Ceph such as client.strongroom; give {_FORM}")


def place_url(text: str) -> str:
    """Return the URL in the form in which stores keep it. Raises: ValueError."""
    if is_pool(text):
        return str(pool_of(text))
    return FOLDER_SCHEME + folder_of(text)


def _is_path(path: str) -> bool:
    is_path = path.startswith("/") and path.strip("/") != ""
    return is_path and path.isprintable() and ".." not in path
