"""The flag `--store` of commands that know data directories only: another tool does their work.

Lives here: the flag, which ends the command with a sentence. Must not live here: what each command
says (the commands).
"""

from __future__ import annotations

from typing import Any

import typer

from strongroom.cli.exits import Exit, fail

BACKUPS = (
    "a store in PostgreSQL is backed up and restored by PostgreSQL's own means, such as "
    "pg_basebackup: docs/operators/postgresql.md, section Backups"
)
UPGRADES = (
    "the tables of a store in PostgreSQL are brought to a new version by strongroom store migrate: "
    "docs/operators/postgresql.md"
)
IMPORTS = (
    "import into a new data directory, and copy that to PostgreSQL by strongroom store copy: "
    "docs/operators/copying.md"
)


def told(text: str) -> Any:
    """Return an option for `--store` and `--store-file` that ends the command with a text."""

    def end(given: str | None) -> None:
        if given is not None:
            fail(Exit.USAGE, text)

    return typer.Option(
        "--store",
        "--store-file",
        metavar="URL",
        help="Says which tool does this for a store in PostgreSQL.",
        is_eager=True,
        callback=end,
    )
