"""The console of `strongroom serve`, from its flags.

Lives here: when there is a console, and texts that cannot be its origin. Must not live here: the
flags (table.py), the console itself (servers/console/).
"""

from __future__ import annotations

from typing import Final

from strongroom.cli.flags.given import Values
from strongroom.config import (
    DEFAULT_CONSOLE_PORT,
    ConfigError,
    ConsoleSettings,
    is_loopback,
)
from strongroom.servers.console.origin import host_name, normal_origin

_PORTS: Final = ("blob-port", "queue-port", "table-port", "file-port", "one-port", "smb-port")
_OF_CONSOLE: Final = (
    "console-url",
    "console-operator",
    "console-oidc-client",
    "coordination-store",
)
_PORT_MAX: Final = 65_535


def console_settings(values: Values) -> ConsoleSettings | None:
    """Return the console; None = there is none. Raises: ConfigError."""
    port, wanted = values.one("console-port", int), values.one("console", bool)
    if wanted is False:
        _refuse_beside_none(values)
        return None
    is_asked_for = port is not None or bool(wanted)
    if not is_asked_for and not _is_by_default(values):
        _refuse_without(values)
        return None
    return ConsoleSettings(
        port=DEFAULT_CONSOLE_PORT if port is None else port,
        is_asked_for=is_asked_for,
        url=_origin(values.one("console-url", str)),
        idle_minutes=values.known("console-idle", int),
        operator=values.one("console-operator", str),
        oidc_client=values.one("console-oidc-client", str),
        coordination_stores=_stores(values),
        coordination_acts=values.known("coordination-acts", bool),
    )


def _stores(values: Values) -> tuple[str, ...]:
    """Return the further stores. Raises: ConfigError: one of them can never be opened."""
    texts = values.texts("coordination-store")
    if texts:
        from strongroom.console.store_sources import store_sources  # few name a store

        store_sources(texts)
    return texts


def _is_by_default(values: Values) -> bool:
    """Whether there is a console that nobody asked for: for people at a machine, not for tests."""
    ports = [values[name].value for name in _PORTS]
    return (
        is_loopback(values.known("host", str))
        and 0 not in ports
        and DEFAULT_CONSOLE_PORT not in ports
    )


def _refuse_beside_none(values: Values) -> None:
    """Refuse what needs the console beside --no-console. A flag may turn off what a file says."""
    off = values["console"].source
    given = [name for name in _OF_CONSOLE if values[name].is_set and values[name].source >= off]
    if given:
        raise ConfigError(f"--{given[0]} does nothing beside --no-console: leave one of them out")


def _refuse_without(values: Values) -> None:
    given = [name for name in _OF_CONSOLE if values[name].is_set]
    if given:
        raise ConfigError(
            f"--{given[0]} does nothing without a console: add --console or --console-port"
        )


def _origin(text: str | None) -> str | None:
    """Return the origin of a URL, as browsers write it. Raises: ConfigError."""
    if text is None:
        return None
    example = "like https://console.example.net"
    scheme, _, rest = text.partition("://")
    scheme, authority = scheme.lower(), rest.removesuffix("/").lower()
    name = host_name(authority)
    if scheme not in ("http", "https") or not name or not _has_port(authority):
        raise ConfigError(f"--console-url {text!r} must be an origin, {example}")
    if ":" in name:
        raise ConfigError(
            f"--console-url {text!r} is a bare IPv6 address, of which a browser cannot be told "
            f"which scripts may run: use a host name, {example}"
        )
    return normal_origin(f"{scheme}://{authority}")


def _has_port(authority: str) -> bool:
    """Whether the port is one, or is left out. `host_name` has seen that it is a number."""
    port = authority.rpartition("]")[2].partition(":")[2]
    return not port or 1 <= int(port) <= _PORT_MAX
