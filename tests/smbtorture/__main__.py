"""Run smbtorture by hand, and make the list files and the page anew.

    python -m tests.smbtorture gate          runs smbd three times, writes smbd.txt, then as `page`
    python -m tests.smbtorture run           runs the gate against Strongroom
    python -m tests.smbtorture run NAME      runs these tests, whether they are in the gate or not
    python -m tests.smbtorture page          writes gate.txt and docs/smbtorture.md from the lists

A NAME may be a suite (`smb2.lock`), or a test (`smb2.lock.cancel`).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from tests.smbtorture import gate, names, page, targets
from tests.smbtorture.outcomes import Result, write_results
from tests.smbtorture.running import listing, run_tests

_SMBD_HEADER = (
    "Tests of smbtorture 4.17 that count, with their outcomes in runs of Debian's smbd 4.17.",
    "Made by `python -m tests.smbtorture gate`.",
)
_GATE_HEADER = (
    "Tests of smbtorture 4.17 that Strongroom has to pass: what smbd passes in each run, and",
    "wanted.txt, without excluded.txt. Made by `python -m tests.smbtorture gate`.",
)


def lists() -> page.Lists:
    """The list files beside this module."""
    load = names.load
    return page.Lists(
        smbd=load("smbd"),
        gate=load("gate"),
        wanted=load("wanted"),
        excluded=load("excluded"),
        signed=load("signed"),
        misses=load("misses"),
        subset=load("subset"),
    )


def _chosen(known: Iterable[str], asked: Sequence[str]) -> list[str]:
    """Return the known names that were asked for, by name or suite; all if none was given."""
    return [
        name
        for name in known
        if not asked or any(name == one or name.startswith(f"{one}.") for one in asked)
    ]


def _run(
    serving: str, chosen: Sequence[str], *, encrypted: bool = False, out: Path | None = None
) -> list[Result]:
    """Run these tests on a new server, print each result, and add it to the file `out`."""
    results = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        context: AbstractContextManager[targets.Target] = (
            targets.smbd(folder)
            if serving == "smbd"
            else targets.strongroom(folder, encrypted=encrypted)
        )
        with context as target:
            for result in run_tests(target, chosen, folder, encrypted=encrypted):
                print(
                    f"{result.outcome} {result.name} {result.elapsed_s} s", result.text, flush=True
                )
                results.append(result)
                if out is not None:
                    with out.open("ab") as lines:
                        lines.write(write_results([result]))
    return results


def _measure(asked: Sequence[str]) -> None:
    counted = _chosen(names.counted(listing()), asked)
    runs = [_run("smbd", counted) for _ in range(gate.RUNS)]
    smbd = {**(names.load("smbd") if asked else {}), **gate.outcomes_of(runs)}
    names.path_of("smbd").write_text(names.write_list(_SMBD_HEADER, smbd), encoding="utf-8")


def _write() -> None:
    """Write the files that follow from the measured and the hand-made lists."""
    made = gate.made(names.load("smbd"), names.load("wanted"), names.load("excluded"))
    names.path_of("gate").write_text(names.write_list(_GATE_HEADER, made), encoding="utf-8")
    page.write(lists())


def main(arguments: Sequence[str]) -> int:
    """Run the command line. Return 1 if `run` finds a result that misses.txt does not expect."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.smbtorture",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    measuring = commands.add_parser("gate", help="make the gate anew")
    running = commands.add_parser("run", help="run tests")
    commands.add_parser("page", help="write what follows from the lists")
    running.add_argument("--encrypted", action="store_true")
    running.add_argument("--on", choices=("strongroom", "smbd"), default="strongroom")
    running.add_argument("--out", type=Path, help="add the results to this file, as JSON lines")
    for one in (measuring, running):
        one.add_argument("names", nargs="*", metavar="NAME")
    given = parser.parse_args(arguments)
    if given.command == "run":
        return _compare(given)
    if given.command == "gate":
        _measure(given.names)
    _write()
    return 0


def _compare(given: argparse.Namespace) -> int:
    """Run the requested tests. Return 1 if misses.txt does not expect the results."""
    known = (
        names.counted(listing())
        if given.names
        else gate.to_run(names.load("gate"), names.load("signed"), encrypted=given.encrypted)
    )
    chosen = _chosen(known, given.names)
    results = _run(given.on, chosen, encrypted=given.encrypted, out=given.out)
    found = gate.complaints(results, names.load("misses"))
    print("\n".join(["", *found]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
