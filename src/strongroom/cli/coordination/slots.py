"""`strongroom sem`, `rwlock`, `barrier`: the recipes with several holders or parties at once.

Lives here: flags, help, what a barrier prints. Must not live here: waiting and running (hold.py).
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Annotated

import typer

from strongroom.cli.coordination.hold import (
    DURATION,
    EXIT_CODES,
    Command,
    Grace,
    Name,
    Quiet,
    Try,
    Ttl,
    Verbose,
    Wait,
    exit_on_signals,
    run_held,
    wait_s_of,
)
from strongroom.cli.coordination.stores import (
    DEFAULT_STORE,
    AsJson,
    StoreUrl,
    client_of,
    print_json,
)
from strongroom.cli.coordination.waiting import (
    Describe,
    describing_wait,
    is_shown,
    labels_since,
    slots_description,
)
from strongroom.cli.durations import seconds
from strongroom.cli.exits import Exit, fail

if TYPE_CHECKING:
    from strongroom.coordination import Barrier

SEM_HELP = f"""
Run a command while holding one of so many permits.

At most --permits commands of a name run at once, over all nodes. Every node must give
the same number. It can change while nobody holds a permit (exit code 3 otherwise).

As with 'strongroom lock', the command ends before somebody else can get its permit. It
has STRONGROOM_FENCE and STRONGROOM_DEADLINE_MONOTONIC. Every holder has a fence of its
own, greater than those before it.

{EXIT_CODES.format(name="a permit")}

Examples

  strongroom sem gpu --permits 4 -- ./train.sh
  strongroom sem downloads --permits 2 --try -- ./fetch || echo "not now"
"""
RWLOCK_HELP = f"""
Run a command among the readers of something, or as its only writer.

Any number of readers run at once, or one writer alone. A writer who waits keeps
new readers out. As with 'strongroom lock', the command ends before somebody else can
get its place. STRONGROOM_FENCE is a writer's own fence. For a reader, it is the fence
of the last writer, whose work it sees.

{EXIT_CODES.format(name="the lock")}

Examples

  strongroom rwlock config read -- ./serve-once
  strongroom rwlock config write --wait 60 -- ./change-config
"""
BARRIER_HELP = """
Wait until so many are there; then all go on.

Prints the place in the order of arrival, from 0: the one with 0 may do what is
to be done once. A barrier serves again and again: who comes after the others
have gone waits for the next round.

Exit codes: 75 not all came in time (the place is free again), 76 they went on
without this one, which had been away for longer than --ttl, 69 the store does
not answer, 3 the others count another number of parties.

Examples

  strongroom barrier phase-1 --parties 16 && ./phase-2
  strongroom barrier phase-1 --parties 16 --wait 600 --json
"""


class Side(enum.StrEnum):
    READ = "read"
    WRITE = "write"


def sem(
    name: Name,
    command: Command,
    permits: Annotated[int, typer.Option(help="How many may run at once, over all nodes.", min=1)],
    ttl: Ttl = 15.0,
    wait: Wait = None,
    no_wait: Try = False,
    grace: Grace = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    store: StoreUrl = DEFAULT_STORE,
) -> None:
    """Run a command while this process holds a permit."""
    wait_s = wait_s_of(wait, no_wait)
    with client_of(store) as client:
        wanted = client.semaphore(name, permits, ttl, wait_s, alert=True)
        description = slots_description(client, name, "semaphore")
        code = run_held(wanted.acquire, description, command, ttl, grace, is_shown(quiet, verbose))
    raise typer.Exit(code)


def rwlock(
    name: Name,
    side: Annotated[Side, typer.Argument(help="read: beside other readers; write: alone.")],
    command: Command,
    ttl: Ttl = 15.0,
    wait: Wait = None,
    no_wait: Try = False,
    grace: Grace = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    store: StoreUrl = DEFAULT_STORE,
) -> None:
    """Run a command while this process holds a lock for readers or a writer."""
    wait_s = wait_s_of(wait, no_wait)
    with client_of(store) as client:
        both = client.rwlock(name, ttl, wait_s, alert=True)
        wanted = both.read() if side is Side.READ else both.write()
        description = slots_description(client, name, "rwlock")
        code = run_held(wanted.acquire, description, command, ttl, grace, is_shown(quiet, verbose))
    raise typer.Exit(code)


def barrier(
    name: Annotated[str, typer.Argument(help="Of the barrier; any text.")],
    parties: Annotated[int, typer.Option(help="How many must be there.", min=1)],
    wait: Wait = None,
    ttl: Annotated[
        float,
        typer.Option(
            parser=seconds, metavar=DURATION, help="A dead party's place is free after that."
        ),
    ] = 15.0,
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: AsJson = False,
    store: StoreUrl = DEFAULT_STORE,
) -> None:
    """Wait until enough nodes have arrived."""
    from strongroom.coordination import BarrierBroken

    exit_on_signals()
    with client_of(store) as client:
        meeting = client.barrier(name, parties, ttl)
        try:
            with describing_wait(
                _barrier_description(meeting), is_shown(quiet or (as_json and not verbose), verbose)
            ):
                place = meeting.wait(wait)
        except BarrierBroken as error:
            fail(Exit.LOST, str(error))
    if as_json:
        print_json({"place": place, "parties": parties})
    else:
        typer.echo(place)


def _barrier_description(meeting: Barrier) -> Describe:
    def describe() -> str | None:
        view = meeting.show()
        if view is None:
            return None
        there = labels_since([(one.who, one.since) for one in view.arrived])
        return f"{meeting.name!r}: {len(view.arrived)} of {meeting.parties} are there: {there}"

    return describe
