"""`strongroom ids`, `gate`, `check-store`: the toolkit's recipes for the terminal.

Lives here: flags, and what is shown. Must not live here: the recipes (coordination/).
"""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Annotated

import typer

from strongroom.cli.coordination.hold import Quiet, Verbose, wait_option
from strongroom.cli.coordination.stores import (
    DEFAULT_STORE,
    AsJson,
    StoreUrl,
    client_of,
    json_of,
    point_to_console,
    print_json,
)
from strongroom.cli.coordination.waiting import describing_wait, gate_description, is_shown
from strongroom.cli.exits import Exit
from strongroom.cli.plain import plain

if TYPE_CHECKING:
    from strongroom.coordination.hints import Hints
    from strongroom.coordination.recipes.gate_core import GateView

_IDS_HELP = """
Unique ids: no two callers get the same one.

Examples

  strongroom ids orders take 5
  strongroom ids orders take 1 --json
"""
_GATE_HELP = """
A gate that many nodes wait at. When it is opened, all continue at once, and later
nodes do not wait.

Examples

  strongroom gate go-live wait --timeout 600 && ./start
  strongroom gate go-live open --payload '{"version": 7}'
  strongroom gate go-live wait --hints nats://app:secret@bus:4222
  strongroom gate go-live rearm
  strongroom gate go-live show
"""
_IDS_MAX = 2**40
_IDS_PART = 10_000
_NAME = typer.Argument(help="Any text.")
Name = Annotated[str, _NAME]
_HINTS = typer.Option(
    "--hints",
    envvar="STRONGROOM_HINTS",
    show_envvar=True,
    help="A message bus beside the store, which the opening is multicast on: nats://..., "
    "amqp://..., redis://..., postgres://..., etcd://..., servicebus://...",
)
HintsUrl = Annotated[str | None, _HINTS]

ids_app = typer.Typer(help=_IDS_HELP, no_args_is_help=True, rich_markup_mode="rich")
gate_app = typer.Typer(help=_GATE_HELP, no_args_is_help=True, rich_markup_mode="rich")


@ids_app.callback()
def _ids(context: typer.Context, name: Name) -> None:
    context.obj = name


@ids_app.command("take")
def take(
    context: typer.Context,
    count: Annotated[int, typer.Argument(help="The number of ids.", min=1, max=_IDS_MAX)] = 1,
    as_json: AsJson = False,
    store: StoreUrl = DEFAULT_STORE,
) -> None:
    """Reserve COUNT unique ids and print them, one a line. No id is ever printed twice.

    Ids that are reserved and not printed (after an interruption, say) are never used."""
    with client_of(store) as client:
        ids = client.ids(context.obj, batch=count)
        # All ids are reserved at once, but only a part of them is in memory at a time.
        parts = (ids.take(min(_IDS_PART, count - at)) for at in range(0, count, _IDS_PART))
        for number, part in enumerate(parts):
            if as_json:
                typer.echo(("[", ", ")[number > 0] + json.dumps(part)[1:-1], nl=False)
            else:
                typer.echo("\n".join(map(str, part)))
    if as_json:
        typer.echo("]")


@gate_app.callback()
def _gate(context: typer.Context, name: Name) -> None:
    context.obj = name


@gate_app.command("wait")
def wait(
    context: typer.Context,
    timeout: Annotated[float | None, wait_option("End after so long, with exit code 75")] = None,
    generation: Annotated[
        int | None, typer.Option(help="The generation to wait for (default: the current one).")
    ] = None,
    hints: HintsUrl = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    store: StoreUrl = DEFAULT_STORE,
) -> None:
    """Wait until the gate is open. Print its payload as JSON, if it has one."""
    with client_of(store) as client:
        if not quiet:
            point_to_console(client)
        gate = client.gate(context.obj, _hints(hints))
        with describing_wait(gate_description(gate, context.obj), is_shown(quiet, verbose)):
            payload = gate.wait(timeout, generation)
    if payload is not None:
        print_json(payload)


@gate_app.command("open")
def open_(
    context: typer.Context,
    payload: Annotated[str | None, typer.Option(help="JSON that the waiting nodes get.")] = None,
    hints: HintsUrl = None,
    as_json: AsJson = False,
    store: StoreUrl = DEFAULT_STORE,
) -> None:
    """Open the gate: waiting nodes continue, and later ones do not wait. An open gate stays as it
    is, with its payload."""
    given = json_of("--payload", payload)
    with client_of(store) as client:
        point_to_console(client, as_json)
        _show_gate(context.obj, client.gate(context.obj, _hints(hints)).open(given), as_json)


def _hints(url: str | None) -> Hints | None:
    """Return the message bus of a URL. Its warnings (that it is unreachable, say) go to stderr."""
    from strongroom.coordination.hints import multicast

    return None if url is None else multicast(url)


@gate_app.command("rearm")
def rearm(context: typer.Context, as_json: AsJson = False, store: StoreUrl = DEFAULT_STORE) -> None:
    """Close the gate again: begin the next generation. Nodes that wait from now on wait until it
    is opened. A closed gate stays as it is."""
    with client_of(store) as client:
        point_to_console(client, as_json)
        _show_gate(context.obj, client.gate(context.obj).rearm(), as_json)


@gate_app.command("show")
def show_gate(
    context: typer.Context, as_json: AsJson = False, store: StoreUrl = DEFAULT_STORE
) -> None:
    """Print whether the gate is open, its generation, its payload, and who changed it last."""
    with client_of(store) as client:
        point_to_console(client, as_json)
        _show_gate(context.obj, client.gate(context.obj).show(), as_json)


def _show_gate(name: str, view: GateView, as_json: bool) -> None:
    if as_json:
        print_json(dataclasses.asdict(view))
        return
    state = "open" if view.is_open else "closed"
    by = plain(f", by {view.who} at {view.since}") if view.who else ""
    payload = "" if view.payload is None else f", payload {json.dumps(view.payload)}"
    typer.echo(f"gate {name!r}: {state}, generation {view.generation}{by}{payload}")


CHECK_HELP = """
Say what a lock on a store is worth, and try the store.

Writes, reads, races and removes keys of its own below check/. Exit code 1: the
store does not do what it must.

Examples

  strongroom check-store
  strongroom check-store http://10.0.0.5:10000/devstoreaccount1/locks
  strongroom check-store "file:///var/lib/locks" --json
"""


def check_store(
    url: Annotated[str, typer.Argument(help="As for --store.", envvar="STRONGROOM_STORE")] = (
        DEFAULT_STORE
    ),
    as_json: AsJson = False,
) -> None:
    """Check a live store; end with 1 if it is not fit."""
    from strongroom.coordination.check import check

    with client_of(url) as client:
        promises = dataclasses.asdict(client.promises())
        findings = check(client)
    failed = [finding for finding in findings if not finding.passed]
    if as_json:
        rows = [dataclasses.asdict(finding) for finding in findings]
        print_json({"promises": promises, "findings": rows})
    else:
        for name, value in promises.items():
            for line in value if isinstance(value, tuple) else (value,):
                shown = ("no", "yes")[line] if isinstance(line, bool) else line
                typer.echo(f"{name.replace('_', ' '):<18}{shown}")
        for finding in findings:
            typer.echo(f"{'ok ' if finding.passed else 'BAD'} {finding.what}: {finding.found}")
    raise typer.Exit(Exit.REFUSED.value if failed else Exit.DONE.value)
