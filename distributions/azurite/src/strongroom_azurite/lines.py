"""The lines on standard output, word for word as Azurite prints them.

Lives here: the texts, and how they are written. Must not live here: when they are printed
(serving.py). Programs wait for these lines, so no other line goes to standard output. Source:
Azurite's own output, version 3.35; the words differ between `azurite` and the single commands.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass

from strongroom_azurite.commands import Command, Service

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Address:
    """Where a service listens: scheme, host and port."""

    scheme: str
    host: str
    port: int

    @property
    def authority(self) -> str:
        """Return `HOST:PORT`, with brackets around an IPv6 address."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """Return the URL without a path."""
        return f"{self.scheme}://{self.authority}"


def in_memory(limit_bytes: int, total_bytes: int) -> str:
    """Return the line about the limit of memory, which comes before all others."""
    percent = round(100 * limit_bytes / total_bytes)
    return (
        f"In-memory extent storage is enabled with a limit of {limit_bytes / _MIB:.2f} MB "
        f"({limit_bytes} bytes, {percent}% of total memory)."
    )


def starting(command: Command, service: Service, address: Address) -> str:
    """Return the line before a service listens."""
    where = f"on {address.authority}" if command.serves_one else f"at {address.url}"
    return f"Azurite {service.title()} service is starting {where}"


def listening(command: Command, service: Service, address: Address) -> str:
    """Return the line as soon as a service listens."""
    name = f"Azurite {service.title()} service"
    if not command.serves_one:
        return f"{name} is successfully listening at {address.url}"
    if service == "table":
        return f"{name} successfully started on {address.authority}"
    return f"{name} successfully listens on {address.url}"


def closing(service: Service) -> str:
    """Return the line when a service begins to stop."""
    return f"Azurite {service.title()} service is closing..."


def closed(service: Service) -> str:
    """Return the line when a service has stopped."""
    return f"Azurite {service.title()} service successfully closed"


def write_lines(lines: Iterable[str]) -> None:
    """Write lines, and flush each: programs wait for single lines in a pipe.

    A reader that has gone away ends the lines, not the server.
    """
    try:
        for line in lines:
            print(line, flush=True)
    except OSError:
        # Python flushes once more at its end, and must find somebody who takes the rest.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
