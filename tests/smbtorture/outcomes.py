"""The outcome of one test of smbtorture, and its storage.

Lives here: reading smbtorture's output, and results as lines of JSON. Must not live here: running
anything (running.py). Source of the words: smbtorture 4.17's output in its default format.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

_VERDICT: Final = re.compile(
    r"^(?P<word>success|failure|error|skip): (?P<name>[^\n\[]*?)(?: \[\n(?P<text>.*?)^\])?$",
    re.MULTILINE | re.DOTALL,
)
_WARNING: Final = re.compile(r"^WARNING!: (.*)$", re.MULTILINE)
# Enough text to explain a failure; a hostile name may be longer.
_TEXT_LIMIT: Final = 2000


class Outcome(enum.StrEnum):
    """How one test ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    # smbtorture was still running at its time limit.
    LATE = "late"
    # smbtorture ended without a verdict.
    LOST = "lost"


_OUTCOME_OF_WORD: Final = {
    "success": Outcome.PASSED,
    "failure": Outcome.FAILED,
    "error": Outcome.FAILED,
    "skip": Outcome.SKIPPED,
}


class Result(msgspec.Struct, frozen=True):
    """One test, run once."""

    name: str
    outcome: Outcome
    elapsed_s: float
    text: str = ""


def read_verdict(output: str) -> tuple[Outcome, str]:
    """Return the outcome that the output of one test states, and the text that explains it.

    A test whose name stands for several has passed only if each of them has.
    """
    found = list(_VERDICT.finditer(output))
    if not found:
        return Outcome.LOST, output[-_TEXT_LIMIT:].strip()
    outcomes = [(_OUTCOME_OF_WORD[one["word"]], (one["text"] or "").strip()) for one in found]
    for outcome, text in outcomes:
        if outcome is not Outcome.PASSED:
            warnings = _WARNING.findall(output) if outcome is Outcome.FAILED else []
            return outcome, "\n".join([text, *warnings])[:_TEXT_LIMIT]
    return Outcome.PASSED, ""


def write_results(results: Iterable[Result]) -> bytes:
    """The results as lines of JSON."""
    encoder = msgspec.json.Encoder()
    return encoder.encode_lines(results)


def read_results(lines: bytes) -> list[Result]:
    """The results that `write_results` wrote."""
    decoder = msgspec.json.Decoder(Result)
    return decoder.decode_lines(lines)


def steady(runs: Iterable[Mapping[str, Outcome]]) -> set[str]:
    """The names that passed in each of these runs."""
    passed = [{name for name, outcome in run.items() if outcome is Outcome.PASSED} for run in runs]
    return set.intersection(*passed) if passed else set()
