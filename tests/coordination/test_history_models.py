"""The models of registers and locks accept and refuse hand-made histories."""

from __future__ import annotations

from collections.abc import Hashable

import pytest

from strongroom.testing.histories.linearizability import NEVER, UNKNOWN, CompletedCall
from tests.coordination.histories import judge
from tests.coordination.history_client import Kind
from tests.coordination.history_models import (
    Acquire,
    Acquired,
    CheckHeld,
    Failed,
    HeldState,
    Put,
    Read,
    ReadResult,
    Release,
    Swap,
    SwapRefused,
    WriteResult,
)

# The call, its answer, its start and its end.
Line = tuple[Hashable, Hashable, int, int]
ALLOWED: dict[str, tuple[Kind, list[Line]]] = {
    "a lost write that comes late": (
        "register",
        [
            (Put("a"), UNKNOWN, 1, NEVER),
            (Read(), ReadResult(None, None), 2, 3),
            (Read(), ReadResult("a", "1"), 4, 5),
        ],
    ),
    "a lost write that never comes": (
        "register",
        [(Put("a"), UNKNOWN, 1, NEVER), (Read(), ReadResult(None, None), 2, 3)],
    ),
    "a swap on what another one wrote at the same time": (
        "register",
        [(Put("a"), WriteResult("1"), 1, 4), (Swap("b", "a", None), WriteResult("2"), 2, 3)],
    ),
    "a hold that ended by time": (
        "lock",
        [
            (Acquire(), Acquired(1), 1, 2),
            (CheckHeld(1), HeldState(True), 3, 4),
            (Acquire(), Acquired(2), 5, 6),
            (CheckHeld(1), HeldState(False), 7, 8),
        ],
    ),
    "a fence that was left out": (
        "lock",
        [
            (Acquire(), Acquired(1), 1, 2),
            (Release(1), HeldState(True), 3, 4),
            (Acquire(), Acquired(3), 5, 6),
        ],
    ),
}
REFUSED: dict[str, tuple[Kind, list[Line]]] = {
    "a stale read": (
        "register",
        [
            (Put("a"), WriteResult("1"), 1, 2),
            (Put("b"), WriteResult("2"), 3, 4),
            (Read(), ReadResult("a", "1"), 5, 6),
        ],
    ),
    "a write that was answered and is gone": (
        "register",
        [(Put("a"), WriteResult("1"), 1, 2), (Read(), ReadResult(None, None), 3, 4)],
    ),
    "a write that was certainly not done, and is there": (
        "register",
        [(Put("a"), Failed(), 1, 2), (Read(), ReadResult("a", "1"), 3, 4)],
    ),
    "two swaps of one value": (
        "register",
        [
            (Put("a"), WriteResult("1"), 1, 2),
            (Swap("b", "a", None), WriteResult("2"), 3, 4),
            (Swap("c", "a", None), WriteResult("3"), 5, 6),
        ],
    ),
    "a swap that was refused though the value was there": (
        "register",
        [(Put("a"), WriteResult("1"), 1, 2), (Swap("b", "a", "1"), SwapRefused("1"), 3, 4)],
    ),
    "a lost write that comes twice": (
        "register",
        [
            (Put("a"), UNKNOWN, 1, NEVER),
            (Read(), ReadResult("a", "1"), 2, 3),
            (Put("b"), WriteResult("2"), 4, 5),
            (Read(), ReadResult("a", "3"), 6, 7),
        ],
    ),
    "two believers": (
        "lock",
        [
            (Acquire(), Acquired(1), 1, 2),
            (Acquire(), Acquired(2), 3, 4),
            (CheckHeld(1), HeldState(True), 5, 6),
        ],
    ),
    "a fence that goes back": (
        "lock",
        [
            (Acquire(), Acquired(2), 1, 2),
            (Release(2), HeldState(True), 3, 4),
            (Acquire(), Acquired(1), 5, 6),
        ],
    ),
    "a release of what another one has": (
        "lock",
        [
            (Acquire(), Acquired(1), 1, 2),
            (Acquire(), Acquired(2), 3, 4),
            (Release(1), HeldState(True), 5, 6),
        ],
    ),
}


def _linearizable(kind: Kind, lines: list[Line]) -> bool:
    operations = [
        CompletedCall(number, "client", "object", call, result, invoked, returned)
        for number, (call, result, invoked, returned) in enumerate(lines)
    ]
    return judge(kind, operations).verdict.linearizable


@pytest.mark.parametrize("what", ALLOWED)
def test_allowed(what: str) -> None:
    assert _linearizable(*ALLOWED[what])


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what: str) -> None:
    assert not _linearizable(*REFUSED[what])
