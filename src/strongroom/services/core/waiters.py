"""The requests at one gateway that wait for one thing, in order of arrival.

Lives here: their line, and the ticket that it has in the line of all gateways (turns.py). While the
gateway is alone there is no ticket. Must not live here: when a waiter tries again (waiting.py).
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

import msgspec

from strongroom.engines.base import Ref, StorageEngine
from strongroom.engines.gateways import GatewayRun
from strongroom.semantics.core import lines
from strongroom.semantics.core.lines import NOBODY, Line, Ticket
from strongroom.services.core.decisions import Found, ReadOne, Reads
from strongroom.services.core.turns import Turn, WriteTicket
from strongroom.store.core import line_keys, records
from strongroom.values import TICKS_PER_S, Purpose


class PlaceInLine:
    """A request's place in a line of this gateway.

    Attributes:
        at_front: is done once all earlier waiters have left.
        ticket: None = the gateway is alone.
    """

    __slots__ = ("at_front", "line", "ticket")

    def __init__(self, line: WaitersLine) -> None:
        self.at_front: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.line = line
        self.ticket: Ticket | None = None
        line.waiters.append(self)
        if line.waiters[0] is self:
            self.at_front.set_result(None)

    async def leave(self, store: StorageEngine) -> None:
        """Raises: EngineError: the ticket may be left; then it counts until its time is over."""
        waiters = self.line.waiters
        was_first = waiters[0] is self
        waiters.remove(self)
        if not waiters:
            await self.line.end(store)
        elif was_first and not waiters[0].at_front.done():
            waiters[0].at_front.set_result(None)


class WaitersLine:
    """The waiters for one thing.

    Attributes:
        thing: the record that has what is waited for.
    """

    def __init__(self, lines_of_all: dict[Ref, WaitersLine], thing: Ref) -> None:
        self.thing: Final = thing
        self.waiters: deque[PlaceInLine] = deque()
        self._lines = lines_of_all
        self._dead: tuple[lines.Run, ...] = ()
        # The gateway's ticket is this one for certain; None = unknown, or none.
        self._written: Ticket | None = None
        # The last of the tickets that may be written; None = there is none.
        self._last: Ticket | None = None

    def turn(self, own: Ticket, line: Line, store: StorageEngine) -> Turn:
        """Return the attempt of the first waiter, who has seen the line of all gateways."""
        runs = {one.run for one in line.tickets}
        has_ended = store.gateways.has_ended
        self._dead = tuple(sorted(run for run in runs if has_ended(GatewayRun(*run))))
        if own.run not in runs:
            self._written = None  # another gateway has taken this one for dead
        elsewhere = lines.waiting_elsewhere(line, own, self._dead, 0)
        waiters = elsewhere and elsewhere + len(self.waiters)
        return Turn(line_keys.line(self.thing), own, self._follower(), self._dead, waiters)

    def _follower(self) -> Ticket | None:
        """The ticket of the second waiter, as it is when the first one has left."""
        left = len(self.waiters) - 1
        ticket = self.waiters[1].ticket if left else None
        return None if ticket is None else msgspec.structs.replace(ticket, waiters=left)

    async def write_ticket(self, store: StorageEngine, own: Ticket, ends_plenty: bool) -> None:
        """Make it the gateway's ticket. Raises: EngineError.

        Arguments:
            ends_plenty: there was plenty of what is waited for, and there is none now.
        """
        if self._written is None or self._written.arrival != own.arrival or ends_plenty:
            ticket = msgspec.structs.replace(own, waiters=len(self.waiters))
            await self._write(store, own, ticket)

    def passed_on(self, follower: Ticket | None, is_certain: bool = True) -> None:
        """Take note that a commit has, or may have, given the first waiter's place to the next
        one."""
        if is_certain:
            self._written = self._last = follower
        else:
            self._written = None
            self._last = max(filter(None, (self._last, follower)), default=None)

    async def end(self, store: StorageEngine) -> None:
        """Remove the line, and the gateway's ticket. Raises: EngineError."""
        if self._lines.get(self.thing) is self:
            del self._lines[self.thing]
        if self._last is not None:
            await self._write(store, self._last, None)

    async def _write(self, store: StorageEngine, own: Ticket, ticket: Ticket | None) -> None:
        self.passed_on(ticket, is_certain=False)
        reads = Reads()
        line = reads.add(line_keys.line(self.thing), records.LINE)
        purpose = Purpose.FREEING if ticket is None else Purpose.UPKEEP
        written = WriteTicket(
            line.ref.partition,
            reads.refs,
            purpose,
            line=line,
            own=own,
            ticket=ticket,
            dead=self._dead,
        )
        await store.update(written.partition, written.reads, written.run, purpose)
        self.passed_on(ticket)


class Waiters:
    """All lines of this gateway, by what is waited for.

    This is disposable state. After it was cleared, waiters in an old line keep their order. Later
    waiters start a new line. The first waiters of both lines are served concurrently.
    """

    def __init__(self) -> None:
        self._lines: dict[Ref, WaitersLine] = {}
        self._last_arrival = 0

    def enter(self, thing: Ref) -> PlaceInLine:
        line = self._lines.get(thing)
        if line is None:
            line = self._lines[thing] = WaitersLine(self._lines, thing)
        return PlaceInLine(line)

    async def ticket(self, store: StorageEngine, left_s: float) -> Ticket:
        """Return a ticket for a waiter who has arrived now, and gives up after `left_s`. Raises:
        EngineError."""
        now = await store.now()
        self._last_arrival = max(now, self._last_arrival + 1)
        until = now + round(left_s * TICKS_PER_S)
        run = store.gateways.run
        return Ticket(self._last_arrival, run.number, run.incarnation, until)


class FirstWaiter:
    """What an attempt of a gateway's first waiter needs of the line of all gateways.

    An attempt reads the line with what else it reads, and lets its decision use the turn:

        first.read(reads)
        found = await services.read(reads)
        turn = await first.turn(found)

    Attributes:
        follower: who was next at the last turn.
        saw_plenty: the line said at the last turn that there is plenty.
        found_plenty: the waiter has seen itself that there is plenty.
    """

    def __init__(self, store: StorageEngine, line: WaitersLine, own: Ticket) -> None:
        self._store = store
        self._line = line
        self._own = own
        self._read: ReadOne[Line] | None = None
        self.follower: Ticket | None = None
        self.saw_plenty = self.found_plenty = False

    def read(self, reads: Reads) -> None:
        self._read = reads.add(line_keys.line(self._line.thing), records.LINE)

    async def turn(self, found: Found) -> Turn:
        """Raises: NotInTurn."""
        assert self._read is not None
        line = found[self._read] or NOBODY
        self.saw_plenty = line.plenty
        turn = self._line.turn(self._own, line, self._store)
        if lines.first_ahead(line, self._own, turn.dead, 0) is not None:
            # Whether a ticket has ended is asked only if there is one.
            turn.check(found, self._read, await self._store.now())
        self.follower, self.found_plenty = turn.follower, False
        return turn

    def turn_with_plenty(self, turn: Turn) -> Turn:
        """Return a turn of a waiter that has seen more than all waiters need."""
        self.found_plenty = True
        return msgspec.structs.replace(turn, plenty=True)
