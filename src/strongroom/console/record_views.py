"""The toolkit's views of records as documents of the read API.

Lives here: pure conversions. Must not live here: reading (record_pages.py), the toolkit's rules.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from strongroom.console.held_waits import HeldWait
from strongroom.coordination.recipes.gate_core import GateView
from strongroom.coordination.recipes.inspect_members import MemberView
from strongroom.coordination.recipes.locks.lock_state import LockView
from strongroom.coordination.recipes.slots.inspect_slots import BarrierView, SlotsView, SlotView
from strongroom.servers.console.api.coordination import (
    JSON_CHARS_MAX,
    Kind,
    ShownBarrier,
    ShownGate,
    ShownHold,
    ShownHolder,
    ShownMember,
    ShownWaiter,
)
from strongroom.values import iso7

WAITERS_SHOWN: Final = 100
TEXT_CHARS_MAX: Final = 256
"""Labels and times of records are cut after so many characters: any client may write them."""

Waits = Sequence[HeldWait]


def gate_of(name: str, view: GateView, waits: Waits) -> ShownGate:
    """Return a gate. Who waits at one that is open has just been let through."""
    waiting = () if view.is_open else tuple(_waiter(one) for one in waits)
    return ShownGate(
        name=name,
        generation=view.generation,
        is_open=view.is_open,
        payload=json_text(view.payload),
        who=shown(view.who),
        since=shown(view.since),
        waiting=waiting[:WAITERS_SHOWN],
        waiting_count=len(waiting),
        state=gate_state(view),
    )


def gate_state(view: GateView) -> str:
    """Return what the acts on a gate compare: its generation."""
    return str(view.generation)


def lock_of(kind: Kind, view: LockView, waits: Waits) -> ShownHold:
    """Return a lock or an election; those who watch an election without standing are left out."""
    who, since = shown(view.who), shown(view.since)
    holder = _held_by(view, who, since, "hold")
    holders = (holder,) if view.held else ()
    waiting = _waiting(view.waiting, () if kind == "election" else waits, holders)
    return ShownHold(
        kind=kind,
        name=view.name,
        holders=holders,
        waiting=waiting[:WAITERS_SHOWN],
        waiting_count=len(waiting),
        fence=str(view.fence),
        limit=0,
        value=json_text(view.value),
        end="" if view.held else _ended(view),
        state=view.nonce,
    )


def _ended(view: LockView) -> str:
    by = f"{shown(view.who)}: " if view.who else ""
    return f"{by}{shown(view.end)}" if view.end else ""


def slots_of(kind: Kind, view: SlotsView, waits: Waits) -> ShownHold:
    """Return a semaphore or a read-write lock."""
    holders = tuple(_holder(one) for one in view.holders)
    waiting = _waiting([one.who for one in view.waiting], waits, holders)
    return ShownHold(
        kind=kind,
        name=view.name,
        holders=holders,
        waiting=waiting[:WAITERS_SHOWN],
        waiting_count=len(waiting),
        fence=str(view.fence),
        limit=view.limit,
        value="",
        end="",
        state=str(view.fence) if holders else "",
    )


def barrier_of(view: BarrierView) -> ShownBarrier:
    """Return a barrier."""
    arrived = tuple(_holder(one) for one in view.arrived)
    return ShownBarrier(view.name, view.generation, view.parties, arrived)


def member_of(view: MemberView) -> ShownMember:
    """Return a member."""
    return ShownMember(
        who=shown(view.who),
        since=shown(view.since),
        ttl_s=view.ttl_s,
        left_s=view.left_s,
        data=json_text(view.data),
    )


def _holder(slot: SlotView) -> ShownHolder:
    who, since, role = shown(slot.who), shown(slot.since), shown(slot.role)
    return _held_by(slot, who, since, role)


def _held_by(view: LockView | SlotView, who: str, since: str, role: str) -> ShownHolder:
    return ShownHolder(
        who=who,
        since=since,
        role=role,
        fence=str(view.fence),
        ttl_s=view.ttl_s,
        left_s=view.left_s,
        writes=view.writes,
    )


def _waiting(
    queued: Sequence[str], waits: Waits, holders: Sequence[ShownHolder]
) -> tuple[ShownWaiter, ...]:
    """Return those in the record's queue, then the others who wait. A holder may watch, too."""
    queued = [shown(who) for who in queued]
    since = {shown(one.who): iso7(one.first_ticks) for one in waits}
    known = {*queued, *(one.who for one in holders)}
    in_queue = [ShownWaiter(who, since.get(who, ""), is_queued=True) for who in queued]
    return (*in_queue, *(_waiter(one) for one in waits if shown(one.who) not in known))


def _waiter(wait: HeldWait) -> ShownWaiter:
    return ShownWaiter(shown(wait.who), iso7(wait.first_ticks), is_queued=False)


def shown(text: str) -> str:
    """Return a text of a record as JSON can hold it, and not longer than `TEXT_CHARS_MAX`."""
    return text[:TEXT_CHARS_MAX].encode(errors="replace").decode()


def json_text(value: Any) -> str:
    """Return a user's JSON value as text, cut after `JSON_CHARS_MAX` characters; "" for null."""
    if value is None:
        return ""
    text = json.dumps(value, ensure_ascii=True)
    return text if len(text) <= JSON_CHARS_MAX else f"{text[: JSON_CHARS_MAX - 1]}…"
