"""How a command ends: exit codes, and errors as one line without a traceback.

Lives here: the table of exit codes, as docs/operating.md shows it.
"""

from __future__ import annotations

import enum
from typing import NoReturn

import typer


class Exit(enum.IntEnum):
    """The meanings of the process's exit codes."""

    DONE = 0
    REFUSED = 1
    USAGE = 2
    SETTINGS = 3
    DATA = 4
    LISTEN = 5
    STORAGE = 6
    UNAVAILABLE = 69
    NOT_ACQUIRED = 75
    LOST = 76
    INTERRUPTED = 130


MEANINGS = {
    Exit.DONE: "done; for serve: stopped by SIGTERM or SIGINT, everything answered is kept",
    Exit.REFUSED: "refused, or doctor, status, check-store, sim or import-azurite found something "
    "wrong",
    Exit.USAGE: "wrong flags or arguments",
    Exit.SETTINGS: "settings that cannot be used: accounts, TLS, a key that everybody knows, too "
    "few open files",
    Exit.DATA: "a directory or database that cannot be used: in use, unknown format, foreign, "
    "damaged, full",
    Exit.LISTEN: "the address or port is taken, or this user may not listen on it",
    Exit.STORAGE: "the disk failed, memory ran out, or another gateway took over; mend the cause "
    "and restart",
    Exit.UNAVAILABLE: "the store where nodes meet, the server, or the database does not answer",
    Exit.NOT_ACQUIRED: "a lock, term, permit, gate or barrier was not obtained in time",
    Exit.LOST: "what was held is lost; the command that ran under it is dead",
    Exit.INTERRUPTED: "ended by Ctrl-C; serve: by a second one",
}
EXIT_CODES_HELP = "Exit codes\n\n" + "\n".join(
    f"  {code.value}  {meaning}" for code, meaning in MEANINGS.items()
)


def fail(code: Exit, message: str) -> NoReturn:
    """End the command with one line on standard error and an exit code."""
    typer.echo(f"strongroom: {message}", err=True)
    raise typer.Exit(code.value)
