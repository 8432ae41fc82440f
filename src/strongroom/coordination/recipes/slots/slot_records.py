"""A record of several slots, one for each holder: semaphores, read-write locks, barriers.

    {"kind": "semaphore", "write": "9f86d081884c7d65-9", "fence": 12, "limit": 4, "slots": [
      {"owner": "9f86d081884c7d65-1", "role": "hold", "fence": 12, "seq": 3, "ttl": 15,
       "who": "host:4711", "since": "2026-11-21T08:00:00.000Z"}]}

`fence` is the highest that was ever given. The record is never deleted, so that its fence never
goes back. `write` differs in any two writes, `seq` in any two writes of one owner. A slot ends when
its owner removes it, or when an observer has seen the same owner and `seq` for
`rules.observer_wait_s`. The argument of clock_rules.py holds for each slot, because a slot is
dropped by a compare-and-swap of the whole record.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from strongroom.coordination.errors import CorruptRecord, Unsupported
from strongroom.coordination.schema.records import (
    DECODE_ERRORS,
    FENCE_MAX,
    decode_document,
    encode_document,
)
from strongroom.coordination.session.context import RecipeContext

SLOTS_MAX: Final = 200
"""A record has at most so many slots: it is read and written as a whole, and stays below 64 KiB."""
TTL_MAX_S: Final = 86400.0
TTL_MIN_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class Slot:
    """The slot of one holder, or of one visible waiter.

    Attributes:
        owner: the nonce of the hold.
        role: what the owner holds or wants, in the recipe's own words.
        fence: its token.
        seq: counts the owner's writes.
        ttl_s: how long it lasts without renewal.
        who, since: the owner's label, and a time by the owner's clock, for people.
    """

    owner: str
    role: str
    fence: int
    seq: int
    ttl_s: float
    who: str = ""
    since: str = ""


@dataclass(frozen=True, slots=True)
class SlotRecord:
    """The slots of all clients; see the module's docstring.

    Attributes:
        fence: the highest that was given.
        limit: how many holders there may be, where the recipe has such a number, else 0.
        slots: in order of arrival.
    """

    fence: int = 0
    limit: int = 0
    slots: tuple[Slot, ...] = ()

    def slot_of(self, owner: str) -> Slot | None:
        """None if the nonce has none."""
        for slot in self.slots:
            if slot.owner == owner:
                return slot
        return None

    def with_slot(self, slot: Slot) -> SlotRecord:
        """In the place of its owner's old one, or at the end."""
        if self.slot_of(slot.owner) is None:
            return replace(self, slots=(*self.slots, slot))
        return replace(self, slots=tuple(slot if s.owner == slot.owner else s for s in self.slots))

    def without(self, owner: str) -> SlotRecord:
        return replace(self, slots=tuple(slot for slot in self.slots if slot.owner != owner))


def encode_slots(kind: str, record: SlotRecord, write: str) -> bytes:
    """Return the JSON of a record; `write` is a nonce that is unique to this write."""
    return encode_document(
        {
            "kind": kind,
            "write": write,
            "fence": record.fence,
            "limit": record.limit,
            "slots": slots_json(record.slots),
        }
    )


def slots_json(slots: tuple[Slot, ...]) -> list[dict[str, Any]]:
    """Return slots as a JSON array."""
    return [
        {
            "owner": slot.owner,
            "role": slot.role,
            "fence": slot.fence,
            "seq": slot.seq,
            "ttl": slot.ttl_s,
            "who": slot.who,
            "since": slot.since,
        }
        for slot in slots
    ]


def decode_slots(kind: str, key: str, value: bytes) -> SlotRecord:
    """Return the record of this JSON. Raises: CorruptRecord."""
    found = decode_document(key, value, kind)
    try:
        fence, limit = found["fence"], found["limit"]
        slots = slots_of(found["slots"])
    except DECODE_ERRORS as error:
        raise CorruptRecord(key, value, f"a {kind} record") from error
    if not (_count(fence) and _count(limit)):
        raise CorruptRecord(key, value, f"a {kind} record")
    return SlotRecord(fence, limit, slots)


def slots_of(found: Any) -> tuple[Slot, ...]:
    """Return the slots in a JSON array. Raises: KeyError, TypeError, ValueError."""
    slots = tuple(
        Slot(
            owner=str(one["owner"]),
            role=str(one["role"]),
            fence=one["fence"],
            seq=one["seq"],
            ttl_s=float(one["ttl"]),
            who=str(one.get("who", "")),
            since=str(one.get("since", "")),
        )
        for one in found
    )
    is_valid = all(
        _count(slot.fence) and _count(slot.seq) and 0 <= slot.ttl_s <= TTL_MAX_S for slot in slots
    )
    if not is_valid or len({slot.owner for slot in slots}) < len(slots):
        raise ValueError("these are no slots")
    return slots


def _count(value: object) -> bool:
    return type(value) is int and 0 <= value <= FENCE_MAX


def slot_name(key: str, owner: str) -> str:
    """Return the name under which a slot is observed (`Sightings`) and claimed."""
    return f"{key}#{owner}"


def is_own(context: RecipeContext, key: str, slot: Slot) -> bool:
    """Return whether this client holds that slot, or is about to take it."""
    return context.holds(slot_name(key, slot.owner), slot.owner)


def slot_left_s(context: RecipeContext, key: str, slot: Slot, since_s: float) -> float:
    """Return for how many seconds at least a slot stands; 0 or less if it may be dropped.

    Arguments:
        slot: of any client.
        since_s: `rules.observer_start_s` of the read that showed it.
    """
    if context.is_own(slot.owner) and not is_own(context, key, slot):
        return 0.0  # a hold of this client that was lost, or an attempt that was given up
    start_s = context.sightings.since_s(slot_name(key, slot.owner), slot.seq, since_s)
    wait_s = context.rules.observer_wait_s(slot.ttl_s)
    return start_s + wait_s - context.clock.monotonic_s()


def check_slot_ttl(context: RecipeContext, ttl_s: float) -> None:
    """Raise Unsupported if no slot can have this TTL. Slots never use a store's own lease clock."""
    p = context.promises
    low_s, high_s = (TTL_MIN_S, TTL_MAX_S) if p.server_lease else (p.ttl_min_s, p.ttl_max_s)
    if not low_s <= ttl_s <= min(high_s, TTL_MAX_S):
        raise Unsupported(f"a slot on {p.store} lives {low_s:g} to {high_s:g} s, not {ttl_s:g} s")
