"""`strongroom members`: the members of a group, their coming and going, and joining it.

Lives here: flags, and what is shown. Must not live here: the recipe (coordination/recipes).
"""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from strongroom.cli.coordination.hold import Command, Grace, Ttl, run_held, wait_option
from strongroom.cli.coordination.stores import (
    DEFAULT_STORE,
    AsJson,
    StoreUrl,
    client_of,
    json_of,
    json_text,
    print_json,
)
from strongroom.cli.plain import plain

if TYPE_CHECKING:
    from strongroom.coordination import Held, Member, Members

_HELP = """
The members of a group and their data; join it, and watch who joins and leaves.

Examples

  strongroom members workers join --data '{"zone": "b"}' -- ./worker
  strongroom members workers list
  strongroom members workers list --sure --json
  strongroom members workers watch
"""
_JOIN_HELP = """
Be a member while a command runs.

The command is ended when the membership is lost (the others take this node for
dead), as 'strongroom lock' does. It finds the group in STRONGROOM_GROUP and its
membership in STRONGROOM_MEMBER; a membership bars nobody and has no fence.

Exit codes: 76 the membership was lost, 69 the store does not answer, else the
command's own (128 + N when signal N ended it).

Examples

  strongroom members workers join -- ./worker
  strongroom members workers join --ttl 5 --data '{"zone": "b"}' -- ./worker
"""
_POLL_S = 0.5

members_app = typer.Typer(help=_HELP, no_args_is_help=True, rich_markup_mode="rich")


@members_app.callback()
def _members(
    context: typer.Context,
    group: Annotated[str, typer.Argument(help="Of the group; any text.")],
) -> None:
    context.obj = group


@members_app.command("list")
def list_(
    context: typer.Context,
    sure: Annotated[
        bool,
        typer.Option(help="Wait until every member is renewed or has expired: up to a TTL."),
    ] = False,
    as_json: AsJson = False,
    store: StoreUrl = DEFAULT_STORE,
) -> None:
    """Print the members of the group. Members that died within the last TTL may be among them:
    see --sure."""
    with client_of(store) as client:
        group = client.members(context.obj)
        members = _confirmed_members(group) if sure else group.list()
    if as_json:
        print_json([_facts(member) for member in members])
        return
    for member in members:
        typer.echo(_line(member))
    if not members:
        typer.echo(f"nobody is in {context.obj!r}")


def _confirmed_members(group: Members) -> tuple[Member, ...]:
    """Return the members that wrote after the first read, once the dead have expired."""
    first = {member.nonce: member.seq for member in group.list()}
    while True:
        members = group.list()
        if all(first.get(member.nonce) != member.seq for member in members):
            return members
        time.sleep(_POLL_S)


@members_app.command("watch")
def watch(
    context: typer.Context,
    timeout: Annotated[float | None, wait_option("End after so long without a change")] = None,
    every: Annotated[
        float, typer.Option(help="Seconds between two reads of the group.", min=0.01)
    ] = 1.0,
    as_json: AsJson = False,
    store: StoreUrl = DEFAULT_STORE,
) -> None:
    """Print the members, then every change, until it is interrupted. With --json, each is one line
    of JSON."""
    with client_of(store) as client:
        for change in client.members(context.obj).watch(timeout, every):
            if as_json:
                print_json({"what": change.what, "member": _facts(change.member)})
            else:
                typer.echo(f"{change.what:<8}{_line(change.member)}")


@members_app.command("join", help=_JOIN_HELP)
def join(
    context: typer.Context,
    command: Command,
    data: Annotated[str | None, typer.Option(help="JSON that the others see.")] = None,
    ttl: Ttl = 15.0,
    grace: Grace = None,
    store: StoreUrl = DEFAULT_STORE,
) -> None:
    """Run a command while this process is a member of the group."""
    published = json_of("--data", data)

    def variables(held: Held) -> dict[str, str]:
        return {"STRONGROOM_GROUP": held.name, "STRONGROOM_MEMBER": held.nonce}

    with client_of(store) as client:
        group = client.members(context.obj, ttl, alert=True)
        code = run_held(
            lambda: group.join(published), lambda: None, command, ttl, grace, False, variables
        )
    raise typer.Exit(code)


def _facts(member: Member) -> dict[str, Any]:
    return dataclasses.asdict(member)


def _line(member: Member) -> str:
    data = "" if member.data is None else f", {json_text(member.data)}"
    return plain(f"{member.who} since {member.since}{data}")
