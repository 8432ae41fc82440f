"""`strongroom backup` and `strongroom restore`: copies of a data directory.

Lives here: flags and messages. Must not live here: one run of a backup (backups/made.py), copying
(engines/embedded/upkeep/backup.py).
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from strongroom.cli.backups.directories_only import BACKUPS, told
from strongroom.cli.exits import Exit, fail
from strongroom.cli.flags.url_as_directory import refuse_urls
from strongroom.cli.progress import progress_bar

if TYPE_CHECKING:
    from strongroom.cli.backups.made import BackupMade, BackupOrder

BACKUP_HELP = """
Copy a data directory, also while a server has it open.

The backup holds every write that was answered before the command began.
Accounts, their keys and roles are part of it with --with-accounts only; keep such a
backup as secret as the keys. The leftovers of an interrupted backup in
the target are replaced. If the target holds anything else, the command refuses and
changes nothing there.

Everything is verified: the records, and the checksums of all bodies, which are read
back from the copy. If anything is damaged, no backup is made, and the command ends
with 4. --no-verify copies without reading the bodies, for a backup that must be quick;
restore verifies them in any case.

With --keep N, the target is a folder. Each backup in it gets a name by its time, and
when a new one is complete, all but the newest N are deleted. Nothing is ever deleted
there but complete backups that --keep has made.

--incremental takes segments that have not changed from the newest backup in that
folder, or beside the target, as hard links. The new backup is a complete one: earlier
ones may be deleted.

The command ends with 0 when the backup is complete, with 4 when none was made, and
with 1 when it is complete but an old one could not be deleted.

Examples

  strongroom backup ./strongroom-data ./backups/monday
  strongroom backup ./strongroom-data ./backups/quick --no-verify
  strongroom backup ./strongroom-data ./backups/monday --with-accounts
  strongroom backup ./strongroom-data ./backups --keep 14 --incremental -q
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
_KEEP = "TARGET is a folder of backups: keep the newest N, and delete older ones."
_INCREMENTAL = "Take segments that have not changed from the newest earlier backup."
_QUIET = "Say nothing but what went wrong."
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
    keep: Annotated[int | None, typer.Option(metavar="N", min=1, help=_KEEP)] = None,
    incremental: Annotated[bool, typer.Option("--incremental", help=_INCREMENTAL)] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    *,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help=_QUIET)] = False,
    store: Annotated[str | None, told(BACKUPS)] = None,
) -> None:
    """Make a backup; say what it lacks."""
    from strongroom.cli.backups.made import BackupOrder, make_backup

    data, target = _data_and_target(directories)
    refuse_urls(BACKUPS, data, target)
    if incremental and no_verify:
        fail(Exit.USAGE, "--incremental verifies what it reuses: it does not go with --no-verify")
    order = BackupOrder(data, target, keep, incremental, with_accounts, not no_verify)
    with exit_on_data_errors(data), progress_bar("Copying", quiet or as_json) as progress:
        made = make_backup(order, progress)
    if as_json:
        typer.echo(json.dumps(dataclasses.asdict(made), indent=2))
    elif not quiet:
        for line in _told(made, order):
            typer.echo(line)
    for text in made.left:
        typer.echo(f"strongroom: {text}", err=True)
    if made.left:
        raise typer.Exit(Exit.REFUSED.value)


def _told(made: BackupMade, order: BackupOrder) -> Iterator[str]:
    """Yield what was done, and what the backup lacks."""
    yield f"{made.target} is a backup of {order.data}; strongroom restore makes use of it."
    if made.base is not None:
        yield f"{made.reused_bytes} bytes of its segments are those of {made.base}."
    elif order.incremental:
        yield "No earlier backup had anything of it, so everything was copied or linked."
    for path in made.removed:
        yield f"{path} is deleted."
    for path in made.unfinished:
        yield f"{path} was interrupted, and is no backup: delete it, unless it is being made now."
    yield from _private_files(order.data, order.with_accounts)


def _private_files(data: Path, with_accounts: bool) -> Iterator[str]:
    from strongroom.config import ACCOUNTS_FILE_NAME, ROLES_FILE_NAME

    for name, what in ((ACCOUNTS_FILE_NAME, "keys"), (ROLES_FILE_NAME, "roles")):
        file = data / name
        if file.exists() and with_accounts:
            yield f"The {what} of {file} are in it: keep it secret."
        elif file.exists():
            yield (
                f"The {what} in {file} are not in it: keep a copy of that file elsewhere, or use "
                "--with-accounts."
            )
        elif with_accounts and name == ACCOUNTS_FILE_NAME:
            yield (
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
    store: Annotated[str | None, told(BACKUPS)] = None,
) -> None:
    """Make a data directory from a backup; say what it lacks."""
    refuse_urls(BACKUPS, source, target)
    from strongroom.config import ACCOUNTS_FILE_NAME
    from strongroom.engines.embedded.upkeep.backup import restore as put_back

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

    from strongroom.cli.import_advice import explained
    from strongroom.engines.base import EngineError
    from strongroom.engines.embedded.disk.directory import RECORDS_NAME
    from strongroom.engines.embedded.records.checksummed_pages import reason

    try:
        yield
    except (EngineError, OSError) as error:
        fail(Exit.DATA, explained(error, directory))
    except apsw.Error as error:
        # The error says what is wrong, but does not name the file.
        fail(Exit.DATA, f"{directory / RECORDS_NAME} cannot be read: {reason(error)}")
