"""`strongroom sim`: play a simulation again, by its seed.

Lives here: flags, and what is shown. Must not live here: scenarios (coordination/simulation).
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated

import typer

from strongroom.cli.coordination.stores import AsJson, print_json
from strongroom.cli.counted import counted
from strongroom.cli.exits import Exit, fail
from strongroom.cli.progress import progress_bar

if TYPE_CHECKING:
    from strongroom.coordination.simulation.report import Report

HELP = """
Play simulations of the coordination toolkit.

The code that is shipped runs on four simulated nodes, with clocks that are
seconds apart and up to 30 % too fast or slow, over a network that loses, delays
and doubles, under pauses, crashes and restarts of the store. A seed says all
that happens, so that the same seed plays the same run again. Prints what
happened in each run, with --trace line by line. Exit code 1: something that must
hold did not.

Examples

  strongroom sim --seed 7
  strongroom sim --seed 7 --scenario lock-fair --trace
  strongroom sim --seed 1 --count 100 --json
"""


def sim(
    seed: Annotated[int, typer.Option(help="Of the first run.", min=0)],
    scenario: Annotated[str | None, typer.Option(help="Only this one; without it, all.")] = None,
    count: Annotated[int, typer.Option(help="So many seeds, one after another.", min=1)] = 1,
    trace: Annotated[bool, typer.Option("--trace", help="Tell all that happens.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run simulations; end with 1 if one found something wrong."""
    from strongroom.coordination.simulation.play import SCENARIOS, play

    if scenario is not None and scenario not in SCENARIOS:
        fail(Exit.USAGE, f"no scenario is called {scenario!r}; there are {', '.join(SCENARIOS)}")
    if trace and as_json:
        fail(Exit.USAGE, "--trace does not go with --json")
    reports: list[Report] = []
    with progress_bar("simulating", as_json or trace) as progress:
        for done, number in enumerate(range(seed, seed + count), 1):
            played = play(number, scenario, typer.echo if trace else None)
            reports += played
            if not as_json:
                for report in played:
                    typer.echo(_line(report))
            if progress is not None:
                progress(done, count)
    if as_json:
        print_json([_facts(report) for report in reports])
    broken = sum(bool(report.violations) for report in reports)
    if not as_json:
        typer.echo(
            f"{counted(len(reports), 'runs')}, {broken} of them with something that must not be"
        )
    raise typer.Exit(Exit.REFUSED.value if broken else Exit.DONE.value)


def _line(report: Report) -> str:
    counts = ", ".join(f"{count} {what}" for what, count in report.counts)
    lines = [
        f"{'BAD' if report.violations else 'ok '} {report.scenario} seed {report.seed}: "
        f"{counts}; {counted(report.events_count, 'events')}"
    ]
    return "\n".join([*lines, *(f"    {violation}" for violation in report.violations)])


def _facts(report: Report) -> dict[str, object]:
    return {**dataclasses.asdict(report), "counts": dict(report.counts)}
