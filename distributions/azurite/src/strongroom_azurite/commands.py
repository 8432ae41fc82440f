"""The four commands, and the services that each of them opens.

Lives here: names and default ports. Must not live here: flags (flags.py), lines (lines.py). Source:
Azurite's README, "Getting Started" and "Listening host / port configuration".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Service = Literal["blob", "queue", "table", "file"]

DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORTS: Final[dict[Service, int]] = {
    "blob": 10000,
    "queue": 10001,
    "table": 10002,
    "file": 10003,
}


@dataclass(frozen=True, slots=True)
class Command:
    """A command by its name, and the services that it always opens, in the order of its lines."""

    name: str
    services: tuple[Service, ...]

    @property
    def serves_one(self) -> bool:
        """Whether it is a command of a single service, whose lines have other words."""
        return len(self.services) == 1


AZURITE: Final = Command("azurite", ("blob", "queue", "table"))
AZURITE_BLOB: Final = Command("azurite-blob", ("blob",))
AZURITE_QUEUE: Final = Command("azurite-queue", ("queue",))
AZURITE_TABLE: Final = Command("azurite-table", ("table",))
COMMANDS: Final = (AZURITE, AZURITE_BLOB, AZURITE_QUEUE, AZURITE_TABLE)
