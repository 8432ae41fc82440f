"""The database of `strongroom serve`, from its flags; its URL also for `strongroom store`.

Lives here: from where a URL comes, the refusal of a password that others can see, and the kinds of
values of these flags. Must not live here: the flags (table.py), what a URL says (the package's
database.py). No error repeats a URL.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from strongroom.cli.exits import Exit, fail
from strongroom.cli.flags.given import Values, ValueSource, exit_of
from strongroom.cli.flags.kinds import PORT_MAX, ValueKind, choice
from strongroom.database import (
    DEFAULT_KEEP_DROPPED_S,
    DatabaseSettings,
    GatewayAddress,
    StoreMode,
    UnusableUrl,
    check_url,
    has_password,
)
from strongroom.engines.bodies.urls import place_url
from strongroom.platform.files import rights_of_others

_BYTES_MAX: Final = 16 * 1024
_CONNECTIONS_MIN: Final = 2
_CONNECTIONS_MAX: Final = 500
_NAME: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_SIZE: Final = re.compile(r"([1-9][0-9]{0,5})(MiB|GiB|TiB)")
_DURATION: Final = re.compile(r"([0-9]{1,6})([dhms])")
_UNITS_S: Final = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_UNITS_BYTES: Final = {"MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


def _connections(text: str) -> int:
    is_number = text.isascii() and text.isdigit() and len(text) <= 9
    if not (is_number and _CONNECTIONS_MIN <= int(text) <= _CONNECTIONS_MAX):
        raise ValueError(f"give a number from {_CONNECTIONS_MIN} to {_CONNECTIONS_MAX}")
    return int(text)


def _schema(text: str) -> str:
    is_own = text.startswith("pg_") or text == "information_schema"
    if not _NAME.fullmatch(text) or is_own:
        raise ValueError(
            "give a name of lower-case letters, digits and _, of at most 63 characters, that does "
            "not begin with a digit or pg_, and is not information_schema"
        )
    return text


def _size_bytes(text: str) -> int:
    """Return the bytes of `500MiB`, `200GiB` or `2TiB`."""
    found = _SIZE.fullmatch(text)
    if found is None:
        raise ValueError("give a size such as 500MiB, 200GiB or 2TiB")
    return int(found[1]) * _UNITS_BYTES[found[2]]


def _gateway_address(text: str) -> GatewayAddress:
    host, colon, port = text.strip().rpartition(":")
    if not colon or "]" in port or (":" in host and not host.startswith("[")):
        host, port = text.strip(), "0"
    is_port = port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= PORT_MAX
    name = host.removeprefix("[").removesuffix("]")
    if not is_port or not name or any(char.isspace() or char == "/" for char in name):
        raise ValueError("give an address like 10.0.0.1 or gateway1.example.net:10100")
    if name in ("0.0.0.0", "::"):
        raise ValueError("give an address that another machine can connect to")
    return GatewayAddress(name, int(port))


def _seconds(text: str) -> int:
    """Return the seconds of `7d`, `36h`, `90m` or `30s`."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ValueError("give a time such as 7d, 36h or 90m")
    return int(found[1]) * _UNITS_S[found[2]]


BODIES: Final = ValueKind("URL", place_url)
KEEP: Final = ValueKind("TIME", _seconds)
CONNECTIONS: Final = ValueKind("N", _connections, int)
SCHEMA: Final = ValueKind("NAME", _schema)
GATEWAY_ADDRESS: Final = ValueKind("HOST[:PORT]", _gateway_address)
MODE: Final = choice(*(mode.value for mode in StoreMode))
SIZE: Final = ValueKind("SIZE", _size_bytes)


def database_settings(values: Values) -> DatabaseSettings | None:
    """Return the database; None = there is none. End the command if it cannot be used."""
    given, file = values["store"], values.path("store-file")
    if file is not None:
        url = url_of_file(file, values["store-file"].label)
    elif isinstance(given.value, str):
        url = checked_url(given.value, given.label, given.source)
    else:
        return None
    keep_s = values.one("keep-dropped", int)
    mode = StoreMode(values.known("store-mode", str))
    address = values["gateway-address"]
    if address.value is not None and mode is not StoreMode.ACTIVE_ACTIVE:
        fail(
            exit_of(address.source),
            f"{address.label} needs --store-mode {StoreMode.ACTIVE_ACTIVE.value}: only there do "
            "gateways talk to each other",
        )
    return DatabaseSettings(
        url,
        connections=values.known("store-connections", int),
        quota_bytes=values.one("store-quota", int),
        schema=values.known("store-schema", str),
        needs_standby=values.known("store-needs-standby", bool),
        bodies=values.one("bodies", str),
        keep_dropped_s=DEFAULT_KEEP_DROPPED_S if keep_s is None else keep_s,
        mode=mode,
        gateway_address=values.one("gateway-address", GatewayAddress),
        file=file,
    )


def checked_url(url: str, label: str, source: ValueSource) -> str:
    """Return a URL that can be used, or end the command. `label` is how an error names it."""
    try:
        check_url(url)
    except UnusableUrl as error:
        fail(exit_of(source), f"{label}: {error}")
    if source is ValueSource.COMMAND_LINE and has_password(url):
        fail(
            Exit.USAGE,
            f"{label} has a password, which every user of this machine can see in ps. Give the URL "
            "by STRONGROOM_STORE or --store-file, or put the password into the file of PGPASSFILE",
        )
    return url


def url_of_file(path: Path, label: str) -> str:
    """Return the URL that is the text of a file, or end the command."""
    try:
        with path.open("rb") as file:
            if "w" in rights_of_others(file.fileno()):
                fail(Exit.SETTINGS, f"other users may write {path}: chmod go-w {path}")
            text = file.read(_BYTES_MAX).decode()
    except OSError as error:
        fail(Exit.SETTINGS, f"{label} {path} cannot be read: {error.strerror}")
    except UnicodeDecodeError:
        fail(Exit.SETTINGS, f"{label} {path} is not UTF-8: is it the right file?")
    return checked_url(text.strip(), f"{label} {path}", ValueSource.FILE)
