"""The database that keeps a store in place of a data directory: its settings, and what may be told.

Lives here: what the URL of a PostgreSQL says, without its password. Must not live here: connecting
(engines/postgres/), the flags (cli/flags/). Source: PostgreSQL's manual, section "Connection URIs".

libpq repeats parts of a URL that it cannot read in its errors. Such a part may belong to the
password. So such a URL is refused here, and no error repeats it.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, unquote

DEFAULT_CONNECTIONS: Final = 8
DEFAULT_SCHEMA: Final = "strongroom"
DEFAULT_KEEP_DROPPED_S: Final = 7 * 24 * 3600
_EXAMPLE: Final = "postgresql://strongroom@db1.example.net,db2.example.net/strongroom"
_URL: Final = re.compile(
    r"postgres(?:ql)?://(?:(?P<user>[^@/?]*)@)?(?P<hosts>[^/?@]*)"
    r"(?:/(?P<database>[^/?@]*))?(?:\?(?P<parameters>[^@]*))?"
)
_HOST: Final = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[^\[\]:]*)(?::\d*)?")
_BROKEN_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})|%00")
_SECRETS: Final = ("password", "sslpassword")


class UnusableUrl(ValueError):
    """A URL that names no database. The text says what is wrong, without any part of the URL."""


class StoreMode(Enum):
    """Which of a store's gateways serve: one at a time, or all of them."""

    ACTIVE_PASSIVE = "active-passive"
    ACTIVE_ACTIVE = "active-active"


class GatewayAddress(NamedTuple):
    """Where a gateway listens for the others; `port` 0 = a free one."""

    host: str
    port: int = 0


# No struct: its text must not show the password.
@dataclass(frozen=True, slots=True)
class DatabaseSettings:
    """A PostgreSQL that keeps the store.

    Attributes:
        url: of libpq's form; it may have a password.
        connections: how many connections one gateway has for requests.
        quota_bytes: new data is refused when the store takes so much; None = never.
        needs_standby: whether a database without synchronous standbys is refused.
        mode: which gateways serve the store, as this one would have it.
        schema: the schema that has the store's tables.
        gateway_address: where the other gateways reach this one; None = a default.
        file: the file that has the URL; None = it was given in another way.
        bodies: the URL of the folder that keeps long bodies; None = the database keeps them.
        keep_dropped_s: for how long bodies stay there that nothing refers to.
    """

    url: str = field(repr=False)
    connections: int = DEFAULT_CONNECTIONS
    quota_bytes: int | None = None
    schema: str = DEFAULT_SCHEMA
    needs_standby: bool = False
    mode: StoreMode = StoreMode.ACTIVE_PASSIVE
    gateway_address: GatewayAddress | None = None
    file: Path | None = None
    bodies: str | None = None
    keep_dropped_s: int = DEFAULT_KEEP_DROPPED_S

    @property
    def shown(self) -> str:
        """Where the store is, as people may see it."""
        return shown(self.url)

    @property
    def flags(self) -> str:
        """The flags by which commands name it, as people may see them. A URL with a password is
        left to be filled in."""
        if self.file is not None:
            words = ["--store-file", str(self.file.resolve())]
        else:
            words = ["--store", "URL" if has_password(self.url) else self.url]
        if self.schema != DEFAULT_SCHEMA:
            words += ["--store-schema", self.schema]
        return shlex.join(words)


def is_postgres(url: str) -> bool:
    """Return whether a URL names a PostgreSQL, rather than another kind of store."""
    return url.startswith(("postgresql://", "postgres://"))


def check_url(url: str) -> None:
    """Check that libpq reads the URL as it was meant. Raises: UnusableUrl."""
    if not is_postgres(url):
        raise UnusableUrl(f"it must be the URL of a PostgreSQL, like {_EXAMPLE}")
    if not url.isprintable() or " " in url:
        raise UnusableUrl("it has a blank or a control character: write %20 for a blank")
    if "#" in url:
        raise UnusableUrl("a # in it is no part of a name or a password: write %23 for it")
    if _BROKEN_ESCAPE.search(url):
        raise UnusableUrl("a % in it is no escape of a character: write %25 for a %")
    if _parts(url) is None:
        raise UnusableUrl(
            "it cannot be read; in user names and passwords write %40 for @, %2F for /, %3A for :, "
            f"%3F for ?. It must be like {_EXAMPLE}"
        )


def has_password(url: str) -> bool:
    """Return whether the URL itself has a secret, rather than a file that libpq reads."""
    found = _parts(url)
    if found is None:
        return True  # nothing is known of it
    password = (found["user"] or "").partition(":")[2]
    return bool(password) or any(name in _SECRETS for name, _ in _parameters(found))


def shown(url: str) -> str:
    """Return where a database is, without user and password: `PostgreSQL at db1,db2:5433/name`."""
    found = _parts(url)
    if found is None:
        return "PostgreSQL"
    parameters = dict(_parameters(found))
    hosts = unquote(found["hosts"]) or parameters.get("host", "")
    if not hosts:
        service = parameters.get("service")
        hosts = f"service {service}" if service else "the default host"
    database = unquote(found["database"] or "") or parameters.get("dbname", "")
    return f"PostgreSQL at {hosts}" + (f"/{database}" if database else "")


def _parts(url: str) -> re.Match[str] | None:
    found = _URL.fullmatch(url)
    is_known = found is not None and all(map(_HOST.fullmatch, found["hosts"].split(",")))
    return found if is_known else None


def _parameters(found: re.Match[str]) -> list[tuple[str, str]]:
    return parse_qsl(found["parameters"] or "", keep_blank_values=True)
