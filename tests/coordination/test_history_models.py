"""The models of registers and locks accept and refuse hand-made histories."""

from __future__ import annotations

from collections.abc import Hashable

import pytest

from strongroom.testing.linearizability import NEVER, UNKNOWN, CompletedCall
from tests.coordination.histories import judge
from tests.coordination.history_client import Kind
from tests.coordination.history_models import (
    Believe,
    Differs,
    Failed,
    Give,
    Put,
    Read,
    Saw,
    Says,
    Swap,
    Take,
    Took,
    Wrote,
)

# The call, its answer, its start and its end.
Line = tuple[Hashable, Hashable, int, int]
ALLOWED: dict[str, tuple[Kind, list[Line]]] = {
    "a lost write that comes late": (
        "register",
        [
            (Put("a"), UNKNOWN, 1, NEVER),
            (Read(), Saw(None, None), 2, 3),
            (Read(), Saw("a", "1"), 4, 5),
        ],
    ),
    "a lost write that never comes": (
        "register",
        [(Put("a"), UNKNOWN, 1, NEVER), (Read(), Saw(None, None), 2, 3)],
    ),
    "a swap on what another one wrote at the same time": (
        "register",
        [(Put("a"), Wrote("1"), 1, 4), (Swap("b", "a", None), Wrote("2"), 2, 3)],
    ),
    "a hold that ended by time": (
        "lock",
        [
            (Take(), Took(1), 1, 2),
            (Believe(1), Says(True), 3, 4),
            (Take(), Took(2), 5, 6),
            (Believe(1), Says(False), 7, 8),
        ],
    ),
    "a fence that was left out": (
        "lock",
        [(Take(), Took(1), 1, 2), (Give(1), Says(True), 3, 4), (Take(), Took(3), 5, 6)],
    ),
}
REFUSED: dict[str, tuple[Kind, list[Line]]] = {
    "a stale read": (
        "register",
        [
            (Put("a"), Wrote("1"), 1, 2),
            (Put("b"), Wrote("2"), 3, 4),
            (Read(), Saw("a", "1"), 5, 6),
        ],
    ),
    "a write that was answered and is gone": (
        "register",
        [(Put("a"), Wrote("1"), 1, 2), (Read(), Saw(None, None), 3, 4)],
    ),
    "a write that was certainly not done, and is there": (
        "register",
        [(Put("a"), Failed(), 1, 2), (Read(), Saw("a", "1"), 3, 4)],
    ),
    "two swaps of one value": (
        "register",
        [
            (Put("a"), Wrote("1"), 1, 2),
            (Swap("b", "a", None), Wrote("2"), 3, 4),
            (Swap("c", "a", None), Wrote("3"), 5, 6),
        ],
    ),
    "a swap that was refused though the value was there": (
        "register",
        [(Put("a"), Wrote("1"), 1, 2), (Swap("b", "a", "1"), Differs("1"), 3, 4)],
    ),
    "a lost write that comes twice": (
        "register",
        [
            (Put("a"), UNKNOWN, 1, NEVER),
            (Read(), Saw("a", "1"), 2, 3),
            (Put("b"), Wrote("2"), 4, 5),
            (Read(), Saw("a", "3"), 6, 7),
        ],
    ),
    "two believers": (
        "lock",
        [
            (Take(), Took(1), 1, 2),
            (Take(), Took(2), 3, 4),
            (Believe(1), Says(True), 5, 6),
        ],
    ),
    "a fence that goes back": (
        "lock",
        [(Take(), Took(2), 1, 2), (Give(2), Says(True), 3, 4), (Take(), Took(1), 5, 6)],
    ),
    "a release of what another one has": (
        "lock",
        [(Take(), Took(1), 1, 2), (Take(), Took(2), 3, 4), (Give(1), Says(True), 5, 6)],
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
