"""The places for connections: tables of the rule, every state of a small budget, and the order in
which connections give way."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from strongroom.servers.connections.budget import (
    ENDING_MAX,
    REFUSED_MAX,
    ConnectionBudget,
    PortPlaces,
    PortUse,
    WaitingConnection,
    givers,
    has_room,
)

PLACES = 10
# Connections that the ports have, and the port of the newcomer.
ROOM = [
    ((0, 0, 0), 0, True),
    ((5, 0, 0), 0, True),  # more than an equal share
    ((6, 0, 0), 0, False),  # two of the four free places are kept for each other port
    ((6, 0, 0), 1, True),
    ((6, 1, 0), 1, True),
    ((6, 2, 0), 1, False),
    ((6, 2, 0), 2, True),
    ((6, 2, 2), 0, False),
    ((4, 4, 0), 1, False),
    ((4, 3, 0), 1, True),
    ((4, 4, 1), 2, True),
]
# The same, and the ports that can give a place.
GIVERS = [
    ((6, 2, 2), 0, [0]),
    ((6, 2, 2), 1, [0, 1]),
    ((4, 4, 2), 2, [0, 1, 2]),
    ((6, 1, 1), 0, [0]),
]


def uses(*held: int, reserve: int = 2, most: int = PLACES) -> list[PortUse]:
    return [PortUse(count, reserve, most) for count in held]


@pytest.mark.parametrize(("held", "number", "room"), ROOM)
def test_a_port_has_room(held: tuple[int, ...], number: int, *, room: bool) -> None:
    assert has_room(uses(*held), number, PLACES) is room


@pytest.mark.parametrize(("held", "number", "ports"), GIVERS)
def test_a_port_gives_a_place(held: tuple[int, ...], number: int, ports: list[int]) -> None:
    assert givers(uses(*held), number, PLACES) == ports


def test_a_port_with_a_limit_of_its_own_takes_places_only_from_itself() -> None:
    ports = [PortUse(3, 2, PLACES), PortUse(3, 2, 3)]
    assert not has_room(ports, 1, PLACES)
    assert givers(ports, 1, PLACES) == [1]


def test_in_every_state_each_port_can_take_its_reserve() -> None:
    reached, new = {(0, 0, 0)}, [(0, 0, 0)]
    while new:
        held = new.pop()
        assert sum(held) <= PLACES
        for number in range(3):
            steps = []
            if has_room(uses(*held), number, PLACES):
                steps.append(moved(held, None, number))
            else:
                assert held[number] >= 2
                steps += [moved(held, one, number) for one in givers(uses(*held), number, PLACES)]
                assert steps, "every port above its reserve can at least replace its own"
            if held[number]:
                steps.append(moved(held, number, None))
            for step in steps:
                if step not in reached:
                    reached.add(step)
                    new.append(step)
    assert (6, 2, 2) in reached
    assert (6, 0, 0) in reached
    assert (7, 0, 0) not in reached


def moved(held: tuple[int, ...], giver: int | None, taker: int | None) -> tuple[int, int, int]:
    first, second, third = (count - (at == giver) + (at == taker) for at, count in enumerate(held))
    return first, second, third


class One:
    """A connection."""

    def __init__(self, name: str, since: float | None = None, *, has_begun: bool = False) -> None:
        self.name = name
        self.since = since  # None = it does not wait
        self.has_begun = has_begun
        self.has_ended = False
        self.has_unread = False
        self.asked = 0

    def give_way(self, since: float) -> bool:
        self.has_ended = since == self.since and not self.has_unread
        self.asked += 1
        return self.has_ended


class Port:
    """A port whose connections are doubles."""

    def __init__(self, budget: ConnectionBudget, most: int | None = None) -> None:
        self.all: list[One] = []
        self.searches = self.wakes = 0
        self.places: PortPlaces = budget.port(self.search, self.wake, most)

    def wake(self) -> None:
        self.wakes += 1

    def search(self) -> Iterator[WaitingConnection]:
        self.searches += 1
        for one in self.all:
            if one.since is not None and not one.has_ended:
                yield WaitingConnection(one.has_begun, one.since, one, one.give_way)

    def enter(self, *connections: One, now: float = 100.0) -> list[bool]:
        self.all += connections
        return [self.places.enter(one, now) for one in connections]

    def close(self, one: One) -> None:
        self.all.remove(one)
        self.places.leave(one)


def test_the_connection_that_is_idle_longest_gives_way_on_whatever_port() -> None:
    budget = ConnectionBudget(4)
    here, there = Port(budget), Port(budget)
    young, old, busy = One("young", 50.0), One("old", 20.0), One("busy")
    assert here.enter(young, busy) == [True, True]
    assert there.enter(One("other", 30.0), old) == [True, True]
    assert here.enter(One("newcomer")) == [True]
    assert old.has_ended
    assert there.enter(One("newcomer")) == [True]
    assert [young.has_ended, busy.has_ended] == [False, False]
    assert budget.closed_for_newcomers == 2
    assert budget.refused == 0


def test_what_is_kept_for_a_port_is_not_taken_from_it() -> None:
    budget = ConnectionBudget(8)  # a quarter of an equal share is one place
    crowded, quiet = Port(budget), Port(budget)
    idle = One("idle", 1.0)
    assert quiet.enter(idle) == [True]
    assert crowded.enter(*(One("busy") for _ in range(8))) == [True] * 7 + [False]
    assert not idle.has_ended
    assert quiet.enter(One("newcomer")) == [True]
    assert idle.has_ended


def test_a_client_that_has_begun_something_gives_way_late_and_last() -> None:
    budget = ConnectionBudget(2, patience_s=5.0)
    port = Port(budget)
    slow, idle = One("slow", 10.0, has_begun=True), One("idle", 90.0)
    port.enter(slow, idle)
    assert port.enter(One("busy")) == [True]
    assert idle.has_ended
    assert port.enter(One("newcomer"), now=14.9) == [False]
    assert port.enter(One("newcomer"), now=15.0) == [True]
    assert slow.has_ended


def test_a_connection_gets_its_place_once_and_leaves_once() -> None:
    budget = ConnectionBudget(1)
    port = Port(budget)
    first, second = One("first"), One("second")
    assert port.enter(first, first, second, second) == [True, True, False, False]
    assert budget.refused == 1
    port.places.leave(first)
    port.places.leave(first)
    assert port.enter(One("third")) == [True]
    assert port.places.refused == {second}


def test_one_search_serves_many_newcomers() -> None:
    count = 40
    budget = ConnectionBudget(count)
    port = Port(budget)
    ages = [One(f"{number}", float(number)) for number in range(count)]
    port.enter(*reversed(ages))
    ages[3].since = None
    for number in range(count - 1):
        assert port.enter(One("newcomer")) == [True]
        port.close(next(one for one in ages if one.has_ended and one in port.all))
        assert ages[3 if number < 3 else number + 1].has_ended is (number >= 3)
    assert port.searches == 1
    assert not ages[3].has_ended


def test_a_connection_that_was_found_may_become_busy_before_its_turn() -> None:
    budget = ConnectionBudget(3)
    port = Port(budget)
    first, second, third = One("first", 1.0), One("second", 2.0), One("third", 3.0)
    port.enter(first, second, third)
    assert port.enter(One("newcomer")) == [True]
    second.since = 50.0  # a request has come, was answered, and the connection is idle again
    assert port.enter(One("newcomer")) == [True]
    assert [one.has_ended for one in (first, second, third)] == [True, False, True]


def test_connections_that_cannot_be_ended_do_not_hide_others() -> None:
    count = 200
    budget = ConnectionBudget(count + 2)
    port = Port(budget)
    unread = [One("unread", float(number)) for number in range(count)]
    for one in unread:
        one.has_unread = True
    idle = [One("idle", 300.0), One("idle", 301.0)]
    port.enter(*unread, *idle)
    assert port.enter(One("newcomer"), One("newcomer")) == [True, True]
    assert all(one.has_ended for one in idle)
    assert {one.asked for one in unread} == {1}
    assert port.enter(One("newcomer")) == [False]
    unread[0].since, unread[0].has_unread = 400.0, False
    assert port.enter(One("newcomer")) == [True]
    assert unread[0].has_ended


def test_no_closed_connection_is_remembered() -> None:
    budget = ConnectionBudget(3)
    port = Port(budget)
    idle = [One(f"{number}", float(number)) for number in range(3)]
    idle[0].has_unread = True
    port.enter(*idle)
    port.enter(One("newcomer"))
    for one in list(port.all):
        port.close(one)
    assert not budget._found
    assert not port.places._kept


def test_connections_beyond_the_places_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strongroom.servers.connections.budget.ENDING_MAX", 2)
    budget = ConnectionBudget(8)
    port, other = Port(budget), Port(budget)
    port.enter(*(One("busy") for _ in range(7)))
    refused = [One("refused") for _ in range(REFUSED_MAX)]
    assert port.enter(*refused) == [False] * REFUSED_MAX
    assert not port.places.may_accept(100.0)
    assert other.places.may_accept(100.0), "its reserve is free"
    port.all[0].since = 99.0
    port.all[0].has_unread = True
    assert not port.places.may_accept(100.0), "it could be neither served nor refused"
    port.all[1].since = 99.0
    assert port.places.may_accept(100.0), "another one was idle, and is ended"
    assert port.all[1].has_ended
    port.close(port.all[1])
    assert port.enter(One("newcomer")) == [True]
    assert not port.places.may_accept(100.0)
    port.close(refused[0])
    assert port.places.may_accept(100.0)
    assert other.wakes == 2, "another port may have waited for this"
    for one in port.all[1:3]:
        one.since = 1.0
    assert port.enter(One("newcomer"), One("newcomer")) == [True, True]
    assert not port.places.may_accept(100.0)
    port.close(next(one for one in port.all if one.has_ended))
    assert port.places.may_accept(100.0)
    assert ENDING_MAX + REFUSED_MAX < 256, "the descriptors that open_files.py keeps"
