"""The core of barriers: the record in the store, and the steps of one party's arrival.

    {"kind": "barrier", "write": "...", "generation": 3, "parties": 16, "slots": [...],
     "tripped": [[2, ["nonce", ...]], ...]}

Each party that has arrived has a slot. It renews the slot while it waits; the slot expires as in
slots/slot_records.py. The barrier trips when there are as many living slots as parties. One write,
by any of the parties, begins the next generation. The same write keeps the list of the parties that
were in, in order of arrival. So all parties of a generation leave, or none does.

The party that trips the barrier must know that the others are alive. A slot that was there at its
first read may belong to a dead party. A slot that appeared, or was renewed, since then does not. So
the party that has waited longest trips at once. A party that finds only dead slots waits until they
expire. Must not live here: the classes for users (barrier.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from strongroom.coordination.effects import (
    UNCHANGED,
    Applied,
    Entry,
    Sleep,
    Steps,
    Unknown,
    cas,
    get,
)
from strongroom.coordination.errors import (
    CoordinationError,
    CoordTimeout,
    CorruptRecord,
    StoreUnavailable,
    Unsupported,
    waited_in_vain,
)
from strongroom.coordination.options.arguments import count, waiting_time
from strongroom.coordination.recipes.slots.slot_records import (
    SLOTS_MAX,
    Slot,
    slot_left_s,
    slot_name,
    slots_json,
    slots_of,
)
from strongroom.coordination.recipes.waiting import Backoff, ReleaseRetries, await_change
from strongroom.coordination.schema.records import DECODE_ERRORS, decode_document, encode_document
from strongroom.coordination.session.context import RecipeContext

KIND: Final = "barrier"
_TRIPS_MAX: Final = 64
_OWNERS_MAX: Final = 400
"""The record remembers so many trips, or those of so many parties, whichever is less."""
_LOST_RACES_MAX: Final = 3
_RECHECK_S: Final = 1.0


class BarrierBroken(CoordinationError):
    """The barrier tripped without this party, which had been away for longer than its TTL.

    Or it tripped so many generations ago that the record has forgotten whether this party was in.
    `known` is False then.

    Arguments:
        name: of the barrier.
        generation: the one that this party had arrived for.
        known: whether the record still lists the parties of that generation, and this one is not
            in.
    """

    def __init__(self, name: str, generation: int, known: bool) -> None:
        self.name, self.generation, self.known = name, generation, known
        how = "without this party, whose place had expired"
        if not known:
            how = "so long ago that the record has forgotten whether this party was in"
        super().__init__(f"{name!r} went on from generation {generation} {how}")


class PartiesDiffer(Unsupported):
    """Other parties wait at this barrier and give another number of parties.

    Arguments:
        name: of the barrier.
        wanted: the number that this client gives.
        found: the number that the waiting parties give.
    """

    def __init__(self, name: str, wanted: int, found: int) -> None:
        self.name, self.wanted, self.found = name, wanted, found
        super().__init__(f"{name!r} waits for {found} parties, not for {wanted}")


@dataclass(frozen=True, slots=True)
class BarrierRecord:
    """A barrier's record; see the module's docstring."""

    generation: int = 1
    parties: int = 0
    slots: tuple[Slot, ...] = ()
    tripped: tuple[tuple[int, tuple[str, ...]], ...] = ()

    def index_of(self, owner: str) -> int | None:
        """Return a nonce's place among the parties that were let go; None if it is not there."""
        for _, owners in self.tripped:
            if owner in owners:
                return owners.index(owner)
        return None

    def lists_generation(self, generation: int) -> bool:
        """Return whether the record still lists the parties that were let go from a generation."""
        return any(generation == tripped for tripped, _ in self.tripped)

    def next_generation(self) -> BarrierRecord:
        """Return the record of the next generation, which lets the parties of this one go."""
        trip = (self.generation, tuple(slot.owner for slot in self.slots))
        kept_count = max(1, min(_TRIPS_MAX, _OWNERS_MAX // len(self.slots)))
        tripped = (*self.tripped, trip)[-kept_count:]
        return replace(self, generation=self.generation + 1, slots=(), tripped=tripped)


def encode_barrier(record: BarrierRecord, write: str) -> bytes:
    """Return the JSON of a record; `write` is a nonce that is unique to this write."""
    return encode_document(
        {
            "kind": KIND,
            "write": write,
            "generation": record.generation,
            "parties": record.parties,
            "slots": slots_json(record.slots),
            "tripped": [[generation, list(owners)] for generation, owners in record.tripped],
        }
    )


def decode_barrier(key: str, value: bytes) -> BarrierRecord:
    """Return the record of this JSON. Raises: CorruptRecord."""
    found = decode_document(key, value, KIND)
    try:
        record = BarrierRecord(
            generation=found["generation"],
            parties=found["parties"],
            slots=slots_of(found["slots"]),
            tripped=tuple(_trip(trip) for trip in found["tripped"]),
        )
    except DECODE_ERRORS as error:
        raise CorruptRecord(key, value, "a barrier record") from error
    if type(record.generation) is not int or type(record.parties) is not int:
        raise CorruptRecord(key, value, "a barrier record")
    return record


def _trip(found: Any) -> tuple[int, tuple[str, ...]]:
    generation, owners = found
    return int(generation), tuple(str(owner) for owner in owners)


class _ObservedRecord(NamedTuple):
    entry: Entry | None
    record: BarrierRecord
    since_s: float

    @property
    def version(self) -> str | None:
        return None if self.entry is None else self.entry.version


class _Wait(NamedTuple):
    seconds: float


class Arrival:
    """The arrival of one party, and its wait until the barrier trips.

    Arguments:
        key, name: of the barrier.
        parties: how many must arrive.
        ttl_s: how long the party's slot lasts without renewal.
    """

    def __init__(
        self, context: RecipeContext, key: str, name: str, parties: int, ttl_s: float
    ) -> None:
        self._context, self._key, self._name = context, key, name
        self._parties, self._ttl_s = parties, ttl_s
        self.nonce = context.nonce()
        self._slot_name = slot_name(key, self.nonce)
        self._backoff = Backoff(context)
        self._timeout_s = context.rules.attempt_timeout_s(ttl_s)
        self._seq = 0
        self._renewed_s = 0.0
        self._generation: int | None = None  # the last one with a slot of this party
        self._has_unknown_write = False
        self._unknown_write_version: str | None = None
        self._seqs_at_first_read: dict[str, int] | None = None
        self._races = 0

    def steps(self, timeout_s: float | None) -> Steps[int]:
        """Arrive, wait until all parties are there, and return the place in order of arrival.

        Arguments:
            timeout_s: the longest wait; None = for ever.

        Raises: as `Barrier.wait`. The wait goes on while the store does not answer.
        """
        context, timeout_s = self._context, waiting_time("timeout", timeout_s)
        context.claim(self._slot_name, self.nonce)
        try:
            start_s = context.clock.monotonic_s()
            index = yield from self._wait_for_trip(start_s, timeout_s)
            if index is None:
                index = yield from self._withdraw()
            if index is None:
                waited_s = context.clock.monotonic_s() - start_s
                raise waited_in_vain("barrier", "did not fill", self._name, waited_s)
            return index
        except (GeneratorExit, CoordTimeout):
            raise
        except BaseException:
            yield from self._withdraw()
            raise
        finally:
            context.unclaim(self._slot_name, self.nonce)

    def _wait_for_trip(self, start_s: float, timeout_s: float | None) -> Steps[int | None]:
        observed: _ObservedRecord | None = None
        clock = self._context.clock
        while True:
            left_s = float("inf")
            if timeout_s is not None:
                left_s = start_s + timeout_s - clock.monotonic_s()
            if observed is None:
                observed = yield from self._read()
            if observed is None:
                if left_s <= 0:
                    return None
                yield Sleep(min(left_s, self._backoff.retry_delay_s()))
                continue
            index = observed.record.index_of(self.nonce)
            if index is not None:
                return index
            step = self._decide(observed)
            if left_s <= 0 and (isinstance(step, _Wait) or self._seq > _LOST_RACES_MAX):
                return None
            if isinstance(step, _Wait):
                observed = yield from self._await(observed, min(step.seconds, left_s))
            else:
                yield from self._write(observed, step)
                observed = None

    # Reading

    def _read(self) -> Steps[_ObservedRecord | None]:
        sent_s = self._context.clock.monotonic_s()
        try:
            entry = yield from get(self._key, self._timeout_s)
        except StoreUnavailable as error:
            self._context.outage.note_failure(error)
            return None
        return self._observed(entry, sent_s)

    def _observed(self, entry: Entry | None, sent_s: float) -> _ObservedRecord:
        context = self._context
        since_s = context.rules.observer_start_s(sent_s, context.clock.monotonic_s())
        record = BarrierRecord() if entry is None else decode_barrier(self._key, entry.value)
        if self._seqs_at_first_read is None:
            self._seqs_at_first_read = {slot.owner: slot.seq for slot in record.slots}
        return _ObservedRecord(entry, record, since_s)

    def _await(self, observed: _ObservedRecord, seconds: float) -> Steps[_ObservedRecord]:
        sent_s = self._context.clock.monotonic_s()
        outcome = yield from await_change(
            self._context, self._key, observed.version, seconds, self._backoff, self._timeout_s
        )
        if outcome is UNCHANGED:
            return observed
        if outcome is None or outcome.version != observed.version:
            self._backoff.reset()
        return self._observed(outcome, sent_s)

    # Deciding

    def _decide(self, observed: _ObservedRecord) -> _Wait | BarrierRecord:
        """Return the record to write now, or for how long there is nothing to do."""
        context, record = self._context, observed.record
        has_own_slot = any(slot.owner == self.nonce for slot in record.slots)
        if has_own_slot:
            self._generation = record.generation
        elif self._generation is not None and self._generation != record.generation:
            known = record.lists_generation(self._generation)
            raise BarrierBroken(self._name, self._generation, known)
        left_by_owner_s = {
            slot.owner: slot_left_s(context, self._key, slot, observed.since_s)
            for slot in record.slots
            if slot.owner != self.nonce
        }
        others = tuple(slot for slot in record.slots if left_by_owner_s.get(slot.owner, 0.0) > 0)
        if others and record.parties != self._parties:
            raise PartiesDiffer(self._name, self._parties, record.parties)
        alive = tuple(s for s in record.slots if s.owner == self.nonce or s in others)
        after = replace(record, parties=self._parties, slots=alive)
        if not has_own_slot:
            if len(others) >= self._parties:
                return _Wait(min(left_by_owner_s[slot.owner] for slot in others))
            after = self._renewed(after)
        if len(after.slots) == self._parties and all(map(self._is_alive, others)):
            return after.next_generation()
        if not has_own_slot:
            return after
        due_s = self._renewed_s - context.clock.boot_s()
        if due_s <= 0:
            return self._renewed(after)
        return _Wait(min(due_s, _RECHECK_S))

    def _is_alive(self, slot: Slot) -> bool:
        """Return whether a slot was written since this party's first read."""
        assert self._seqs_at_first_read is not None
        return self._seqs_at_first_read.get(slot.owner) != slot.seq

    def _renewed(self, record: BarrierRecord) -> BarrierRecord:
        """Return the record with this party's slot renewed, in its place or at the end.

        A renewal keeps the time of arrival: inspection tells the slots of equal labels apart by it.
        """
        self._seq += 1
        context = self._context
        rules, clock = context.rules, context.clock
        self._renewed_s = clock.boot_s() + rules.renew_after_s(self._ttl_s, clock.random())
        own_slot = next((slot for slot in record.slots if slot.owner == self.nonce), None)
        since = clock.wall_text() if own_slot is None else own_slot.since
        slot = Slot(self.nonce, "party", 0, self._seq, self._ttl_s, context.label, since)
        if own_slot is None:
            return replace(record, slots=(*record.slots, slot))
        return replace(record, slots=tuple(slot if s is own_slot else s for s in record.slots))

    # Writing

    def _write(self, observed: _ObservedRecord, record: BarrierRecord) -> Steps[None]:
        value = encode_barrier(record, self._context.nonce())
        try:
            outcome = yield from cas(self._key, observed.version, value, self._timeout_s)
        except StoreUnavailable:
            self._renewed_s = 0.0
            yield Sleep(self._backoff.retry_delay_s())
            return
        except BaseException as error:
            if not isinstance(error, CoordinationError):
                # Interrupted: the answer is lost, and the write may still be applied.
                self._has_unknown_write, self._unknown_write_version = True, observed.version
            raise
        if isinstance(outcome, Applied):
            self._backoff.reset()
            self._races = 0
            self._generation = observed.record.generation
            return
        self._renewed_s = 0.0
        if isinstance(outcome, Unknown):
            self._has_unknown_write, self._unknown_write_version = True, observed.version
            yield Sleep(self._backoff.retry_delay_s())
            return
        self._races += 1
        if self._races > _LOST_RACES_MAX:
            yield Sleep(self._backoff.retry_delay_s())

    def _withdraw(self) -> Steps[int | None]:
        """Give up this party's place; return the place if the barrier tripped with it meanwhile.

        It is tried again for a while if the store does not answer, as a release is. The others
        would go on with a party that has given up.
        """
        if self._generation is None and not self._has_unknown_write:
            return None
        retries = ReleaseRetries(self._context, self._ttl_s)
        while retries.begin_attempt():
            try:
                observed = yield from self._read()
                if observed is None:
                    yield retries.pause(is_failure=True)
                    continue
                index = observed.record.index_of(self.nonce)
                slots = tuple(s for s in observed.record.slots if s.owner != self.nonce)
                may_still_apply = (
                    self._has_unknown_write and observed.version == self._unknown_write_version
                )
                if index is not None or (
                    len(slots) == len(observed.record.slots) and not may_still_apply
                ):
                    return index
                value = encode_barrier(replace(observed.record, slots=slots), self._context.nonce())
                outcome = yield from cas(self._key, observed.version, value, self._timeout_s)
            except StoreUnavailable:
                yield retries.pause(is_failure=True)
                continue
            except CoordinationError:
                return None
            if isinstance(outcome, Applied):
                return None
            yield retries.pause_after(outcome, observed.version)
        return None


def check_parties(parties: int) -> int:
    """Return the number of parties if a barrier can have so many. Raises: Unsupported."""
    if not 1 <= count("parties", parties) <= SLOTS_MAX:
        raise Unsupported(f"a barrier has 1 to {SLOTS_MAX} parties, not {parties}")
    return count("parties", parties)
