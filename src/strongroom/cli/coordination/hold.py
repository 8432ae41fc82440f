"""The part that `lock`, `elect`, `sem` and `rwlock` share: a command that runs only during a hold.

Lives here: their flags, a wait that a signal ends cleanly, the command's environment and exit code.
Must not live here: how something is held (coordination/recipes), how the command is ended in time
(coordination/processes/child.py).
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from strongroom.cli.coordination.waiting import Describe, describing_wait
from strongroom.cli.durations import seconds
from strongroom.cli.exits import Exit, fail
from strongroom.platform.signals import TERMINATING_SIGNALS

if TYPE_CHECKING:
    from strongroom.coordination import Held
    from strongroom.coordination.processes.child import Margins

Name = Annotated[str, typer.Argument(help="The name of what is held; any text.")]
Command = Annotated[list[str], typer.Argument(help="The command and its arguments, behind --.")]
DURATION = "DURATION"
Ttl = Annotated[
    float,
    typer.Option(
        parser=seconds, metavar=DURATION, help="A dead holder is replaced after that: 15, 5s, 2m."
    ),
]


def wait_option(meaning: str) -> Any:
    """Return the flag `--wait`, also called `--timeout`, of every command that may wait."""
    names, form = ("--wait", "--timeout"), "60, 5s, 2m. Both names mean the same."
    return typer.Option(*names, parser=seconds, metavar=DURATION, help=f"{meaning}: {form}")


Wait = Annotated[float | None, wait_option("Wait at most so long, else for ever")]
Try = Annotated[bool, typer.Option("--try", help="Don't wait.")]
Fair = Annotated[bool, typer.Option("--fair", help="First come, first served.")]
Grace = Annotated[
    float | None,
    typer.Option(
        parser=seconds,
        metavar=DURATION,
        help="The time between SIGTERM and SIGKILL, less than half of the TTL (default: ttl / 10).",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing while waiting.")]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="Print what it waits for without a terminal too."),
]
EXIT_CODES = """Exit codes: 75 {name} was not obtained, 76 it was lost, 69 the store does not
answer, 126 and 127 the command cannot be run, else the command's own (128 + N
when signal N ended it)."""

_FORWARDED = (signal.SIGINT, *TERMINATING_SIGNALS)


def wait_s_of(wait: float | None, no_wait: bool) -> float | None:
    if no_wait and wait is not None:
        fail(Exit.USAGE, "--try does not go with --wait")
    return 0.0 if no_wait else wait


def run_held(
    acquire: Callable[[], Held],
    describe: Describe,
    command: list[str],
    ttl: float,
    grace: float | None,
    shown: bool | None,
    variables: Callable[[Held], Mapping[str, str]] | None = None,
) -> int:
    """Wait for the hold, run the command, release the hold; return the exit code.

    Arguments:
        describe: returns the current holders in words.
        ttl, grace: see `Margins.of_ttl`.
        shown: print messages while waiting; None: only if standard error is a terminal.
        variables: the command's own environment variables; by default name, fence and deadline.
    """
    _require_guard()
    margins = _margins_of(ttl, grace)
    exit_on_signals()
    with describing_wait(describe, shown):
        held = acquire()
    try:
        return _run(held, command, margins, (variables or _fence_and_deadline)(held))
    finally:
        held.release()  # no `with` block, which would report a loss a second time


def _require_guard() -> None:
    from strongroom.coordination.errors import Unsupported
    from strongroom.coordination.processes.child import require_guard

    try:
        require_guard()
    except Unsupported as error:
        fail(Exit.USAGE, str(error))


def _margins_of(ttl: float, grace: float | None) -> Margins:
    """Return how long before the deadline the command is ended; refuse too long a `grace`."""
    from strongroom.coordination.processes.child import Margins

    if grace is not None and not 0 <= grace < ttl / 2:
        fail(
            Exit.USAGE,
            f"--grace is 0 or more and less than half of --ttl, not {grace:g}: the command would"
            " be asked to end before each renewal",
        )
    return Margins.of_ttl(ttl, grace)


def exit_on_signals() -> None:
    """Let signals end this process by an exception, so that it releases what it holds."""
    for number in TERMINATING_SIGNALS:
        signal.signal(number, _exit_on_signal)


def _exit_on_signal(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)


def _fence_and_deadline(held: Held) -> Mapping[str, str]:
    from strongroom.coordination.clock import SystemClocks

    return {
        "STRONGROOM_LOCK": held.name,
        "STRONGROOM_FENCE": str(held.fence),
        "STRONGROOM_DEADLINE_MONOTONIC": repr(SystemClocks().monotonic_s() + held.remaining()),
    }


def _run(held: Held, command: list[str], margins: Margins, own: Mapping[str, str]) -> int:
    """Run the command; return its exit code, or 76 if the hold was lost."""
    from strongroom.coordination.processes.child import Child

    signals_before_start: list[int] = []
    child: Child | None = None

    def forward(number: int, _frame: FrameType | None) -> None:
        signals_before_start.append(number) if child is None else child.send_signal(number)

    # Set before the command begins: a signal that ended this program would release its hold.
    for number in _FORWARDED:
        signal.signal(number, forward)
    environment = {**os.environ, **own}
    child = Child(command, held, margins, environment, alone=True)
    for sent in signals_before_start:
        child.send_signal(sent)
    code = child.wait()
    if child.reason:
        typer.echo(f"strongroom: {held.name!r} is lost: {child.reason}", err=True)
    return code
