"""The ports of `strongroom serve`: one flag for all of them, and mistakes in them.

Lives here: which port each service gets from the flags. Must not live here: opening ports (app.py),
the defaults (table.py).
"""

from __future__ import annotations

from strongroom.cli.exits import Exit, fail
from strongroom.cli.flags.given import Given, Values, ValueSource

_SERVICES = ("blob", "queue", "table", "file")
_FLAGS = tuple(f"{service}-port" for service in _SERVICES)


def refuse_port(port: str) -> None:
    """End the command for `--port`, which names no service."""
    following = f"{port} to {int(port) + 3}" if port.isdigit() else "PORT and the next three"
    fail(
        Exit.USAGE,
        f"--port: there is a port for each service. --blob-port {port} sets that of blobs, "
        f"--port-base {port} sets {following} for all four, and --one-port {port} "
        "serves all of them at one",
    )


def with_base(values: Values) -> Values:
    """Return the values with the ports that --port-base gives. A port from the same or a higher
    source overrides it."""
    base = values["port-base"]
    if base.source is ValueSource.DEFAULT:
        return values
    first = values.known("port-base", int)
    ports = {
        name: _based(values[name], base, first and first + place)
        for place, name in enumerate(_FLAGS)
    }
    if first == 0:
        ports["smb-port"] = _based(values["smb-port"], base, 0)
    return Values({**values, **ports})


def _based(own: Given, base: Given, port: int) -> Given:
    if own.source is not ValueSource.DEFAULT and own.source >= base.source:
        return own
    return Given(port, base.source, base.label)


def refuse_twice(values: Values) -> None:
    """End the command if two services have one port; port 0 is a free one each time."""
    names = (*_FLAGS, "one-port", "console-port", *(("smb-port",) if values["smb"].value else ()))
    seen: dict[int, str] = {}
    for name in names:
        given, port = values[name], values.one(name, int)
        if port and port in seen:
            given.refuse(f"gives port {port}, and so does {seen[port]}: each needs its own")
        if port:
            seen[port] = given.label
