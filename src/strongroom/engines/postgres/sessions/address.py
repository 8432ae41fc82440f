"""The URL of a store in PostgreSQL: libpq's connection string, and what may be shown of it.

Lives here: the check of a URL, and its form without secrets. Source: PostgreSQL's manual,
"Connection Strings". No text of an error quotes the URL, since it may hold a password.
"""

from __future__ import annotations

import asyncio
import re
import socket
from typing import Final

import msgspec
import psycopg
from psycopg import pq

from strongroom.engines.postgres.sessions.session import DEFAULTS, DatabaseUnfit

_SCHEMES: Final = ("postgresql://", "postgres://")
_TIMEOUT_S: Final = 3.0
_HOST_PARAMETERS: Final = ("host", "hostaddr", "port")
_LEVEL: Final = re.compile(r"synchronous_commit\s*=\s*(off|local|remote_write|on|remote_apply)\b")


class DatabaseAddress(msgspec.Struct, frozen=True):
    """Where a store is.

    Attributes:
        shown: hosts and database, without the user and all secrets.
        demanded: the synchronous_commit that the URL sets.
        hosts: the parameters of libpq for each host.
        timeout_s: for a connection to one of them.
    """

    shown: str
    demanded: str | None
    hosts: tuple[dict[str, str], ...]
    timeout_s: float

    def __repr__(self) -> str:
        return f"Address({self.shown!r})"


def address_of(url: str) -> DatabaseAddress:
    """Raises: DatabaseUnfit: the URL is none of PostgreSQL's."""
    if not url.startswith(_SCHEMES):
        raise DatabaseUnfit("the URL of a store begins with postgresql://")
    try:
        given = _values(pq.Conninfo.parse(url.encode()))
    except (psycopg.Error, UnicodeDecodeError):
        raise DatabaseUnfit(
            "the URL of the store cannot be read; its form is "
            "postgresql://USER:PASSWORD@HOST1,HOST2/DATABASE?PARAMETER=VALUE, and signs like @ in "
            "a password are written as %40"
        ) from None
    if not {"host", "hostaddr", "service"} & given.keys():
        given = {**_hosts_of_environment(), **given}
    level = _LEVEL.search(given.get("options", ""))
    parameters = {**DEFAULTS, **given}
    hosts = tuple({**parameters, **one} for one in _single_hosts(given))
    timeout = parameters["connect_timeout"]
    timeout_s = float(timeout) if timeout.isdigit() and int(timeout) > 0 else _TIMEOUT_S
    return DatabaseAddress(_shown(given), None if level is None else level[1], hosts, timeout_s)


def _hosts_of_environment() -> dict[str, str]:
    """PGHOST may name several hosts, too."""
    found = _values(pq.Conninfo.get_defaults())
    return {name: found[name] for name in _HOST_PARAMETERS if name in found}


def _values(options: list[pq.ConninfoOption]) -> dict[str, str]:
    return {one.keyword.decode(): one.val.decode() for one in options if one.val is not None}


def _single_hosts(given: dict[str, str]) -> list[dict[str, str]]:
    """The parameters host, hostaddr and port for each host of their lists."""
    lists = {name: given[name].split(",") for name in _HOST_PARAMETERS if name in given}
    count = max((len(one) for name, one in lists.items() if name != "port"), default=1)
    # One port is that of all hosts.
    return [
        {name: one[at] if len(one) > 1 else one[0] for name, one in lists.items()}
        for at in range(count)
    ]


async def addresses_of(parameters: dict[str, str], timeout_s: float) -> list[bytes]:
    """Return libpq's connection string for each address of a host, none if it has no address now.

    libpq itself would look the name up while the event loop stands still.
    """
    host = parameters.get("host", "")
    if not host or host.startswith(("/", "@")) or "hostaddr" in parameters:
        return [_conninfo(parameters)]
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(timeout_s):
            found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, TimeoutError):
        return []
    addresses = dict.fromkeys(str(address[0]) for *_, address in found)
    return [_conninfo({**parameters, "hostaddr": one}) for one in addresses]


def _conninfo(parameters: dict[str, str]) -> bytes:
    return " ".join(f"{name}={_quoted(value)}" for name, value in parameters.items()).encode()


def _shown(given: dict[str, str]) -> str:
    hosts, ports = given.get("host", ""), given.get("port", "")
    where = given.get("service") or hosts or "the local socket"
    if ports and "," not in ports and "," not in hosts:
        where += f":{ports}"
    return f"{where}/{given.get('dbname', '')}".rstrip("/")


def _quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
