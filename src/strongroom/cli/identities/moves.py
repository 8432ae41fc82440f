"""`strongroom account import` and `export`: accounts and roles between files and a database.

Lives here: what is added and what is left, and what is said of it. Must not live here: reading and
changing (files.py, database.py). Nothing that is there already is changed.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from strongroom.cli.counted import counted
from strongroom.cli.exits import Exit, fail
from strongroom.cli.identities.options import data_of, typed_database_of

if TYPE_CHECKING:
    from strongroom.auth.accounts import Account
    from strongroom.auth.roles import Assignments
    from strongroom.cli.identities.database import DatabasePlace
    from strongroom.cli.identities.files import FilesPlace

RolesFile = Annotated[
    Path | None, typer.Option("--roles-file", help="The roles (default: roles.json in --data).")
]


def import_(context: typer.Context, roles_file: RolesFile = None) -> None:
    """Put the accounts and roles of files into the PostgreSQL of serve --store.

    Accounts that it has keep their keys and switches there. The files stay as they are."""
    files, database = _places(context, roles_file)
    accounts, roles = files.accounts(), files.roles()
    if not accounts and not roles:
        fail(Exit.REFUSED, f"there is no account in {files.accounts_at}, nor a role beside it")
    for line in _add_accounts(database, accounts):
        typer.echo(line)
    if roles:
        added = _add_roles(database, roles)
        typer.echo(f"{counted(added, 'roles')} of {len(roles)} added to {database.roles_at}.")
    typer.echo(
        "The files stay, and gateways of that store do not read them. Keep them as secret copies, "
        "or delete them."
    )


def _add_accounts(database: DatabasePlace, accounts: tuple[Account, ...]) -> list[str]:
    """Return what was done with each account."""
    there: dict[str, Account] = {}

    def edit(found: tuple[Account, ...]) -> tuple[Account, ...]:
        there.clear()
        there.update((one.name, one) for one in found)
        return (*found, *(one for one in accounts if one.name not in there))

    database.change_accounts(edit)
    place = database.accounts_at
    lines = []
    for one in accounts:
        if one.name not in there:
            lines.append(f"Account {one.name} is in {place}.")
        elif there[one.name] == one:
            lines.append(f"Account {one.name} was in {place} already.")
        else:
            lines.append(
                f"Account {one.name} was in {place} already, with other keys or switches, which it "
                "keeps."
            )
    return lines


def _add_roles(database: DatabasePlace, roles: Assignments) -> int:
    """Return how many were added."""
    added: list[object] = []

    def edit(found: Assignments) -> Assignments:
        there = set(found)
        added[:] = missing = [one for one in dict.fromkeys(roles) if one not in there]
        return (*found, *missing)

    database.change_roles(edit)
    return len(added)


def export(context: typer.Context, roles_file: RolesFile = None) -> None:
    """Write the accounts and roles of the PostgreSQL of serve --store into files, with the keys.

    A file that exists is not replaced. Only its owner can read a new one."""
    files, database = _places(context, roles_file)
    for path in (files.accounts_file, files.roles_file):
        if path.exists():
            fail(Exit.REFUSED, f"{path} exists, and is not replaced")
    accounts, roles = database.accounts(), database.roles()
    if not accounts and not roles:
        fail(Exit.REFUSED, f"{database.accounts_at} has neither accounts nor roles")
    if accounts:
        files.change_accounts(lambda _: accounts)
        typer.echo(f"{files.accounts_at} has {counted(len(accounts), 'accounts')}. Keep it secret.")
    if roles:
        files.change_roles(lambda _: roles)
        typer.echo(f"{files.roles_at} has {counted(len(roles), 'roles')}.")


def _places(context: typer.Context, roles_file: Path | None) -> tuple[FilesPlace, DatabasePlace]:
    from strongroom.cli.identities.database import DatabasePlace
    from strongroom.cli.identities.files import FilesPlace

    data, accounts_file = data_of(context)
    return FilesPlace(data, accounts_file, roles_file), DatabasePlace(typed_database_of(context))
