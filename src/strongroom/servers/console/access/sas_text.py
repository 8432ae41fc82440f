"""A shared access signature as a person pastes it: a URL, its query, or a connection string.

Lives here: reading of the text, and the resource that its address names. Must not live here: the
form of a token (auth/sas.py), what it means (sas_words.py), its signature (sas_check.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import SplitResult, quote, urlsplit

import msgspec

from strongroom.auth.request import Service, Target
from strongroom.auth.sas import PARAMETERS, Pairs, Sas, decode_query
from strongroom.errors.core import StorageError
from strongroom.wire.core.path import UrlTarget, account_of_host, parse

_BY_NAME: Final = {service.value: service for service in Service}
_USUAL_PORTS: Final = {"http": 80, "https": 443}
_SCHEMES: Final = ("http://", "https://")
_OF_FILES: Final = ("f", "s")
_BELOW_CONTAINER: Final = (Service.BLOB, Service.FILE)
_OF_CONNECTION_STRING: Final = "sharedaccesssignature"


class Addresses(msgspec.Struct, frozen=True):
    """Where the services are.

    Attributes:
        ports: by the services' names.
        suffixes: the domains below which a label is an account.
    """

    ports: Mapping[str, int]
    suffixes: Mapping[Service, tuple[str, ...]]


class _Route(NamedTuple):
    service: Service
    account: str | None
    mount: str


class PastedSas(msgspec.Struct, frozen=True):
    """A pasted text.

    Attributes:
        query: with the token, percent-encoded.
        service: that the address names; None without an address.
        url: what the address names below the service.
    """

    query: str
    service: Service | None = None
    url: UrlTarget | None = None

    @property
    def account(self) -> str:
        """The account that the address names; "" without one."""
        return "" if self.url is None else self.url.account

    def written(self) -> dict[str, str]:
        """Return the parameters of a token, by lower-case name; the first of each counts."""
        values: dict[str, str] = {}
        for name, value in decode_query(self.query):
            if name.lower() in PARAMETERS:
                values.setdefault(name.lower(), value)
        return values

    def likely_service(self) -> Service:
        """Return the service that the address names, else the one whose fields the token has."""
        if self.service is not None:
            return self.service
        written = self.written()
        if written.get("ss"):
            return next((one for one in Service if one.letter in written["ss"]), Service.BLOB)
        if written.get("tn"):
            return Service.TABLE
        if written.get("sr") in _OF_FILES:
            return Service.FILE
        return Service.BLOB if written.get("sr") else Service.QUEUE

    def target(self, sas: Sas, pairs: Pairs, account: str) -> Target:
        """Return the resource for which the signature is checked.

        Arguments:
            account: used if the text has no address.
        """
        service, url = self.likely_service(), self.url
        if url is None:
            return Target(service, account)
        if service is Service.BLOB and url.blob is None and sas.sr not in ("", "c"):
            url = url.in_root()
        named = {name.lower(): value for name, value in pairs}
        container = url.container
        if service is Service.TABLE:
            container = (container or sas.tn).partition("(")[0]
        return Target(
            service,
            url.account,
            container,
            url.blob if service in _BELOW_CONTAINER else None,
            named.get("snapshot"),
            named.get("versionid"),
        )


def read_pasted(text: str, addresses: Addresses) -> PastedSas:
    """Return what was pasted. Raises ValueError for an address that is none."""
    text = "".join(char if char.isascii() else quote(char, errors="replace") for char in text)
    text = text.strip()
    if text.lower().startswith(_SCHEMES):
        parts = urlsplit(text)
        route = _route(parts, addresses)
        if route is None:
            return PastedSas(parts.query)
        try:
            url = parse(parts.path or "/", route.account, route.mount)
        except StorageError:
            return PastedSas(parts.query, route.service)
        return PastedSas(parts.query, route.service, url)
    for piece in text.split(";"):
        name, _, value = piece.partition("=")
        if name.strip().lower() == _OF_CONNECTION_STRING:
            return PastedSas(value.strip().lstrip("?"))
    return PastedSas(text.rpartition("?")[2])


def _route(parts: SplitResult, addresses: Addresses) -> _Route | None:
    """Return the service of an address; None if it names none. Raises ValueError."""
    host = parts.netloc.rpartition("@")[2]
    port = parts.port or _USUAL_PORTS.get(parts.scheme.lower(), 0)
    for service in Service:
        if addresses.ports.get(service.value) == port:
            return _Route(service, account_of_host(host, addresses.suffixes[service]), "")
    labels = (parts.hostname or "").split(".")
    if len(labels) > 2 and labels[1] in _BY_NAME:
        return _Route(_BY_NAME[labels[1]], labels[0], "")
    first, slash, _ = parts.path[1:].partition("/")
    mounted = _BY_NAME.get(first) if slash else None
    for service in Service if mounted is None else (mounted,):
        account = account_of_host(host, addresses.suffixes[service])
        if account is not None:
            return _Route(service, account, "" if mounted is None else f"/{first}")
    return None if mounted is None else _Route(mounted, None, f"/{first}")
