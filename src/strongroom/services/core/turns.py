"""Turns over all gateways: a waiting request gets what it waits for only if it is first in line.

Lives here: the decisions that check it, pass the place on, and write a gateway's ticket. Must not
live here: the rules of the line (semantics/core/lines.py), the waiters of one gateway (waiters.py).

Correctness never depends on the line. It decides only which of several waiters is granted first.
Its record (line_keys.py) exists only while requests wait, and only if several gateways serve.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

import msgspec

from strongroom.engines.base import Commit, Ref, Step, Write
from strongroom.semantics.core import lines
from strongroom.semantics.core.lines import NOBODY, Line, Run, Ticket
from strongroom.services.core.decisions import Decision, Found, ReadOne, Reads
from strongroom.store.core import records
from strongroom.values import TICKS_PER_S

T = TypeVar("T")

# A gateway may die without any change of a record. So whoever is not first looks again so often.
_POLL_TICKS: Final = TICKS_PER_S


class NotInTurn(Exception):
    """Another gateway's waiter is first. Try again when the line has changed, or at `until`.

    Arguments:
        watched: the line, and its version.
    """

    def __init__(self, watched: tuple[Ref, int | None], now: int, until: int) -> None:
        super().__init__("another gateway's waiter is first")
        self.watched = watched
        self.now = now
        self.until = until


class Turn(msgspec.Struct, frozen=True):
    """An attempt of a gateway's first waiter. It is a value, so that decisions can keep it.

    Attributes:
        line: where the line is recorded.
        own: the waiter's ticket, whether it is written or not.
        follower: the ticket of the gateway's next waiter; None = there is none.
        dead: the gateways with tickets that were declared dead.
        waiters: how many wait at all gateways; 0 = none waits at another one.
        plenty: whether there is more than these need, as far as the waiter has seen.
    """

    line: Ref
    own: Ticket
    follower: Ticket | None
    dead: tuple[Run, ...]
    waiters: int = 0
    plenty: bool = False

    def check(self, found: Found, line: ReadOne[Line], now: int) -> None:
        """Raises: NotInTurn."""
        ahead = lines.first_ahead(found[line] or NOBODY, self.own, self.dead, now)
        if ahead is not None:
            until = min(ahead.until, now + _POLL_TICKS)
            raise NotInTurn((line.ref, found.version(line)), now, until)

    def passed_on(self, found: Found, line: ReadOne[Line], now: int) -> tuple[Step, ...]:
        """The step by which the gateway's place goes to its next waiter; none if there is no
        change. It belongs to the commit that grants what was waited for.

        While there is plenty, tickets stay as they are: so gateways do not hold up each other.
        """
        before = found[line] or NOBODY
        if before.plenty and self.plenty:
            return ()
        after = lines.with_ticket(before, self.own, self.follower, self.dead, now)
        return change(line.ref, before, msgspec.structs.replace(after, plenty=self.plenty))


def change(ref: Ref, before: Line, after: Line) -> tuple[Step, ...]:
    """The step that writes a line; none if it does not change."""
    if after == before or not (after.tickets or before.tickets):
        return ()
    value = records.LINE.encode(after) if after.tickets else None
    return (Step(ref.partition, (Write(ref.key, value),)),)


class InTurn(Decision[T], Generic[T], frozen=True):
    """A decision that gets something for a waiter: it is refused before the waiter's turn."""

    inner: Decision[T]
    turn: Turn
    line: ReadOne[Line]

    @classmethod
    def of(cls, inner: Decision[T], turn: Turn) -> InTurn[T]:
        reads = Reads(inner.reads)
        line = reads.add(turn.line, records.LINE)
        return cls(inner.partition, reads.refs, inner.purpose, inner, turn, line)

    def decide(self, found: Found, stamp: int) -> Commit[T]:
        """A refusal by the decision itself comes first. One that changes nothing needs no turn: the
        caller has already what it waits for."""
        commit = self.inner.decide(found, stamp)
        if commit.steps:
            self.turn.check(found, self.line, stamp)
        passed_on = self.turn.passed_on(found, self.line, stamp)
        return Commit(commit.result, (*commit.steps, *passed_on))


class WriteTicket(Decision[None], frozen=True):
    """See lines.with_ticket."""

    line: ReadOne[Line]
    own: Ticket
    ticket: Ticket | None
    dead: tuple[Run, ...]

    def decide(self, found: Found, stamp: int) -> Commit[None]:
        before = found[self.line] or NOBODY
        after = lines.with_ticket(before, self.own, self.ticket, self.dead, stamp)
        return Commit(None, change(self.line.ref, before, after))
