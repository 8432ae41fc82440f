"""The number of connections that a process serves, shared by all its ports.

Lives here: who may have a place, and which connection gives its place to a newcomer. Must not live
here: sockets, any protocol, time. Source: RFC 9112 section 9.5 (a server may close an idle
connection at any time). The rule and its figures are our own.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

# A client sends a request's head at once. This leaves time for a lost packet to be sent again.
PATIENCE_S: Final = 5.0
# This part of an equal share is kept for each port, whatever the others take.
_RESERVE_DIVISOR: Final = 4
# How many refused connections, and how many ended ones, may still be open. They need descriptors.
REFUSED_MAX: Final = 64
ENDING_MAX: Final = 64
# One search finds this many connections. Without that, each newcomer would cost a search.
_FOUND_MAX: Final = 64
# So many searches are made for one newcomer if connections that were found cannot be ended.
_SEARCHES_MAX: Final = 4


class PortUse(NamedTuple):
    """The places of one port: those it has, those kept for it, and the most that it may have."""

    held: int
    reserve: int
    most: int


def has_room(ports: Sequence[PortUse], number: int, places: int) -> bool:
    """A port may always take what is kept for it. It may take more while the free places are more
    than what is kept for the other ports.

    Arguments:
        number: the port's position in `ports`.
        places: of all ports together.
    """
    if ports[number].held >= ports[number].most:
        return False
    counted = (max(port.held + (at == number), port.reserve) for at, port in enumerate(ports))
    return sum(counted) <= places


def givers(ports: Sequence[PortUse], number: int, places: int) -> list[int]:
    """Return the ports that can give one of their places to a newcomer of port `number`.

    A port gives nothing of what is kept for it, except to its own newcomers.
    """
    chosen = []
    for at, port in enumerate(ports):
        left = [*ports]
        left[at] = port._replace(held=port.held - 1)
        if port.held and has_room(left, number, places):
            chosen.append(at)
    return chosen


class WaitingConnection(NamedTuple):
    """A connection that waits for its client.

    Attributes:
        has_begun: whether the client has begun something, such as a request's head.
        since: a time of the loop's clock.
        give_way: ends the connection for a newcomer; its argument is `since`. It returns False if
            the connection goes on, since it waits no more or has bytes to receive or to send.
    """

    has_begun: bool
    since: float
    connection: object
    give_way: Callable[[float], bool]


Search = Callable[[], Iterable[WaitingConnection]]
"""Returns the connections of a port that wait for their clients."""


def may_end(waiting: WaitingConnection, now: float, patience_s: float) -> bool:
    """Return whether a connection may be ended for a newcomer: an idle one at any time, another one
    after `patience_s`."""
    return not waiting.has_begun or waiting.since + patience_s <= now


def in_order(waiting: WaitingConnection) -> tuple[bool, float]:
    """Return the key that sorts connections: idle ones first, and of these the one that waits
    longest."""
    return waiting.has_begun, waiting.since


class ConnectionBudget:
    """The places of all ports of one process. It is used on the event loop.

    Arguments:
        places: how many connections may be served at once; also an attribute.
        patience_s: how long a client that has begun something is safe from newcomers.

    Attributes:
        closed_for_newcomers: how many connections were ended for a newcomer.
        refused: how many newcomers were refused.
    """

    def __init__(self, places: int, patience_s: float = PATIENCE_S) -> None:
        self.places = places
        self.patience_s = patience_s
        self._ports: list[PortPlaces] = []
        self._found: deque[tuple[PortPlaces, WaitingConnection]] = deque()
        self.closed_for_newcomers = 0
        self.refused = 0

    def port(
        self, search: Search, freed: Callable[[], None], most: int | None = None
    ) -> PortPlaces:
        """Add a port before it is served.

        Arguments:
            search: finds the connections of the port that wait for their clients.
            freed: is called when another connection may be accepted.
            most: the most that this port may have; None = no limit of its own.
        """
        made = PortPlaces(self, search, freed, self.places if most is None else most)
        self._ports.append(made)
        return made

    # For the ports.

    def has_room(self, port: PortPlaces) -> bool:
        return has_room(self._uses(), self._ports.index(port), self.places)

    def end_one(self, port: PortPlaces, now: float) -> bool:
        """End a connection for a newcomer of the port. Returns False if none can be ended."""
        numbers = givers(self._uses(), self._ports.index(port), self.places)
        chosen = [self._ports[number] for number in numbers]
        is_ended = self._end_found(chosen)
        for _ in range(_SEARCHES_MAX):
            if is_ended:
                break
            waiting = ((giver, one) for giver in chosen for one in giver.waiting(now))
            longest = heapq.nsmallest(_FOUND_MAX, waiting, key=lambda one: in_order(one[1]))
            if not longest:
                break
            self._found = deque(longest)
            is_ended = self._end_found(chosen)
            # One that has begun something is not kept: meanwhile, another may become idle.
            self._found = deque(one for one in self._found if not one[1].has_begun)
        return is_ended

    def freed(self) -> None:
        """Note that a connection is closed."""
        if self._found and 2 * sum(len(port.held) for port in self._ports) < self.places:
            self._found.clear()  # closed connections among them would stay in memory
        for port in self._ports:
            port.freed()

    @property
    def open_refused(self) -> int:
        """How many refused connections are still open."""
        return sum(len(port.refused) for port in self._ports)

    @property
    def open_ending(self) -> int:
        """How many connections that were ended for a newcomer are still open."""
        return sum(len(port.ending) for port in self._ports)

    # Inside.

    def _uses(self) -> list[PortUse]:
        reserve = max(1, self.places // (_RESERVE_DIVISOR * len(self._ports)))
        return [PortUse(len(port.held), min(reserve, port.most), port.most) for port in self._ports]

    def _end_found(self, chosen: Sequence[PortPlaces]) -> bool:
        while self._found:
            port, waiting = self._found.popleft()
            if port in chosen and port.end(waiting):
                self.closed_for_newcomers += 1
                return True
        return False


class PortPlaces:
    """The places of one port.

    Arguments:
        search, freed, most: see ConnectionBudget.port.

    Attributes:
        held: the connections that have a place.
        refused: those that were refused, and are still open.
        ending: those that were ended for a newcomer, and are still open.
    """

    def __init__(
        self,
        budget: ConnectionBudget,
        search: Search,
        freed: Callable[[], None],
        most: int,
    ) -> None:
        self._budget = budget
        self._search = search
        self.freed = freed
        self.most = most
        self.held: set[object] = set()
        self.refused: set[object] = set()
        self.ending: set[object] = set()
        # Connections that could not be ended, and since when they wait. They are not asked again,
        # or clients that read no answers could hide all other connections from the search.
        self._kept: dict[object, float] = {}

    @property
    def has_room(self) -> bool:
        """Whether a newcomer gets a place without the end of another connection."""
        return self._budget.has_room(self)

    def may_accept(self, now: float) -> bool:
        """Whether another connection may be accepted: served, or refused with a reason.

        Until then it waits in the kernel's backlog. Closing it would reset it without a reason.
        """
        budget = self._budget
        if budget.open_ending >= ENDING_MAX:
            return False
        if budget.open_refused < REFUSED_MAX or self.has_room:
            return True
        # A newcomer could not be refused, so that its place is made before it is accepted.
        return budget.end_one(self, now)

    def enter(self, connection: object, now: float) -> bool:
        """Give a connection a place, if need be that of another one. Idempotent. False if it has no
        place and must be refused."""
        if connection in self.held:
            return True
        if connection in self.refused or connection in self.ending:
            return False
        budget = self._budget
        if self.has_room or budget.end_one(self, now):
            self.held.add(connection)
            return True
        budget.refused += 1
        self.refused.add(connection)
        return False

    def leave(self, connection: object) -> None:
        """Forget a connection that is closed. Idempotent."""
        self._kept.pop(connection, None)
        for those in (self.held, self.refused, self.ending):
            those.discard(connection)
        self._budget.freed()

    def waiting(self, now: float) -> Iterable[WaitingConnection]:
        """Return the connections with a place that may be ended now."""
        patience_s, held = self._budget.patience_s, self.held
        return (
            one
            for one in self._search()
            if one.connection in held
            and may_end(one, now, patience_s)
            and self._kept.get(one.connection) != one.since
        )

    def end(self, waiting: WaitingConnection) -> bool:
        """End a connection and free its place, unless it does not wait any more."""
        connection = waiting.connection
        if connection not in self.held:
            return False
        if not waiting.give_way(waiting.since):
            self._kept[connection] = waiting.since
            return False
        self.held.discard(connection)
        self.ending.add(connection)
        return True
