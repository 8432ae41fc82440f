"""The commands' entry points: arguments and environment in, exit code out.

Lives here: what is read from the process. Must not live here: what it means (plan.py). `--version`
and `--help` are answered before the server's modules are loaded, since programs ask for them with a
time limit.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from strongroom_azurite import __version__
from strongroom_azurite.command_line import Given, UsageError, parse
from strongroom_azurite.commands import (
    AZURITE,
    AZURITE_BLOB,
    AZURITE_QUEUE,
    AZURITE_TABLE,
    Command,
)
from strongroom_azurite.help import VERSION_NOTE, help_text

# As strongroom.cli.exits has them, whose import would delay --version.
_USAGE: Final = 2
_INTERRUPTED: Final = 130
_UNKNOWN_MEMORY_BYTES: Final = 4 * 1024**3
# What Azurite reads beside AZURITE_ACCOUNTS.
_IGNORED: Final = ("AZURITE_DB", "AZURITE_SKIP_API_VERSION_CHECK")


def azurite() -> None:
    """Run `azurite`: Blob, Queue and Table."""
    sys.exit(run(AZURITE, sys.argv[1:], os.environ))


def azurite_blob() -> None:
    """Run `azurite-blob`."""
    sys.exit(run(AZURITE_BLOB, sys.argv[1:], os.environ))


def azurite_queue() -> None:
    """Run `azurite-queue`."""
    sys.exit(run(AZURITE_QUEUE, sys.argv[1:], os.environ))


def azurite_table() -> None:
    """Run `azurite-table`."""
    sys.exit(run(AZURITE_TABLE, sys.argv[1:], os.environ))


def run(command: Command, arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a command to its end; return the exit code."""
    try:
        given = parse(command, arguments)
        if given.has("version") or given.words[:1] == ("version",):
            print(__version__, flush=True)
            print(f"{command.name}: {VERSION_NOTE}", file=sys.stderr)
            return 0
        if given.has("help") or given.words[:1] == ("help",):
            print(help_text(command), end="", flush=True)
            return 0
        return _serve(command, given, environment)
    except UsageError as error:
        print(f"{command.name}: {error}. {command.name} --help lists all flags.", file=sys.stderr)
        return _USAGE
    except KeyboardInterrupt:  # before the server has its own way to end
        return _INTERRUPTED


def _serve(command: Command, given: Given, environment: Mapping[str, str]) -> int:
    from strongroom_azurite import accounts, plan
    from strongroom_azurite.serving import serve

    surroundings = plan.Environment(
        here=Path.cwd(),
        memory_bytes=_memory_bytes(),
        accounts=accounts.read_accounts(environment.get(accounts.VARIABLE, "")),
        ignored=tuple(name for name in _IGNORED if environment.get(name)),
    )
    return serve(command, plan.plan(command, given, surroundings), surroundings.memory_bytes)


def _memory_bytes() -> int:
    """Return the size of the machine's memory; a guess where Python cannot tell it."""
    if sys.platform == "win32":
        return _UNKNOWN_MEMORY_BYTES
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
