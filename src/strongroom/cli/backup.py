"""`strongroom backup` and `strongroom restore`: copies of a data directory.

Lives here: flags and messages. Must not live here: copying (engines/embedded/backup.py).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from strongroom.cli.exits import Exit, fail
from strongroom.cli.progress import progress_bar

BACKUP_HELP = """
Copy a data directory, also while a server has it open.

The backup holds every write that was answered before the command began.
Accounts, their keys and roles are part of it with --with-accounts only; keep such a
backup as secret as the keys. The leftovers of an interrupted backup in
the target are replaced. If the target holds anything else, the command refuses and
changes nothing there.

Everything is verified: the records, and the checksums of all bodies. If anything is
damaged, no backup is made, and the command ends with 4. --no-verify copies without
reading the bodies, for a backup that must be quick; restore verifies them in any case.

Examples

  strongroom backup ./strongroom-data ./backups/monday
  strongroom backup ./strongroom-data ./backups/quick --no-verify
  strongroom backup ./strongroom-data ./backups/monday --with-accounts
"""
RESTORE_HELP = """
Make a new data directory from a backup, which stays as it is.

The copy is checked before it can be used. A backup that was interrupted, or has been
damaged since, is refused. Accounts and roles come back if the backup has them.

Examples

  strongroom restore ./backups/monday ./strongroom-data
"""

_NO_VERIFY = "Copy without verifying the bodies: quicker."
_WITH_ACCOUNTS = "Copy accounts.json (with the keys) and roles.json too."
_ACCEPT = "Restore a damaged backup all the same, with the damage."


def backup(
    directories: Annotated[
        list[Path],
        typer.Argument(
            metavar="[DATA] TARGET",
            help="The data directory (default: STRONGROOM_DATA), and a new or empty directory.",
        ),
    ],
    no_verify: Annotated[bool, typer.Option("--no-verify", help=_NO_VERIFY)] = False,
    with_accounts: Annotated[bool, typer.Option("--with-accounts", help=_WITH_ACCOUNTS)] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing.")] = False,
) -> None:
    """Make a backup; say what it lacks."""
    from strongroom.config import ACCOUNTS_FILE_NAME, ROLES_FILE_NAME
    from strongroom.engines.embedded.backup import backup as back_up

    data, target = _data_and_target(directories)
    with exit_on_data_errors(data), progress_bar("Copying", quiet) as progress:
        back_up(data, target, progress, with_accounts, verify=not no_verify)
    if quiet:
        return
    typer.echo(f"{target} is a backup of {data}; strongroom restore makes use of it.")
    for name, what in ((ACCOUNTS_FILE_NAME, "keys"), (ROLES_FILE_NAME, "roles")):
        file = data / name
        if file.exists() and with_accounts:
            typer.echo(f"The {what} of {file} are in it: keep it secret.")
        elif file.exists():
            typer.echo(
                f"The {what} in {file} are not in it: keep a copy of that file elsewhere, or use "
                "--with-accounts."
            )
        elif with_accounts and name == ACCOUNTS_FILE_NAME:
            typer.echo(
                f"There is no {file}, so no keys are in it. If the server gets its accounts from "
                "another place, keep a copy of them elsewhere."
            )


def _data_and_target(directories: list[Path]) -> tuple[Path, Path]:
    """Return the data directory and the target; the former may come from the environment."""
    given = os.environ.get("STRONGROOM_DATA", "")
    if len(directories) == 1 and given:
        return Path(given), directories[0]
    if len(directories) != 2:
        fail(
            Exit.USAGE,
            "give the data directory and a target: strongroom backup DATA TARGET; STRONGROOM_DATA"
            " can name the former",
        )
    return directories[0], directories[1]


def restore(
    source: Annotated[Path, typer.Argument(metavar="BACKUP", help="The backup.")],
    target: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="A new or empty directory.", envvar="STRONGROOM_DATA"),
    ],
    accept_damage: Annotated[bool, typer.Option("--accept-damage", help=_ACCEPT)] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing.")] = False,
) -> None:
    """Make a data directory from a backup; say what it lacks."""
    from strongroom.config import ACCOUNTS_FILE_NAME
    from strongroom.engines.embedded.backup import restore as put_back

    with exit_on_data_errors(source), progress_bar("Restoring", quiet) as progress:
        put_back(source, target, progress, accept_damage)
    if not quiet:
        typer.echo(f"{target} is ready: strongroom serve --data {target}")
        if not (target / ACCOUNTS_FILE_NAME).exists():
            typer.echo(
                f"The backup has no accounts. Put your copy of {ACCOUNTS_FILE_NAME} into {target} "
                "first, if accounts of your own were served."
            )


@contextmanager
def exit_on_data_errors(directory: Path) -> Iterator[None]:
    """End the command with exit code 4 if a data directory or backup cannot be used."""
    import apsw

    from strongroom.cli.imports.advice import explained
    from strongroom.engines.base import EngineError
    from strongroom.engines.embedded.directory import RECORDS_NAME
    from strongroom.engines.embedded.records.checksummed_pages import reason

    try:
        yield
    except (EngineError, OSError) as error:
        fail(Exit.DATA, explained(error, directory))
    except apsw.Error as error:
        # The error says what is wrong, but does not name the file.
        fail(Exit.DATA, f"{directory / RECORDS_NAME} cannot be read: {reason(error)}")
