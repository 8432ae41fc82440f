"""The ports of `strongroom serve`: one flag for all of them, and mistakes in them.

Lives here: which port each service gets from the flags. Must not live here: opening ports (app.py),
the defaults (config.py).
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated

import typer

from strongroom.cli.exits import Exit, fail

if TYPE_CHECKING:
    from strongroom.config import Settings

_PORT_BASE = (
    "Ports of all services: PORT for blobs, and the next three for queues, tables and files; 0 "
    "takes free ones. A flag of one service overrides it."
)
_SERVICES = ("blob", "queue", "table", "file")

PortBase = Annotated[int | None, typer.Option(metavar="PORT", help=_PORT_BASE, min=0, max=65532)]


def refuse_port(port: int | None) -> None:
    """End the command for `--port`, which names no service."""
    if port is not None:
        fail(
            Exit.USAGE,
            f"--port: there is a port for each service. --blob-port {port} sets that of blobs, "
            f"--port-base {port} sets {port} to {port + 3} for all four, and --one-port {port} "
            "serves all of them at one",
        )


Port = Annotated[int | None, typer.Option("--port", hidden=True, callback=refuse_port)]


def with_ports(context: typer.Context, settings: Settings, base: int | None) -> Settings:
    """Return the settings with the ports that the flags give. End the command if a port is given
    twice.

    Arguments:
        base: the value of --port-base; None = it is not given.
    """
    if base is not None:

        def port(place: int, present: int) -> int:
            is_given = _is_given(context, f"{_SERVICES[place]}_port")
            return present if is_given else base and base + place

        settings = dataclasses.replace(
            settings,
            blob_port=port(0, settings.blob_port),
            queue_port=port(1, settings.queue_port),
            table_port=port(2, settings.table_port),
            file_port=port(3, settings.file_port),
        )
        if base == 0 and settings.smb is not None and not _is_given(context, "smb_port"):
            settings = dataclasses.replace(settings, smb=dataclasses.replace(settings.smb, port=0))
    _refuse_twice(settings)
    return settings


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _refuse_twice(settings: Settings) -> None:
    ports = {f"--{service}-port": getattr(settings, f"{service}_port") for service in _SERVICES}
    ports["--one-port"] = settings.one_port
    if settings.smb is not None:
        ports["--smb-port"] = settings.smb.port
    seen: dict[int, str] = {}
    for flag, port in ports.items():
        if port and port in seen:
            fail(
                Exit.USAGE,
                f"port {port} is given twice, by {seen[port]} and {flag}: each needs its own",
            )
        if port:
            seen[port] = flag
