"""Decisions are run twice, and must not ask for anything but what they are given.

Here live the wrapper around an engine's `update`, and what it raises. Rule 4 of engines/base.py:
a decision may run more than once, and is a pure function of its records and its stamp.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from strongroom.clock import ManualClock
from strongroom.engines.base import Commit, Decide, Partition, Record, Ref
from strongroom.values import Purpose

# The decisions that are running now. Tests run one event loop, and decisions do not await.
_running: list[Decide[Any]] = []


class Impure(AssertionError):
    """A decision depends on something else than its arguments."""


def outside_of_decisions(what: str) -> None:
    """Called by what a decision must not use. Raises Impure."""
    if _running:
        raise Impure(f"a decision reads {what}: {_running[-1]}")


class WatchedClock(ManualClock):
    """A clock that no decision may read."""

    def wall_ticks(self) -> int:
        outside_of_decisions("wall time")
        return super().wall_ticks()

    def random_bytes(self, count: int) -> bytes:
        outside_of_decisions("randomness")
        return super().random_bytes(count)


def twice(
    update: Callable[..., Any], ran: Callable[[Decide[Any]], None] = lambda decide: None
) -> Callable[..., Any]:
    """An engine's `update` whose decisions run twice.

    Arguments:
        ran: is told each decision.
    """

    def watched(
        store: Any,
        partition: Partition,
        reads: Sequence[Ref],
        decide: Decide[Any],
        purpose: Purpose = Purpose.GROWTH,
    ) -> Any:
        def decided(found: Sequence[Record | None], stamp: int) -> Commit[Any]:
            ran(decide)
            first = _outcome(decide, found, stamp)
            second = _outcome(decide, found, stamp)
            if _shown(first) != _shown(second):
                raise Impure(f"a decision ends otherwise the second time: {first} and {second}")
            if isinstance(second, Exception):
                raise second
            return second

        return update(store, partition, reads, decided, purpose)

    return watched


def _outcome(
    decide: Decide[Any], found: Sequence[Record | None], stamp: int
) -> Commit[Any] | Exception:
    _running.append(decide)
    try:
        return decide(tuple(found), stamp)
    except Impure:
        raise
    except Exception as refusal:
        return refusal
    finally:
        _running.pop()


def _shown(outcome: Commit[Any] | Exception) -> object:
    """What two outcomes are compared by."""
    if isinstance(outcome, Exception):
        return type(outcome), {
            name: value for name, value in vars(outcome).items() if name != "error"
        }
    return outcome.result, outcome.steps
