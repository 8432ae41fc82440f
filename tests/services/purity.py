"""Decisions are run twice, and may use nothing but their arguments.

Here live the wrapper around an engine's `update`, and the error that it raises. Rule 4 of
engines/base.py: a decision may run more than once, and is a pure function of its records and its
stamp.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from strongroom.clock import ManualClock
from strongroom.engines.base import Commit, Decide, Partition, Record, Ref
from strongroom.services.core.decisions import Decision, ReadAll, ReadOne
from strongroom.values import Purpose

# The decisions in progress. Tests run one event loop, and decisions do not await.
_running: list[Decide[Any]] = []


class Impure(AssertionError):
    """A decision depends on something other than its arguments."""


def outside_of_decisions(what: str) -> None:
    """Raise Impure inside of a decision. It is called by the things that a decision must not
    use."""
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
    """Return an engine's `update` whose decisions run twice.

    Arguments:
        ran: called with each decision.
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
            check_handles(decide)
            first = _outcome(decide, found, stamp)
            second = _outcome(decide, found, stamp)
            if _shown(first) != _shown(second):
                raise Impure(f"a decision ends otherwise the second time: {first} and {second}")
            if isinstance(second, Exception):
                raise second
            return second

        return update(store, partition, reads, decided, purpose)

    return watched


def check_handles(decide: Decide[Any]) -> None:
    """Check that each read which a decision keeps is one of its own reads, at its position.

    Raises: Impure.
    """
    decision = getattr(decide, "__self__", None)
    if not isinstance(decision, Decision):
        return
    for name in decision.__struct_fields__:
        kept = getattr(decision, name)
        if isinstance(kept, ReadOne):
            own = decision.reads[kept.index] == kept.ref
        elif isinstance(kept, ReadAll):
            end = kept.first + len(kept.refs)
            own = tuple(decision.reads[kept.first : end]) == kept.refs
        else:
            continue
        if not own:
            raise Impure(f"{name} is a read of something else: {decision}")


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
    """Return the value by which two outcomes are compared."""
    if isinstance(outcome, Exception):
        return type(outcome), {
            name: value for name, value in vars(outcome).items() if name != "error"
        }
    return outcome.result, outcome.steps
