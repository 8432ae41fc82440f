"""The texts of `--help` and `--version`.

Lives here: their layout. Must not live here: what flags there are (flags.py).
"""

from __future__ import annotations

import shutil
import textwrap
from typing import Final

from strongroom_azurite import __version__
from strongroom_azurite.commands import Command
from strongroom_azurite.flags import Flag, flags_of

_LEFT: Final = 34
_WIDTH_MAX: Final = 100
VERSION_NOTE: Final = (
    "that is the version of strongroom-azurite, which takes the place of Azurite's commands"
)


def help_text(command: Command) -> str:
    """Return the text of `--help`."""
    width = min(shutil.get_terminal_size((_WIDTH_MAX, 0)).columns, _WIDTH_MAX)
    rows = "\n".join(_row(flag, width) for flag in flags_of(command))
    services = ", ".join(service.title() for service in command.services)
    return (
        f"Usage: {command.name} [FLAGS]\n\n"
        f"Serve {services} with Azurite's flags and lines of output (strongroom-azurite "
        f"{__version__}).\n\n"
        f"{rows}\n\nExamples\n\n{_examples(command)}\n\n"
        "AZURITE_ACCOUNTS: accounts as NAME:KEY or NAME:KEY1:KEY2, with ; between them. Without\n"
        "it, devstoreaccount1 with its known key is served.\n"
        "Exit codes: 0 stopped by a signal; 2 wrong flags; 3 settings or a folder of Azurite; 4 "
        "a data\ndirectory that cannot be used; 5 a port that is taken; 6 the disk failed.\n"
    )


def _row(flag: Flag, width: int) -> str:
    letter = f"-{flag.short}, " if flag.short else "    "
    left = f"  {letter}--{flag.name} {flag.value}".rstrip()
    lines = textwrap.wrap(flag.help, max(width - _LEFT, 20))
    first = (
        f"{left:<{_LEFT}}{lines[0]}" if len(left) < _LEFT else f"{left}\n{'':<{_LEFT}}{lines[0]}"
    )
    return "\n".join([first, *(f"{'':<{_LEFT}}{line}" for line in lines[1:])])


def _examples(command: Command) -> str:
    service = command.services[0]
    return "\n".join(
        f"  {command.name} {flags}"
        for flags in (
            "--location ./data",
            f"--inMemoryPersistence --silent --{service}Port 0",
            f"--{service}Host 0.0.0.0 --cert cert.pem --key key.pem",
        )
    )
