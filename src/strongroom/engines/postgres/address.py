"""The URL of a store in PostgreSQL: libpq's connection string, and what may be shown of it.

Lives here: the check of a URL, and its form without secrets. Source: PostgreSQL's manual,
"Connection Strings". No text of an error quotes the URL, since it may hold a password.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec
import psycopg
from psycopg import pq

from strongroom.engines.postgres.session import DEFAULTS, StoreRefused

_SCHEMES: Final = ("postgresql://", "postgres://")
_LEVEL: Final = re.compile(r"synchronous_commit\s*=\s*([a-z_]+)")


class Address(msgspec.Struct, frozen=True):
    """Where a store is.

    Attributes:
        shown: hosts and database, without the user and all secrets.
        demanded: the synchronous_commit that the URL sets.
    """

    shown: str
    demanded: str | None
    conninfo: bytes

    def __repr__(self) -> str:
        return f"Address({self.shown!r})"


def address_of(url: str) -> Address:
    """Raises: StoreRefused: the URL is none of PostgreSQL's."""
    if not url.startswith(_SCHEMES):
        raise StoreRefused("the URL of a store begins with postgresql://")
    try:
        options = pq.Conninfo.parse(url.encode())
    except psycopg.Error:
        raise StoreRefused(
            "the URL of the store cannot be read; its form is "
            "postgresql://USER:PASSWORD@HOST1,HOST2/DATABASE?PARAMETER=VALUE, and signs like @ in "
            "a password are written as %40"
        ) from None
    given = {one.keyword.decode(): one.val.decode() for one in options if one.val is not None}
    level = _LEVEL.search(given.get("options", ""))
    parameters = {**DEFAULTS, **given}
    conninfo = " ".join(f"{name}={_quoted(value)}" for name, value in parameters.items())
    return Address(_shown(given), None if level is None else level[1], conninfo.encode())


def _shown(given: dict[str, str]) -> str:
    hosts, ports = given.get("host", ""), given.get("port", "")
    where = given.get("service") or hosts or "the local socket"
    if ports and "," not in ports and "," not in hosts:
        where += f":{ports}"
    return f"{where}/{given.get('dbname', '')}".rstrip("/")


def _quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
