"""Wrong rules for ids, gates and registers, each taken from a shipped program.

A mutant replaces one function of the shipped code; the simulator must catch every one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from strongroom.coordination.effects import (
    Applied,
    CasOutcome,
    Entry,
    Sleep,
    Steps,
    Unknown,
    cas,
    get,
)
from strongroom.coordination.errors import StoreUnavailable
from strongroom.coordination.recipes import gate_core, register_core
from strongroom.coordination.recipes.gate_core import GateView, read_steps, view_of
from strongroom.coordination.recipes.ids.id_ranges import IdsUnavailable, RangeReservations
from strongroom.coordination.recipes.register_core import RegisterWrite, Swap
from strongroom.coordination.schema.records import encode_document
from strongroom.coordination.session.context import RecipeContext
from strongroom.coordination.simulation import gate_scenario, ids_scenario

TIMEOUT_S = 1.5
TRIES = 3
Found = tuple[int, str | None]


def _read(key: str) -> Steps[Found]:
    entry = yield from get(key, TIMEOUT_S)
    return (1, None) if entry is None else (int(entry.value), entry.version)


def _write(context: RecipeContext, key: str, version: str | None, stop: int) -> Steps[CasOutcome]:
    return (yield from cas(key, version, b"%d" % stop, TIMEOUT_S, note=context.nonce()))


def range_set_before_the_write(
    context: RecipeContext, state: RangeReservations, count: int
) -> Steps[range]:
    """The published listing: the local range is set first, and stays if all attempts fail."""
    left = state.unresolved.pop("ghost", None)
    if left is not None:
        return left
    for _ in range(TRIES):
        start, version = yield from _read(state.key)
        state.unresolved["ghost"] = range(start, start + count)
        outcome = yield from _write(context, state.key, version, start + count)
        if isinstance(outcome, Applied):
            return state.unresolved.pop("ghost")
    raise IdsUnavailable(state.name, TRIES, "lost races")


def version_read_anew(context: RecipeContext, state: RangeReservations, count: int) -> Steps[range]:
    """Well-known variants: the version is fetched just before the write, not with the data."""
    for _ in range(TRIES):
        start, _old = yield from _read(state.key)
        _new, version = yield from _read(state.key)
        outcome = yield from _write(context, state.key, version, start + count)
        if isinstance(outcome, Applied):
            return range(start, start + count)
    raise IdsUnavailable(state.name, TRIES, "lost races")


def unknown_is_success(
    context: RecipeContext, state: RangeReservations, count: int
) -> Steps[range]:
    """A write whose answer was lost counts as applied."""
    for _ in range(TRIES):
        start, version = yield from _read(state.key)
        outcome = yield from _write(context, state.key, version, start + count)
        if isinstance(outcome, Applied | Unknown):
            return range(start, start + count)
    raise IdsUnavailable(state.name, TRIES, "lost races")


_borrowed: dict[int, str | None] = {}


def version_borrowed(context: RecipeContext, state: RangeReservations, count: int) -> Steps[range]:
    """Two generators share a store object, which keeps the version of the last read by either."""
    place = id(context)
    for _ in range(TRIES):
        start, _borrowed[place] = yield from _read(state.key)
        yield Sleep(0.01)  # the other generator runs between this read and the write
        outcome = yield from _write(context, state.key, _borrowed[place], start + count)
        if isinstance(outcome, Applied):
            return range(start, start + count)
    raise IdsUnavailable(state.name, TRIES, "lost races")


def no_condition(context: RecipeContext, state: RangeReservations, count: int) -> Steps[range]:
    """The last writer wins: a write has no condition."""
    start, version = yield from _read(state.key)
    outcome = yield from _write(context, state.key, version, start + count)
    while not isinstance(outcome, Applied):
        _, version = yield from _read(state.key)
        outcome = yield from _write(context, state.key, version, start + count)
    return range(start, start + count)


def _stale_change(
    context: RecipeContext, key: str, is_open: bool, payload: Any, generation: int | None
) -> Steps[GateView]:
    """A lost race is retried with the new version and the old content."""
    view, version = yield from read_steps(key)
    after = replace(view, is_open=is_open, generation=view.generation + (not is_open))
    while True:
        value = gate_core._encode(after, context.nonce())
        outcome = yield from cas(key, version, value, TIMEOUT_S)
        if isinstance(outcome, Applied):
            return after
        _, version = yield from read_steps(key)


def _rearm_forgets(context: RecipeContext, key: str) -> Steps[GateView]:
    """Re-arming deletes the flag, and the generation counter with it."""
    _, version = yield from read_steps(key)
    value = gate_core._encode(GateView(), context.nonce())
    yield from cas(key, version, value, TIMEOUT_S)
    return GateView()


def _wait_for_a_change(
    context: RecipeContext, name: str, key: str, timeout_s: float | None, generation: int | None
) -> Steps[GateView]:
    """Every change counts as an opening, as if the message were the truth."""
    entry = yield from get(key, TIMEOUT_S)
    while True:
        yield Sleep(0.1)
        now = yield from get(key, TIMEOUT_S)
        if now != entry:
            return GateView(10**9, True)


def _wait_for_an_open_one(
    context: RecipeContext, name: str, key: str, timeout_s: float | None, generation: int | None
) -> Steps[GateView]:
    """A waiter looks for an open gate only, and misses one that was re-armed."""
    while True:
        view = view_of(key, (yield from get(key, TIMEOUT_S)))
        if view.is_open and generation is None:
            return view
        if view.is_open and view.generation == generation:
            return view
        yield Sleep(0.5)


def _unknown_swap_is_refused(self: RegisterWrite, seen: Any) -> Steps[Swap]:
    """A swap whose answer was lost counts as refused."""
    outcome = yield from _one_write(self, seen)
    if isinstance(outcome, Applied):
        return Swap(True, outcome.version)
    return Swap(False, None)


def _unknown_swap_is_done(self: RegisterWrite, seen: Any) -> Steps[Swap]:
    """A swap whose answer was lost counts as applied."""
    outcome = yield from _one_write(self, seen)
    if isinstance(outcome, Applied):
        return Swap(True, outcome.version)
    return Swap(isinstance(outcome, Unknown), None)


def _one_write(self: RegisterWrite, seen: Any) -> Steps[CasOutcome]:
    document = {"kind": "register", "value": self._new, "ttl": None, "nonce": self._nonce}
    value = encode_document(document)
    return (yield from cas(self._key, seen.version, value, TIMEOUT_S))


def _error_is_absence(key: str, timeout_s: float) -> Steps[Entry | None]:
    """Every error counts as "absent"."""
    try:
        return (yield from get(key, timeout_s))
    except StoreUnavailable:
        return None


Patch = tuple[object, str, Callable[..., Any]]

IDS: dict[str, Patch] = {
    "range set before the write": (ids_scenario, "RESERVE", range_set_before_the_write),
    "version read anew before the write": (ids_scenario, "RESERVE", version_read_anew),
    "unknown write is success": (ids_scenario, "RESERVE", unknown_is_success),
    "version borrowed from another read": (ids_scenario, "RESERVE", version_borrowed),
    "no condition at all": (ids_scenario, "RESERVE", no_condition),
}
GATES: dict[str, Patch] = {
    "lost race repeated with old content": (gate_core, "_change", _stale_change),
    "re-arming forgets the generation": (gate_scenario, "REARM", _rearm_forgets),
    "a message is the truth": (gate_scenario, "WAIT", _wait_for_a_change),
    "a re-armed gate strands its waiters": (gate_scenario, "WAIT", _wait_for_an_open_one),
}
REGISTERS: dict[str, Patch] = {
    "unknown swap is refused": (RegisterWrite, "_write", _unknown_swap_is_refused),
    "unknown swap is done": (RegisterWrite, "_write", _unknown_swap_is_done),
    "an error is an absence": (register_core, "get", _error_is_absence),
}


@contextmanager
def in_force(change: Patch) -> Iterator[None]:
    """Run the block with the wrong rule."""
    with patch.object(*change):
        yield
