"""Opening and re-arming gates, and ending holds: by the toolkit's own recipes.

Lives here: the acts on what a viewer has seen. An act names the state that was seen, and changes
nothing if that is no longer so. Must not live here: who may act (access.py), HTTP.
"""

from __future__ import annotations

from typing import Any

from strongroom.console.record_views import gate_state, shown
from strongroom.coordination import Client
from strongroom.coordination.errors import ChangedSince
from strongroom.coordination.recipes.gate_core import KIND, GateView, open_steps, rearm_steps
from strongroom.coordination.recipes.locks.inspect_locks import break_steps
from strongroom.coordination.recipes.slots.inspect_slots import break_slots_steps
from strongroom.coordination.schema.names import key_of
from strongroom.servers.console.api.coordination import BreakAct, GateAct, Kind


def open_gate(client: Client, name: str, state: str | None, payload: Any) -> GateAct:
    """Open a gate. `state` is what was seen, as `ShownGate.state`; None = any.

    Raises: ChangedSince, StoreUnavailable, StoreRefused, CorruptRecord.
    """
    generation = None if state is None else _number(name, state)
    key = key_of(KIND, name)
    return _gate_act(client.driver.run(open_steps(client.context, key, payload, generation)))


def rearm_gate(client: Client, name: str, state: str | None) -> GateAct:
    """Re-arm a gate; see `open_gate`."""
    generation = None if state is None else _number(name, state)
    return _gate_act(client.driver.run(rearm_steps(client.context, key_of(KIND, name), generation)))


def break_hold(client: Client, kind: Kind, name: str, state: str | None) -> BreakAct:
    """End the hold of a lock or election, or all holds of a semaphore or read-write lock.

    Arguments:
        state: what was seen, as `ShownHold.state`; None = any.

    Raises: as `open_gate`.
    """
    if kind in ("lock", "election"):
        view = client.driver.run(break_steps(client.context, kind, name, state))
        return BreakAct(() if view is None else (shown(view.who),))
    fence = None if state is None else _number(name, state)
    slots = client.driver.run(break_slots_steps(client.context, kind, name, fence))
    return BreakAct(() if slots is None else tuple(shown(one.who) for one in slots.holders))


def _gate_act(view: GateView) -> GateAct:
    return GateAct(view.generation, view.is_open, gate_state(view))


def _number(name: str, state: str) -> int:
    """Return the number in a state; what is no number was never seen. Raises: ChangedSince."""
    if not (state.isascii() and state.isdigit() and len(state) <= 19):
        raise ChangedSince(name)
    return int(state)
