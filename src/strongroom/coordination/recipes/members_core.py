"""The core of group membership: one record per member, renewed while the member lives.

    members/<group, escaped>.<nonce>
    {"kind": "member", "owner": "9f86d081884c7d65-1", "seq": 7, "ttl": 15, "who": "host:4711",
     "since": "2026-11-21T08:00:00.000Z", "data": ...}

Each member has a key of its own, so that hundreds of members share no record. An observer takes a
member for dead when it has seen the same `seq` for `rules.observer_wait_s` (clock_rules.py says
why). It then deletes the very version that it saw. A renewal in between makes the deletion fail, so
no living member is removed. A membership carries no fence. Must not live here: the classes for
users (members.py).
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import Any, Final, Literal

from strongroom.coordination.effects import (
    UNCHANGED,
    Applied,
    Entry,
    Sleep,
    Steps,
    Unknown,
    cas,
    delete,
    get,
    list_keys,
)
from strongroom.coordination.errors import (
    CoordinationError,
    CorruptRecord,
    StoreUnavailable,
    Unsupported,
)
from strongroom.coordination.options.arguments import delay, waiting_time
from strongroom.coordination.recipes.slots.slot_records import TTL_MAX_S, slot_name
from strongroom.coordination.recipes.waiting import Backoff, ReleaseRetries, await_change
from strongroom.coordination.schema.names import key_of
from strongroom.coordination.schema.records import DECODE_ERRORS, decode_document, encode_document
from strongroom.coordination.session.context import RecipeContext
from strongroom.coordination.session.handles import Hold

DATA_BYTES_MAX: Final = 60 * 1024
KIND: Final = "members"
_RECORD_KIND: Final = "member"
_NONCE: Final = re.compile(r"[0-9a-f]{16}-[0-9]+")
_ATTEMPT_S: Final = 1.5
_TRIES: Final = 8
_ALERT_S: Final = 20.0
_REMOVED: Final = "its record was removed"


@dataclass(frozen=True, slots=True)
class Member:
    """A member's state at one read.

    Attributes:
        nonce: names this membership.
        data: the data that the member published.
        who: the member's label, for people.
        since: when it joined, by its own clock, for people.
        seq: counts its writes.
        ttl_s: the member is taken for dead a little more than this time after its last renewal.
    """

    nonce: str
    data: Any
    who: str
    since: str
    seq: int
    ttl_s: float


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a member: it joined, has other data, or left (or died)."""

    what: Literal["joined", "changed", "left"]
    member: Member


def group_prefix(group: str) -> str:
    """Return the prefix of the keys of a group's members. Raises: BadName."""
    return key_of(KIND, group) + "."


def nonce_of(prefix: str, key: str) -> str | None:
    """Return the member's nonce; None if the key belongs to another group ("a.b" beside "a")."""
    nonce = key.removeprefix(prefix)
    return nonce if _NONCE.fullmatch(nonce) else None


def checked_data(data: Any) -> Any:
    """Return a member's data if it can be stored.

    Raises: Unsupported if it is too long; TypeError, ValueError if JSON cannot hold it.
    """
    length = len(encode_document({"data": data}))
    if length > DATA_BYTES_MAX:
        raise Unsupported(
            f"a member tells at most {DATA_BYTES_MAX} bytes of JSON, not {length}: put the rest"
            " elsewhere, and tell where"
        )
    return data


def encode_member(member: Member) -> bytes:
    """Return the JSON of a member's record."""
    return encode_document(
        {
            "kind": _RECORD_KIND,
            "owner": member.nonce,
            "seq": member.seq,
            "ttl": member.ttl_s,
            "who": member.who,
            "since": member.since,
            "data": member.data,
        }
    )


def decode_member(key: str, value: bytes) -> Member:
    """Return the member of a JSON record. Raises: CorruptRecord."""
    found = decode_document(key, value, _RECORD_KIND)
    try:
        member = Member(
            nonce=str(found["owner"]),
            data=found["data"],
            who=str(found.get("who", "")),
            since=str(found.get("since", "")),
            seq=found["seq"],
            ttl_s=float(found["ttl"]),
        )
    except DECODE_ERRORS as error:
        raise CorruptRecord(key, value, "a member's record") from error
    if type(member.seq) is not int or not 0 <= member.ttl_s <= TTL_MAX_S:
        raise CorruptRecord(key, value, "a member's record")
    return member


def join_steps(context: RecipeContext, group: str, data: Any, ttl_s: float) -> Steps[Hold]:
    """Become a member; return the hold. Raises: StoreUnavailable, after several tries."""
    nonce = context.nonce()
    keeper = MemberKeeper(context, group, nonce, data, ttl_s)
    context.claim(slot_name(keeper.key, nonce), nonce)
    hold = Hold(context.clock, keeper.key, group, nonce, 0, ttl_s, float("-inf"), keeper)
    joined = False
    try:
        yield from keeper.join(hold)
        joined = True
    except GeneratorExit:
        raise
    except BaseException:
        yield from keeper.release(hold)
        raise
    finally:
        if not joined:
            keeper.unclaim_when_over()
    hold.on_end = keeper.unclaim_when_over
    return hold


class MemberKeeper:
    """The keeper of one membership: writes, renews and deletes its record."""

    def __init__(
        self, context: RecipeContext, group: str, nonce: str, data: Any, ttl_s: float
    ) -> None:
        self._context, self._nonce, self._ttl_s = context, nonce, ttl_s
        self.data = checked_data(data)
        self.key = key_of(KIND, f"{group}.{nonce}")
        group_prefix(group)
        self._since = context.clock.wall_text()
        self._version: str | None = None
        self._joined = False
        self._numbers = itertools.count(1)
        self._sent: dict[int, float] = {}
        self._timeout_s = context.rules.attempt_timeout_s(ttl_s)

    def unclaim_when_over(self) -> None:
        """Drop the claim on the key, when the membership is lost or about to be given up."""
        self._context.unclaim(slot_name(self.key, self._nonce), self._nonce)

    def join(self, hold: Hold) -> Steps[None]:
        """Write the record for the first time, and set the hold's deadline."""
        backoff = Backoff(self._context)
        last = StoreUnavailable(f"{hold.name!r} could not be joined: no answer came in time")
        for attempt in range(_TRIES):
            if attempt:
                yield Sleep(backoff.retry_delay_s())
            try:
                if (yield from self._store(hold)) and hold.remaining_s() > 0:
                    self._joined = True
                    return
            except StoreUnavailable as error:
                last = error
        raise last

    def renew(self, hold: Hold) -> Steps[bool]:
        try:
            is_stored = yield from self._store(hold)
        except StoreUnavailable as error:
            hold.last_error = str(error) or "the store did not answer"
            return False
        return is_stored and hold.active

    def update(self, hold: Hold, data: Any) -> Steps[bool]:
        """Return whether the new data is known to be stored."""
        # Data that cannot be stored must not get into the renewals either.
        self.data = checked_data(data)
        backoff = Backoff(self._context)
        for attempt in range(_TRIES):
            if attempt:
                yield Sleep(backoff.retry_delay_s())
            if not hold.active:
                return False
            if (yield from self.renew(hold)):
                return True
        return False

    def _store(self, hold: Hold) -> Steps[bool]:
        """Write the record once; return whether this very write is known to be applied."""
        context = self._context
        seq = next(self._numbers)
        member = Member(self._nonce, self.data, context.label, self._since, seq, self._ttl_s)
        sent_s = self._sent[seq] = context.clock.boot_s()
        expected = self._version
        outcome = yield from cas(self.key, expected, encode_member(member), self._timeout_s)
        if isinstance(outcome, Applied):
            self._version = outcome.version
            self._prolong(hold, seq, sent_s)
            return True
        entry = yield from get(self.key, self._timeout_s)
        if entry is None:
            if expected is not None:
                hold.lose(_REMOVED)
            return False
        if entry.version == expected:
            return False  # not applied, or not yet; the next try will tell
        # Only this client writes the record: this is a write of ours whose answer was lost.
        self._version = entry.version
        applied = decode_member(self.key, entry.value)
        applied_sent_s = self._sent.get(applied.seq)
        if applied_sent_s is not None:
            self._prolong(hold, applied.seq, applied_sent_s)
        return applied.seq == seq

    def _prolong(self, hold: Hold, seq: int, sent_s: float) -> None:
        clock, rules = self._context.clock, self._context.rules
        deadline_s = rules.holder_deadline_s(sent_s, clock.boot_s(), self._ttl_s, False)
        self._sent = {number: at for number, at in list(self._sent.items()) if number > seq}
        if self._joined:
            hold.extend(deadline_s)
        else:
            hold.deadline_s = deadline_s

    def release(self, hold: Hold) -> Steps[bool]:
        """After a failure the record is left to expire."""
        outcome_unknown, retries = False, ReleaseRetries(self._context, self._ttl_s)
        while retries.begin_attempt():
            try:
                entry = yield from get(self.key, retries.timeout_s)
                if entry is None:
                    return outcome_unknown
                outcome = yield from delete(self.key, entry.version, retries.timeout_s)
            except StoreUnavailable:
                yield retries.pause(is_failure=True)
                continue
            except CoordinationError:
                return False
            if isinstance(outcome, Applied):
                return True
            outcome_unknown = outcome_unknown or isinstance(outcome, Unknown)
            yield retries.pause_after(outcome, entry.version)
        return False

    def watch_for_loss(self, hold: Hold) -> Steps[None]:
        """End the hold if the record is removed."""
        backoff = Backoff(self._context)
        version = self._version
        while hold.active:
            outcome = yield from await_change(
                self._context, self.key, version, _ALERT_S, backoff, self._timeout_s
            )
            if outcome is None:
                hold.lose(_REMOVED)
            elif outcome is not UNCHANGED:
                version = outcome.version


class GroupObserver:
    """One observer's view of a group. It reads a member again no more often than the member
    renews."""

    def __init__(self, context: RecipeContext, group: str) -> None:
        self._context, self._prefix = context, group_prefix(group)
        self._read_s: dict[str, float] = {}
        self.members: dict[str, Member] = {}

    def refresh(self, every_s: float = 0.0) -> Steps[list[Change]]:
        """Read the group; return what has changed since the last call.

        Arguments:
            every_s: if more than 0, a member is not read again before this time and a third of its
                TTL have passed. Its data may be that old.

        Raises:
            StoreUnavailable, StoreRefused: the store did not answer, or refused. `members` is
                unchanged.
        """
        keys = yield from list_keys(self._prefix, _ATTEMPT_S)
        before = self.members
        found: dict[str, Member] = {}
        for key in keys:
            if nonce_of(self._prefix, key) is None:
                continue
            member = yield from self._member(key, every_s)
            if member is not None:
                found[key] = member
        self.members = found
        self._read_s = {key: at for key, at in self._read_s.items() if key in found}
        return _changes(before, found)

    def changed(self, timeout_s: float | None, every_s: float) -> Steps[list[Change]]:
        """Wait until the group has changed; return the changes, or none if the time is over.

        Arguments:
            timeout_s: the longest wait; None = for ever. The wait goes on while the store does not
                answer.
            every_s: how often to read the group.
        """
        timeout_s, every_s = waiting_time("timeout", timeout_s), delay("every", every_s)
        clock, backoff = self._context.clock, Backoff(self._context)
        start_s = clock.monotonic_s()
        while True:
            pause_s = every_s
            try:
                changes = yield from self.refresh(every_s)
                if changes:
                    return changes
            except StoreUnavailable as error:
                pause_s = max(every_s, backoff.retry_delay_s(error))
            if timeout_s is not None:
                left_s = start_s + timeout_s - clock.monotonic_s()
                if left_s <= 0:
                    return []
                pause_s = min(pause_s, left_s)
            yield Sleep(pause_s)

    def _member(self, key: str, every_s: float) -> Steps[Member | None]:
        clock = self._context.clock
        known, now_s = self.members.get(key), clock.monotonic_s()
        if known is not None and every_s > 0:
            next_read_s = self._read_s[key] + max(every_s, known.ttl_s / 3)
            if now_s < next_read_s:
                return known
        entry = yield from get(key, _ATTEMPT_S)
        if entry is None:
            return None
        try:
            member = decode_member(key, entry.value)
        except CorruptRecord:
            return None  # no member wrote this record, and the others must still be shown
        received_s = clock.monotonic_s()
        self._read_s[key] = received_s
        since_s = self._context.rules.observer_start_s(now_s, received_s)
        if self._left_s(key, member, since_s) > 0:
            return member
        yield from self._delete_dead(key, entry)
        return None

    def _left_s(self, key: str, member: Member, since_s: float) -> float:
        context, slot = self._context, slot_name(key, member.nonce)
        if member.nonce.startswith(f"{context.identity}-"):
            return 1.0 if context.holds(slot, member.nonce) else 0.0
        start_s = context.sightings.since_s(slot, member.seq, since_s)
        wait_s = context.rules.observer_wait_s(member.ttl_s)
        return start_s + wait_s - context.clock.monotonic_s()

    def _delete_dead(self, key: str, entry: Entry) -> Steps[None]:
        """Delete a dead member's record. If that fails, the next observer deletes it."""
        try:
            yield from delete(key, entry.version, _ATTEMPT_S)
        except CoordinationError:
            return


def _changes(before: dict[str, Member], after: dict[str, Member]) -> list[Change]:
    changes = [Change("left", before[key]) for key in before if key not in after]
    for key, member in after.items():
        if key not in before:
            changes.append(Change("joined", member))
        elif before[key].data != member.data:
            changes.append(Change("changed", member))
    return changes
