"""`strongroom lock` and `strongroom elect`: a command that runs only while something is held.

Lives here: flags, progress while waiting, the command's environment. Must not live here: how it is
held (coordination/recipes), how the command is ended in time (coordination/child.py).
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from strongroom.cli.exits import Exit, fail
from strongroom.cli.stores import DEFAULT_STORE, StoreUrl, client_of

if TYPE_CHECKING:
    from strongroom.coordination import Client, Held

LOCK_HELP = """
Run a command under a lock.

The command begins when the lock is held and is dead before anybody else can
hold it: it is asked to end (SIGTERM) shortly before the deadline, and killed
before it, also when this program itself is killed. It finds its fencing token in
STRONGROOM_FENCE and, by the monotonic clock, until when the lock is certainly
held in STRONGROOM_DEADLINE_MONOTONIC (of the moment when it began).

Exit codes: 75 the lock was not to be had, 76 it was lost, 69 the store does not
answer, else the command's own (128 + N when signal N ended it).

Examples

  strongroom lock nightly-report -- ./report.sh
  strongroom lock invoices --ttl 30 --wait 60 -- python invoices.py
  strongroom lock migrations --try -- ./migrate || echo "somebody else does it"
"""
ELECT_HELP = """
Run a command while this node is the leader.

As 'strongroom lock', for an election: whoever watches it (strongroom locks show
NAME --kind election) sees who leads. When the command ends this node resigns.

Examples

  strongroom elect scheduler -- ./scheduler
  strongroom elect scheduler --ttl 5 --value '{"url": "http://a:8000"}' -- ./scheduler
"""

Name = Annotated[str, typer.Argument(help="Of what is held; any text.")]
Command = Annotated[list[str], typer.Argument(help="The command and its arguments, behind --.")]
Ttl = Annotated[float, typer.Option(help="Seconds after which a dead holder is replaced.")]
Wait = Annotated[float | None, typer.Option(help="Wait at most so many seconds; else for ever.")]
Try = Annotated[bool, typer.Option("--try", help="Don't wait.")]
Fair = Annotated[bool, typer.Option("--fair", help="First come, first served.")]
Grace = Annotated[
    float | None,
    typer.Option(help="Seconds between SIGTERM and SIGKILL (default: ttl / 10)."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing while waiting.")]
Value = Annotated[str | None, typer.Option(help="JSON that is shown with the leader.")]

_TELL_AFTER_S = 1.0
_TELL_EVERY_S = 5.0


def lock(
    name: Name,
    command: Command,
    ttl: Ttl = 15.0,
    wait: Wait = None,
    no_wait: Try = False,
    fair: Fair = False,
    grace: Grace = None,
    quiet: Quiet = False,
    store: StoreUrl = DEFAULT_STORE,
) -> None:
    """See LOCK_HELP."""
    wait_s = _wait_s(wait, no_wait)
    with client_of(store) as client:
        wanted = client.lock(name, ttl=ttl, wait=wait_s, fair=fair, alert=True)
        with _told(client, name, "lock", quiet or no_wait), wanted as held:
            code = _run(held, command, ttl, grace)
    raise typer.Exit(code)


def elect(
    name: Name,
    command: Command,
    ttl: Ttl = 15.0,
    wait: Wait = None,
    no_wait: Try = False,
    grace: Grace = None,
    quiet: Quiet = False,
    value: Value = None,
    store: StoreUrl = DEFAULT_STORE,
) -> None:
    """See ELECT_HELP."""
    import json

    try:
        proclaimed = None if value is None else json.loads(value)
    except ValueError as error:
        fail(Exit.USAGE, f"--value is no JSON: {error}")
    wait_s = _wait_s(wait, no_wait)
    with client_of(store) as client:
        election = client.election(name, value=proclaimed, ttl=ttl, wait=wait_s)
        with _told(client, name, "election", quiet or no_wait), election.lead() as held:
            code = _run(held, command, ttl, grace)
    raise typer.Exit(code)


def _wait_s(wait: float | None, no_wait: bool) -> float | None:
    if no_wait and wait is not None:
        fail(Exit.USAGE, "--try does not go with --wait")
    return 0.0 if no_wait else wait


def _run(held: Held, command: list[str], ttl: float, grace: float | None) -> int:
    """The command's exit code, or 76."""
    from strongroom.coordination.child import Child, Margins
    from strongroom.coordination.clock import SystemClock

    own = {
        "STRONGROOM_LOCK": held.name,
        "STRONGROOM_FENCE": str(held.fence),
        "STRONGROOM_DEADLINE_MONOTONIC": repr(SystemClock().monotonic_s() + held.remaining()),
    }
    child = Child(command, held, Margins.of_ttl(ttl, grace), {**os.environ, **own})
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda sent, _: child.send_signal(sent))
    code = child.wait()
    if code == Exit.LOST and held.reason:
        typer.echo(f"strongroom: {held.name!r} is lost: {held.reason}", err=True)
    return code


@contextmanager
def _told(client: Client, name: str, kind: str, quiet: bool) -> Iterator[None]:
    """Tell on standard error, while it is waited for, who has it; ends with what follows."""
    done = threading.Event()
    if not quiet:
        thread = threading.Thread(target=_tell, args=(client, name, kind, done), daemon=True)
        thread.start()
    try:
        yield
    finally:
        done.set()


def _tell(client: Client, name: str, kind: str, done: threading.Event) -> None:
    from strongroom.coordination import CoordinationError

    wait_s = _TELL_AFTER_S
    while not done.wait(wait_s):
        wait_s = _TELL_EVERY_S
        if client.driver.holds():
            return
        try:
            view = client.show(name, kind)
        except CoordinationError as error:
            print(f"strongroom: waiting for {name!r}: {error}", file=sys.stderr)
            continue
        if view is None or not view.held:
            continue
        waiting = f"; {len(view.waiting)} in the queue" if view.waiting else ""
        print(
            f"strongroom: waiting for {name!r}: held by {view.who} since {view.since}, "
            f"fence {view.fence}{waiting}",
            file=sys.stderr,
        )
