"""Which gateways are alive, and what follows from it: holds, owners, the readers' horizon, the
floor.

Lives here: the rules, as pure functions of a membership table, with time as an argument. Also the
state that each gateway keeps of its own stamps and readers.

The table is changed in one place. Every commit also checks there whether its gateway is alive. Five
rules make it safe under pauses, delays and skewed clocks:
 1. A gateway is dead when its row is removed. Any gateway may remove a row that saw no heartbeat
    for DEAD_TICKS by the table's own clock. A commit of a dead gateway is refused.
 2. A gateway may read, commit and rely on its holds only for LATE_TICKS, by its own clock. The time
    counts from when it *sent* a heartbeat that the table accepted. So it stops before any other
    gateway can declare it dead, unless its clock runs at half speed.
 3. A row promises a stamp, `lowest`: its gateway commits nothing smaller any more. A new gateway
    begins above every promise that was ever made. So no commit below the smallest promise can
    happen any more; that stamp is the floor.
 4. A reader begins at the floor that its gateway knows. All smaller commits are visible before it
    reads its first record. A row publishes a stamp, `oldest_reader`: no reader that has begun, or
    begins before the next heartbeat, is below it.
 5. A hold belongs to one incarnation of a gateway, and is free again when that row is removed. A
    right that several gateways share keeps out who wants it alone, and the other way round.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Final, Protocol

import msgspec

from strongroom.engines.gateways import GATEWAYS_MAX, STAMP_MAX, GatewayRun, Horizon
from strongroom.values import TICKS_PER_S

LATE_TICKS: Final = 5 * TICKS_PER_S
DEAD_TICKS: Final = 10 * TICKS_PER_S


class Heartbeat(msgspec.Struct, frozen=True):
    """The content of a gateway's last heartbeat.

    Attributes:
        lowest: the gateway commits nothing with a smaller stamp any more.
        oldest_reader: its readers see every commit with a smaller stamp, except readers that have
            named their contents.
        named: the contents that those readers still read.
        announced: what it tells the others, in no format that is known here.
        is_idle: whether it takes no works, since it may not serve yet.
        knows: the newest version of the store's tables that the gateway's program knows.
        time: the gateway's store time when it sent the heartbeat; 0 = it has sent none.
        received_at: when the heartbeat arrived, by the table's clock.
    """

    incarnation: int
    lowest: int
    oldest_reader: int
    named: frozenset[int] = frozenset()
    announced: bytes = b""
    is_idle: bool = False
    # A program of version 1 leaves it out, of all rows, whenever it writes the table.
    knows: int = 1
    time: int = 0
    received_at: int = 0


class MembershipTable(msgspec.Struct, frozen=True):
    """The live gateways of a store and their holds.

    Attributes:
        rows: the live gateways by number.
        holds: the holder of each name.
        highest: the greatest `lowest` that any row ever had.
        incarnations: how many gateways have joined so far.
    """

    rows: Mapping[int, Heartbeat] = {}
    holds: Mapping[bytes, GatewayRun] = {}
    highest: int = 0
    incarnations: int = 0

    @property
    def floor(self) -> int:
        """The stamp below which no commit can happen any more."""
        return min((row.lowest for row in self.rows.values()), default=self.highest)

    def is_live(self, gateway: GatewayRun) -> bool:
        """Return whether the gateway may commit."""
        row = self.rows.get(gateway.number)
        return row is not None and row.incarnation == gateway.incarnation

    def has_ended(self, gateway: GatewayRun) -> bool:
        """Return whether the gateway had joined once, and is gone."""
        return gateway.incarnation <= self.incarnations and not self.is_live(gateway)

    def announced(self, gateway: GatewayRun) -> bytes | None:
        """Return what a live gateway has announced; None if that is nothing."""
        return self.rows[gateway.number].announced or None if self.is_live(gateway) else None

    def owner(self, name: bytes) -> int | None:
        """Return the number of the gateway that should do a work, or None if all are idle. It is
        the same for all gateways that see this table. When a gateway joins or dies, only its own
        works change their owner."""
        working = [number for number, row in self.rows.items() if not row.is_idle]
        return max(working, key=lambda number: _weight(name, number), default=None)

    def horizon(self, number: int) -> Horizon:
        """Return the oldest states that readers of gateways other than `number` may still read."""
        others = [row for other, row in self.rows.items() if other != number]
        stamp = min((row.oldest_reader for row in others), default=STAMP_MAX)
        return Horizon(stamp, frozenset().union(*(row.named for row in others)))


def _weight(name: bytes, number: int) -> bytes:
    return blake2b(name, digest_size=8, key=number.to_bytes(1, "big")).digest()


def join(
    table: MembershipTable, now: int, least: int = 0, knows: int = 1, *, is_idle: bool = False
) -> tuple[MembershipTable, GatewayRun] | None:
    """Add a gateway under the smallest free number. Return None if all numbers are taken.

    Arguments:
        now: the table's clock.
        least: the promise of the new gateway, if it is not below an earlier one.
        knows: see Heartbeat.
        is_idle: see Heartbeat.
    """
    number = next((one for one in range(GATEWAYS_MAX) if one not in table.rows), None)
    if number is None:
        return None
    incarnation = table.incarnations + 1
    lowest = max(table.highest + 1, least)
    floor = min(table.floor, lowest) if table.rows else lowest
    row = Heartbeat(incarnation, lowest, floor, is_idle=is_idle, knows=knows, received_at=now)
    joined = msgspec.structs.replace(
        table,
        rows={**table.rows, number: row},
        highest=lowest,
        incarnations=incarnation,
    )
    return joined, GatewayRun(number, incarnation)


def beat(table: MembershipTable, number: int, row: Heartbeat, now: int) -> MembershipTable | None:
    """Accept a heartbeat that arrived at `now` by the table's clock. Return None if the gateway is
    dead."""
    if not table.is_live(GatewayRun(number, row.incarnation)):
        return None
    before = table.rows[number]
    # Heartbeats may arrive out of order: a promise is never taken back.
    later = msgspec.structs.replace(
        row if row.lowest >= before.lowest else before, received_at=max(now, before.received_at)
    )
    return msgspec.structs.replace(
        table,
        rows={**table.rows, number: later},
        highest=max(table.highest, later.lowest),
    )


def remove_dead(table: MembershipTable, now: int) -> MembershipTable:
    """Declare each gateway dead that sent no heartbeat for DEAD_TICKS, by the table's clock."""
    dead = [number for number, row in table.rows.items() if now - row.received_at > DEAD_TICKS]
    for number in dead:
        table = leave(table, GatewayRun(number, table.rows[number].incarnation))
    return table


def leave(table: MembershipTable, gateway: GatewayRun) -> MembershipTable:
    """Remove a gateway: its commits are refused from now on, and its holds are free."""
    if not table.is_live(gateway):
        return table
    return msgspec.structs.replace(
        table,
        rows={number: row for number, row in table.rows.items() if number != gateway.number},
        holds={name: holder for name, holder in table.holds.items() if holder != gateway},
    )


def grant_hold(table: MembershipTable, name: bytes, gateway: GatewayRun) -> MembershipTable | None:
    """Give the hold to a gateway alone. Return None if anybody has it, or the gateway is dead."""
    if sharers(table, name):
        return None
    return _granted(table, name, gateway)


def grant_share(table: MembershipTable, name: bytes, gateway: GatewayRun) -> MembershipTable | None:
    """Give a gateway its share of the hold, called `shared_name`. Return None if a gateway has the
    hold alone, or this one has a share already or is dead."""
    if name in table.holds:
        return None
    return _granted(table, shared_name(name, gateway.number), gateway)


def sharers(table: MembershipTable, name: bytes) -> list[GatewayRun]:
    """Return the gateways that have a share of the hold, by number."""
    names = (shared_name(name, number) for number in sorted(table.rows))
    return [table.holds[one] for one in names if one in table.holds]


def shared_name(name: bytes, number: int) -> bytes:
    """The name under which the table keeps a gateway's share of a hold."""
    return b"%b shared by %d" % (name, number)


def _granted(table: MembershipTable, name: bytes, gateway: GatewayRun) -> MembershipTable | None:
    if name in table.holds or not table.is_live(gateway):
        return None
    return msgspec.structs.replace(table, holds={**table.holds, name: gateway})


def release_hold(table: MembershipTable, name: bytes, gateway: GatewayRun) -> MembershipTable:
    """Release the hold, if the gateway has it."""
    if table.holds.get(name) != gateway:
        return table
    holds = {other: holder for other, holder in table.holds.items() if other != name}
    return msgspec.structs.replace(table, holds=holds)


class NameHolder(Protocol):
    """A gateway that hands out rights."""

    def has(self, name: bytes) -> bool:
        """Whether it holds `name`, and may rely on it."""
        ...

    def release(self, name: bytes) -> None:
        """Give the name back."""
        ...


class HeldName:
    """The right to a name that one gateway holds, as the contract's ExclusiveRight has it."""

    def __init__(self, gateway: NameHolder, name: bytes) -> None:
        self._gateway = gateway
        self._name = name
        self._lost = self._released = False

    @property
    def is_lost(self) -> bool:
        self._lost = self._lost or not self.is_held
        return self._lost

    @property
    def is_held(self) -> bool:
        return not self._released and self._gateway.has(self._name)

    def release(self) -> None:
        if not self._released:
            self._gateway.release(self._name)
        self._lost = self._released = True


class GatewayReaderMark:
    """A reader in its gateway's state; see gateways.ReaderMark."""

    def __init__(self, state: GatewayState, stamp: int) -> None:
        self._state = state
        self.stamp = stamp
        self.named: frozenset[int] | None = None
        state.marks.add(self)

    def narrow(self, content_ids: Iterable[int]) -> None:
        self.named = frozenset(content_ids)

    def end(self) -> None:
        self._state.marks.discard(self)


class GatewayState:
    """A gateway's own state: its last stamp, its readers, its last heartbeat.

    Arguments:
        gateway: the number and incarnation with which it joined.
        table: the table just after it joined.
        sent: its own clock before it asked to join.
        knows: see Heartbeat.
    """

    def __init__(
        self, gateway: GatewayRun, table: MembershipTable, sent: int, knows: int = 1
    ) -> None:
        self.gateway = gateway
        self._knows = knows
        self.marks: set[GatewayReaderMark] = set()
        row = table.rows[gateway.number]
        self.last_stamp = row.lowest
        self.announced = b""
        self.is_idle = row.is_idle
        self._floor = 0
        self._sent = sent
        self._learn(table)

    def stamp(self, now: int) -> int:
        """Return a new stamp, above all that this gateway gave, saw or promised, and not below
        `now`. Modulo GATEWAYS_MAX it is the gateway's number: no other gateway gives the same
        stamp."""
        least = max(now, self.last_stamp + 1)
        self.last_stamp = least + (self.gateway.number - least) % GATEWAYS_MAX
        return self.last_stamp

    def observe(self, stamp: int) -> None:
        """Take note of a stamp of another gateway, so that later stamps are greater."""
        self.last_stamp = max(self.last_stamp, stamp)

    def heartbeat(self, now: int, in_flight: Iterable[int]) -> Heartbeat:
        """Return the content of the next heartbeat.

        Arguments:
            now: its own clock.
            in_flight: the stamps of its decisions whose outcome it does not know.
        """
        self.observe(now)
        lowest = min((self.last_stamp + 1, *in_flight))
        unnarrowed = [mark.stamp for mark in self.marks if mark.named is None]
        named = (mark.named for mark in self.marks if mark.named is not None)
        oldest = min((self._floor, *unnarrowed))
        return Heartbeat(
            self.gateway.incarnation,
            lowest,
            oldest,
            named=frozenset().union(*named),
            announced=self.announced,
            is_idle=self.is_idle,
            knows=self._knows,
            time=now,
        )

    def heartbeat_accepted(self, table: MembershipTable, sent: int) -> None:
        """Take note that a heartbeat was accepted.

        Arguments:
            table: the table just after that.
            sent: its own clock when it sent the heartbeat.
        """
        self._sent = max(self._sent, sent)
        self._learn(table)

    def heartbeat_age(self, now: int) -> int:
        """Return the ticks since it sent the last heartbeat that was accepted, by its own clock."""
        return now - self._sent

    def is_late(self, now: int) -> bool:
        """Return whether the gateway must stop, because it may have been declared dead."""
        return self.heartbeat_age(now) > LATE_TICKS

    def begin_reading(self) -> GatewayReaderMark:
        """Enter a reader at the floor that the gateway knows, and return its mark."""
        return GatewayReaderMark(self, self._floor)

    def _learn(self, table: MembershipTable) -> None:
        self._floor = max(self._floor, table.floor)
        self.observe(table.highest)
