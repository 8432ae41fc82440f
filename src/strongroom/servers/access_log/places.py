"""The addresses in a line: the URI of a request, and the name of the object that it is for.

Lives here: both, with the names of objects in the form that the operator chose. Must not live here:
queries and other texts (texts.py). The part of a name below its container is
hashed, with a key that is derived from the first key of the account. Who has that key could read
the names anyway, and nobody else can guess them.
"""

from __future__ import annotations

import hashlib
import hmac
from functools import lru_cache
from typing import Final

import msgspec

from strongroom.auth.accounts import Account, Accounts
from strongroom.operations.core.endpoint import ResourceAddress
from strongroom.servers.access_log.record import json_of
from strongroom.servers.access_log.texts import HIDDEN, ObjectNames, cut, shown_query
from strongroom.wire.core.http import Request

_PURPOSE: Final = b"strongroom access log: names"
_CACHED_MAX: Final = 2048
_CACHED_CHARS_MAX: Final = 512


class ShownPlace(msgspec.Struct, frozen=True):
    """The URI of a request, and the name of its object; "" if it names none. The other two are
    the same in JSON."""

    uri: str
    object_key: str = ""
    uri_json: str = ""
    key_json: str = ""


class Places:
    """Writes addresses.

    Arguments:
        accounts: have the keys by which names are hashed.
        names: how the names of objects are shown.
    """

    def __init__(self, accounts: Accounts, names: ObjectNames) -> None:
        self._accounts = accounts
        self._names = names
        self._plain: dict[tuple[str, str, bool], ShownPlace] = {}

    def of(self, request: Request, addressed: ResourceAddress | None) -> ShownPlace:
        """Return the place of a request.

        Arguments:
            addressed: None if its URL could not be read.
        """
        if self._names is not ObjectNames.PLAIN or addressed is None:
            return self._new(request, addressed)
        # What a URL names follows from these three. It is cached, since clients repeat URLs.
        asked = request.host, request.target, request.tls
        found = self._plain.get(asked)
        if found is None:
            found = self._new(request, addressed)
            found = ShownPlace(
                found.uri, found.object_key, json_of(found.uri), json_of(found.object_key)
            )
            if len(request.target) <= _CACHED_CHARS_MAX:
                if len(self._plain) >= _CACHED_MAX:
                    self._plain.clear()
                self._plain[asked] = found
        return found

    def _new(self, request: Request, addressed: ResourceAddress | None) -> ShownPlace:
        origin = f"{'https' if request.tls else 'http'}://{request.host}"
        if self._names is ObjectNames.PLAIN:
            return _plain(origin, request.path, request.query, addressed)
        return self._veiled(origin, request.query, addressed, request.mount)

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
