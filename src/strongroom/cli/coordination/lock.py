"""`strongroom lock` and `strongroom elect`: a command that runs at one place at a time.

Lives here: flags and help. Must not live here: waiting and running (hold.py).
"""

from __future__ import annotations

from typing import Annotated

import typer

from strongroom.cli.coordination.hold import (
    EXIT_CODES,
    Command,
    Fair,
    Grace,
    Name,
    Quiet,
    Try,
    Ttl,
    Verbose,
    Wait,
    run_held,
    wait_s_of,
)
from strongroom.cli.coordination.stores import DEFAULT_STORE, StoreUrl, client_of, json_of
from strongroom.cli.coordination.waiting import is_shown, lock_description

LOCK_HELP = f"""
Run a command under a lock.

The command starts when the lock is held, and ends before anybody else can hold it.
If the hold is lost, it is asked to end (SIGTERM) shortly before the deadline, and
killed before it. That holds even if this program itself is killed.

STRONGROOM_FENCE has the fencing token. STRONGROOM_DEADLINE_MONOTONIC has the time, by
the monotonic clock, until which the lock was certain when the command began.

While it waits at a terminal, it prints who holds the lock, since when, and with
--fair the place in the queue.

{EXIT_CODES.format(name="the lock")}

Examples

  strongroom lock nightly-report -- ./report.sh
  strongroom lock invoices --ttl 30 --wait 60 -- python invoices.py
  strongroom lock migrations --try -- ./migrate || echo "not now"
"""
ELECT_HELP = f"""
Run a command while this node is the leader.

It works as 'strongroom lock' does, for an election. strongroom locks show NAME --kind
election shows who leads. When the command ends, this node resigns.

{EXIT_CODES.format(name="the leadership")}

Examples

  strongroom elect scheduler -- ./scheduler
  strongroom elect scheduler --value '{{"url": "http://a:8000"}}' -- ./scheduler
"""

Value = Annotated[str | None, typer.Option(help="JSON that is shown with the leader.")]


def lock(
    name: Name,
    command: Command,
    ttl: Ttl = 15.0,
    wait: Wait = None,
    no_wait: Try = False,
    fair: Fair = False,
    grace: Grace = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    store: StoreUrl = DEFAULT_STORE,
) -> None:
    """Run a command while this process holds a lock."""
    wait_s = wait_s_of(wait, no_wait)
    with client_of(store) as client:
        wanted = client.lock(name, ttl=ttl, wait=wait_s, fair=fair, alert=True)
        description = lock_description(client, name, "lock")
        code = run_held(wanted.acquire, description, command, ttl, grace, is_shown(quiet, verbose))
    raise typer.Exit(code)


def elect(
    name: Name,
    command: Command,
    ttl: Ttl = 15.0,
    wait: Wait = None,
    no_wait: Try = False,
    fair: Fair = False,
    grace: Grace = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    value: Value = None,
    store: StoreUrl = DEFAULT_STORE,
) -> None:
    """Run a command while this process leads."""
    wait_s = wait_s_of(wait, no_wait)
    proclaimed = json_of("--value", value)
    with client_of(store) as client:
        wanted = client.election(name, proclaimed, ttl, wait_s, fair=fair, alert=True)
        description = lock_description(client, name, "election")
        code = run_held(wanted.campaign, description, command, ttl, grace, is_shown(quiet, verbose))
    raise typer.Exit(code)
