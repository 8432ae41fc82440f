"""What rounds have found, kept in a file outside the repository, so that a part can be continued.

STRONGROOM_PROOF_RESULTS names the file: a line of JSON for each round. A round that succeeded with
this seed is not run again until a part of the program changes that it proves (`PROVED`). Lives
here: the file. Must not live here: the rounds.
"""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

_VARIABLE: Final = "STRONGROOM_PROOF_RESULTS"
_SEED: Final = "STRONGROOM_PROOF_SEED"
_ENGINES: Final = "src/strongroom/engines"
PROVED: Final = tuple(f"{_ENGINES}/{name}" for name in ("postgres", "gateways.py", "membership.py"))
"""A round on older code does not count after a change of these."""


class Result(msgspec.Struct, frozen=True):
    """One round.

    Attributes:
        part: the fault.
        acknowledged: writes that were answered with success.
        operations: in the histories.
        busy: the share of answers 503 outside of the fault's window.
        busy_within: that inside of it.
        window_s: how long the fault lasted, until all served again.
        gap_s: the longest time without an acknowledged write, from the fault on.
        kept_s: how long each lease of 15 s kept others out: at least, at most.
        failures: what was wrong.
        more: measurements of this part alone.
    """

    part: str
    commit: str
    seed: int
    acknowledged: int
    seconds: float
    failures: list[str]
    lost: int = 0
    twice: int = 0
    miscounted: int = 0
    operations: int = 0
    refused: dict[int, int] = {}
    busy: float = 0.0
    busy_within: float = 0.0
    window_s: float = 0.0
    gap_s: float = 0.0
    kept_s: list[tuple[float, float]] = []
    more: dict[str, float] = {}


def _git(*words: str) -> subprocess.CompletedProcess[str]:
    at = Path(__file__).parents[3]
    return subprocess.run(["git", *words], cwd=at, check=False, capture_output=True, text=True)


@cache
def commit() -> str:
    """Return the commit that is tested; "+" if files differ from it."""
    changed = "+" if _git("status", "--porcelain").stdout else ""
    return _git("rev-parse", "--short=12", "HEAD").stdout.strip() + changed


@cache
def counts(at: str) -> bool:
    """Whether a round on commit `at` counts for this one: nothing of PROVED differs."""
    if at == commit():
        return True
    return "+" not in at + commit() and _git("diff", "--quiet", at, "--", *PROVED).returncode == 0


def left(part: str, count: int) -> Iterator[int]:
    """Return the seeds of a part that have not succeeded yet, on no commit that counts."""
    first = int(os.environ.get(_SEED, "1"))
    done = {
        one.seed for one in kept() if one.part == part and not one.failures and counts(one.commit)
    }
    return (seed for seed in range(first, first + count) if seed not in done)


def keep(result: Result) -> None:
    """Add a round to the file, if there is one, and print it."""
    line = msgspec.json.encode(result)
    print(line.decode(), flush=True)
    if name := os.environ.get(_VARIABLE):
        with Path(name).open("ab") as file:
            file.write(line + b"\n")


def kept() -> list[Result]:
    """Return all rounds in the file."""
    name = os.environ.get(_VARIABLE)
    if not name or not Path(name).exists():
        return []
    lines = Path(name).read_bytes().splitlines()
    return [msgspec.json.decode(line, type=Result) for line in lines]


def summary(found: Sequence[Result]) -> str:
    """Return the sums of each part, for people."""
    lines = []
    for part, at in sorted({(one.part, one.commit) for one in found}):
        of = [one for one in found if (one.part, one.commit) == (part, at)]
        refused: Counter[int] = Counter()
        for one in of:
            refused.update(one.refused)
        gaps = sorted(one.gap_s for one in of)
        kept_s = [most for one in of for _, most in one.kept_s]
        failed = [one.seed for one in of if one.failures]
        lines.append(
            f"{part} at {at}: {len(of)} rounds, {sum(one.acknowledged for one in of)} writes "
            f"acknowledged, {sum(one.lost for one in of)} lost, "
            f"{sum(one.twice + one.miscounted for one in of)} inexact, "
            f"{sum(one.operations for one in of)} calls in histories, "
            f"503 {max(one.busy for one in of):.2%} at most outside and "
            f"{max(one.busy_within for one in of):.2%} inside of the window, "
            f"gap {gaps[len(gaps) // 2]:.2f} s, at most {gaps[-1]:.2f} s, "
            f"shortest lease {min(kept_s, default=0.0):.2f} s, others {dict(refused)}, "
            f"failed seeds {failed}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    print(summary(kept()))
