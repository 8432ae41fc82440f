"""`strongroom role`: the roles of users with bearer tokens, in a roles file or in a database.

Lives here: flags, and what is shown. Must not live here: where the roles are (identities/), what a
file or a row says and what roles permit (auth/roles.py).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from strongroom.cli.exits import Exit, fail
from strongroom.cli.identities.options import RolesCommand, place_of

if TYPE_CHECKING:
    from strongroom.auth.roles import Assignment, Assignments
    from strongroom.cli.identities.place import IdentityPlace

_HELP = """
Roles of users who send bearer tokens (OAuth).

A running server sees a change with the next request. With --store, --store-file or
STRONGROOM_STORE, the roles are those in the PostgreSQL of serve --store, and all
gateways of it see a change within a second. Roles have Azure's names and permit what
they permit there; strongroom role names lists them.

PRINCIPAL is the object id of a user, an application or a group, as the claims
oid (else sub) and groups of a token have it.

Examples

  strongroom role add "Storage Blob Data Reader" 5f0c... --account orders
  strongroom role add "Storage Blob Delegator" 5f0c... --account orders
  strongroom role add "Storage Blob Data Reader" 5f0c... --account orders \\
      --container photos
  strongroom role list --json
  strongroom role remove "Storage Blob Data Reader" 5f0c... --account orders
"""

app = typer.Typer(help=_HELP, no_args_is_help=True, rich_markup_mode="rich")

Role = Annotated[str, typer.Argument(help="One of Azure's roles, such as Storage Blob Data Owner.")]
Principal = Annotated[str, typer.Argument(help="The object id of a user or a group.")]
Account = Annotated[str, typer.Option("--account", help="The storage account.")]
Container = Annotated[str, typer.Option(help="In this container only (roles of blobs).")]
Queue = Annotated[str, typer.Option(help="In this queue only (roles of queues).")]
Table = Annotated[str, typer.Option(help="In this table only (roles of tables).")]
Share = Annotated[str, typer.Option(help="In this share of files only (roles of files).")]


@app.command("add", cls=RolesCommand)
def add(
    context: typer.Context,
    role: Role,
    principal: Principal,
    account: Account,
    container: Container = "",
    queue: Queue = "",
    *,
    table: Table = "",
    share: Share = "",
) -> None:
    """Give a user or a group a role in an account, or in one container, queue,
    table or share of it."""
    places = {"blob": container, "queue": queue, "table": table, "file": share}
    assignment = _assignment(role, principal, account, places)

    def edit(before: Assignments) -> Assignments:
        if assignment in before:
            fail(Exit.REFUSED, f"{_text(assignment)}: it is assigned already")
        return (*before, assignment)

    place = place_of(context)
    place.change_roles(edit)
    typer.echo(f"{_text(assignment)}: assigned in {place.roles_at}.")
    _note_unknown_account(account, place)


def _note_unknown_account(name: str, place: IdentityPlace) -> None:
    """Say that an account is not known here, as after a typing error. Another source may have
    it, so the role stays."""
    from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_NAME

    known = [one.name for one in place.accounts()] or [DEVELOPMENT_ACCOUNT_NAME]
    if name not in known:
        typer.echo(
            f"Note: {place.data_at} has no account {name!r} (there are: {', '.join(known)}), so "
            "the role counts only if the server gets that account from elsewhere.",
            err=True,
        )


@app.command("remove", cls=RolesCommand)
def remove(
    context: typer.Context,
    role: Role,
    principal: Principal,
    account: Account,
    container: Container = "",
    queue: Queue = "",
    *,
    table: Table = "",
    share: Share = "",
) -> None:
    """Take back what add gave, named by the same words."""
    places = {"blob": container, "queue": queue, "table": table, "file": share}
    assignment = _assignment(role, principal, account, places)

    def edit(before: Assignments) -> Assignments:
        if assignment not in before:
            fail(Exit.REFUSED, f"{_text(assignment)}: it is not assigned")
        return tuple(one for one in before if one != assignment)

    place = place_of(context)
    place.change_roles(edit)
    typer.echo(f"{_text(assignment)}: removed.{place.seen}")


@app.command("list", cls=RolesCommand)
def list_roles(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """List the role assignments of the file or the database."""
    place = place_of(context)
    assignments = place.roles()
    if as_json:
        typer.echo(json.dumps([_facts(one) for one in assignments], indent=2))
        return
    if not assignments:
        typer.echo(f"No roles in {place.roles_at}.")
    for one in assignments:
        typer.echo(_text(one))


@app.command("names")
def names() -> None:
    """List the roles that there are."""
    from strongroom.auth.roles import ROLES

    for name in ROLES:
        typer.echo(name)


def _assignment(role: str, principal: str, account: str, places: dict[str, str]) -> Assignment:
    from strongroom.auth.roles import ROLES, Assignment, RolesError

    named = {service: name for service, name in places.items() if name}
    if len(named) > 1:
        fail(Exit.USAGE, "name one of --container, --queue, --table and --share")
    try:
        made = Assignment(principal, role, account, next(iter(named.values()), ""))
    except RolesError as error:
        fail(Exit.USAGE, str(error))
    services = {one.value for one in ROLES[role].services}
    if named and services != set(named):
        fail(Exit.USAGE, f"{role!r} is a role of the services {', '.join(sorted(services))} only")
    return made


def _text(one: Assignment) -> str:
    where = f"{one.account}/{one.resource}" if one.resource else one.account
    return f"{one.role}  {one.principal}  {where}"


def _facts(one: Assignment) -> dict[str, str]:
    return {
        "principal": one.principal,
        "role": one.role,
        "account": one.account,
        "resource": one.resource,
    }
