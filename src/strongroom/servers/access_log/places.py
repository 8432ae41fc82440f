"""The addresses in a line: the URI of a request, and the name of the object that it is for.

Lives here: both, with the names of objects in the form that the operator chose. Must not live here:
queries and other texts (texts.py). The part of a name below its container is
hashed, with a key that is derived from the first key of the account. Who has that key could read
the names anyway, and nobody else can guess them.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from functools import lru_cache
from typing import Final

import msgspec

from strongroom.auth.accounts import Account, Accounts
from strongroom.operations.core.endpoint import ResourceAddress
from strongroom.servers.access_log.record import json_of
from strongroom.servers.access_log.texts import HIDDEN, ObjectNames, cut, shown_query
from strongroom.wire.core.http import Request

_PURPOSE: Final = b"strongroom access log: names"
_CACHED_MAX: Final = 1024
# Addresses up to this length are never cut.
_SHORT_CHARS: Final = 1024
# What appears in a line as the client sent it, in the name of the object too.
_UNCHANGED_PATH: Final = re.compile(r"/[0-9A-Za-z/._~$-]*")
_UNCHANGED_HOST: Final = re.compile(r"[0-9A-Za-z.:\[\]-]{1,256}")


class ShownPlace(msgspec.Struct, frozen=True):
    """The URI of a request, and the name of its object; "" if it names none."""

    uri: str
    object_key: str = ""


class Places:
    """Writes addresses. `accounts` have the keys by which names are hashed."""

    def __init__(self, accounts: Accounts, names: ObjectNames) -> None:
        self._accounts = accounts
        self._names = names

    def of(self, request: Request, addressed: ResourceAddress | None) -> ShownPlace:
        """`addressed` is None if its URL could not be read."""
        origin = f"{'https' if request.tls else 'http'}://{request.host}"
        if self._names is ObjectNames.PLAIN:
            return _plain(origin, request.path, request.query, addressed)
        return self._veiled(origin, request.query, addressed, request.mount)

    def in_json(self, request: Request, addressed: ResourceAddress) -> tuple[str, str]:
        """Return the URI and the name of the object, each as text of JSON."""
        path, query, host = request.path, request.query, request.host
        if (
            self._names is ObjectNames.PLAIN
            and addressed.entity is None
            and len(request.target) <= _SHORT_CHARS
            and _UNCHANGED_PATH.fullmatch(path)
            and _UNCHANGED_HOST.fullmatch(host)
        ):
            # Most requests: only the query can have anything to cut or to escape.
            target, scheme = addressed.target, "https" if request.tls else "http"
            shown = "" if query is None else _query_in_json(query)
            container = f"/{target.container}" if target.container else ""
            name = f"/{target.blob}" if target.blob else ""
            return f'"{scheme}://{host}{path}{shown}"', f'"/{target.account}{container}{name}"'
        place = self.of(request, addressed)
        return json_of(place.uri), json_of(place.object_key)

    def key(self, account: str, container: str, name: str) -> str:
        """Return the name of an object in the form that the operator chose."""
        if self._names is ObjectNames.PLAIN:
            return cut(f"/{account}/{container}/{name}")
        return cut(f"/{account}/{container}/{self._veil(account, container, name)}")

    def _veiled(
        self, origin: str, query: str | None, addressed: ResourceAddress | None, mount: str
    ) -> ShownPlace:
        path, key = f"/{HIDDEN}", ""
        if addressed is not None:
            target = addressed.target
            key = f"/{target.account}" + (f"/{target.container}" if target.container else "")
            name = name_of(addressed)
            if name:
                key += f"/{self._veil(target.account, target.container or '', name)}"
            path = mount + (key.removeprefix(f"/{target.account}") if target.host_style else key)
        shown = "" if query is None else f"?{shown_query(query, self._names)}"
        return ShownPlace(cut(f"{origin}{path}{shown}"), cut(key))

    def _veil(self, account: str, container: str, name: str) -> str:
        if self._names is ObjectNames.OFF:
            return HIDDEN
        known = self._accounts.get(account)
        if known is None:
            return HIDDEN
        text = f"/{account}/{container}/{name}".encode("utf-8", "replace")
        return hmac.digest(_names_key(known), text, hashlib.sha256).hex()


def name_of(addressed: ResourceAddress) -> str:
    """Return the name of an object below its container, "" without one; the keys of an entity are
    separated by a line end."""
    if addressed.entity is not None:
        return "\n".join(addressed.entity)
    return addressed.target.blob or ""


@lru_cache(maxsize=_CACHED_MAX)
def _query_in_json(query: str) -> str:
    """Return what is shown of a query, with its question mark, as text of JSON without quotes."""
    return json_of(cut(f"?{shown_query(query, ObjectNames.PLAIN)}"))[1:-1]


@lru_cache(maxsize=64)
def _names_key(account: Account) -> bytes:
    return hmac.digest(account.keys[0], _PURPOSE, hashlib.sha256)


def _plain(
    origin: str, path: str, query: str | None, addressed: ResourceAddress | None
) -> ShownPlace:
    shown = "" if query is None else f"?{shown_query(query, ObjectNames.PLAIN)}"
    if addressed is None:
        return ShownPlace(cut(f"{origin}{path}{shown}"))
    target = addressed.target
    parts = [target.account, target.container or "", *(addressed.entity or (target.blob or "",))]
    key = "/".join(["", *(part for part in parts if part)])
    return ShownPlace(cut(f"{origin}{path}{shown}"), cut(key))
