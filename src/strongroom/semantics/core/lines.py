"""The line of the gateways at which requests wait for one thing: a lease, or a queue's messages.

Lives here: the rules of the line, as pure functions. Must not live here: the line of the requests
at one gateway (services/core/waiting.py). The waiting is ours (`x-strongroom-wait`).

Each gateway has one ticket at most, for its first waiter. A waiter has its turn when no ticket of
another live gateway is from an earlier arrival. A ticket that its gateway could not remove counts
until the time of its waiter is over.

There may be plenty of what is waited for: more messages than waiters. Then every gateway serves its
waiters at its own pace, since nobody takes anything from somebody else.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

Run = tuple[int, int]
"""The number and the incarnation of a gateway."""


class Ticket(msgspec.Struct, frozen=True, array_like=True, gc=False, order=True):
    """The place of a gateway's first waiter; the smaller one is first.

    Attributes:
        arrival: when the waiter arrived, in store time. No two tickets of a gateway have the same.
        until: when the waiter gives up at the latest.
        waiters: how many waited at the gateway when the ticket was written.
    """

    arrival: int
    number: int
    incarnation: int
    until: int
    waiters: int = 1

    @property
    def run(self) -> Run:
        return self.number, self.incarnation


class Line(msgspec.Struct, frozen=True, array_like=True):
    """The tickets of all gateways with waiters for one thing, the first one first.

    `plenty`: whoever was served last has seen more than all waiters need.
    """

    tickets: tuple[Ticket, ...] = ()
    plenty: bool = False


NOBODY = Line()


def first_ahead(line: Line, own: Ticket, dead: Collection[Run], now: int) -> Ticket | None:
    """Return the first ticket of another gateway that is before `own`. None = it is its turn, or
    there is plenty.

    Arguments:
        dead: gateways that were declared dead; all others count as live.
    """
    if line.plenty:
        return None
    ahead = (one for one in _valid(line, dead, now) if one < own and one.run != own.run)
    return min(ahead, default=None)


def with_ticket(
    line: Line, own: Ticket, ticket: Ticket | None, dead: Collection[Run], now: int
) -> Line:
    """Return the line in which `ticket` replaces what stands for `own` or an earlier waiter of its
    gateway. None = nobody waits there any more. Tickets without effect are left out.

    A later waiter's ticket stays: it belongs to a line of the gateway that began meanwhile.
    """
    kept = [
        one for one in _valid(line, dead, now) if one.run != own.run or one.arrival > own.arrival
    ]
    if ticket is not None and all(one.run != own.run for one in kept):
        kept.append(ticket)
    return Line(tuple(sorted(kept)))


def waiting_elsewhere(line: Line, own: Ticket, dead: Collection[Run], now: int) -> int:
    """The number of waiters at other gateways."""
    return sum(one.waiters for one in _valid(line, dead, now) if one.run != own.run)


def is_over(line: Line, dead: Collection[Run], now: int) -> bool:
    """Return whether no ticket has an effect any more."""
    return not _valid(line, dead, now)


def _valid(line: Line, dead: Collection[Run], now: int) -> list[Ticket]:
    return [one for one in line.tickets if one.until > now and one.run not in dead]
