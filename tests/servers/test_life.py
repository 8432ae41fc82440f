"""The state machine of a connection: whole sequences of events, and rules for every row."""

from __future__ import annotations

import math

import pytest

from strongroom.servers.http.life import (
    ENDS,
    TABLE,
    TAKING_BODY,
    WAITING,
    Action,
    Event,
    State,
    timeouts_s,
)
from strongroom.servers.http.settings import HttpSettings

_HANDLED = frozenset(
    {
        *(State.EXPECT, State.BODY, State.BUSY, State.SENDING_EARLY, State.SENDING),
        *(State.ABORTED, State.DISCONNECTED),
    }
)
_OVER = frozenset({State.LINGER, State.CLOSING, State.ABORTED, State.DISCONNECTED, State.CLOSED})
ROWS = [
    pytest.param(state, event, row, id=f"{state.name}-{event.name}")
    for state, events in TABLE.items()
    for event, row in events.items()
]
Row = tuple[State, tuple[Action, ...]]

LIVES = {
    "one request after the other": (
        "REQUEST BUSY ANSWERED IDLE HEAD_BEGINS HEAD REQUEST BUSY ANSWERED IDLE TIMEOUT CLOSING"
        " LOST CLOSED"
    ),
    "a body that arrives": (
        "REQUEST_OPEN BODY BODY_WANTED BODY BODY_ENDS BUSY ANSWERED IDLE EOF CLOSING LOST CLOSED"
    ),
    "a body that stalls": "REQUEST_OPEN BODY BODY_WANTED BODY TIMEOUT BODY ANSWERED_CLOSE LINGER",
    "a body that ends early": "REQUEST_OPEN BODY EOF BUSY ANSWERED_CLOSE CLOSING",
    "the client waits for 100 Continue": (
        "REQUEST_EXPECTS EXPECT BODY_WANTED BODY BODY_ENDS BUSY ANSWERED IDLE"
    ),
    "the client does not wait for it": "REQUEST_EXPECTS EXPECT BODY_COMES BODY BODY_WANTED BODY",
    "a refusal instead of 100 Continue": "REQUEST_EXPECTS EXPECT ANSWERED_CLOSE LINGER EOF CLOSING",
    "an early answer to a short body": "REQUEST_OPEN BODY ANSWERED DISCARDING_BODY BODY_ENDS IDLE",
    "an early answer to a long body": (
        "REQUEST_OPEN BODY ANSWERED_CLOSE LINGER TIMEOUT CLOSING LOST CLOSED"
    ),
    "a long early answer": (
        "REQUEST_OPEN BODY WRITING SENDING_EARLY TIMEOUT SENDING_EARLY BODY_ENDS SENDING"
        " ANSWERED IDLE"
    ),
    "a body that never comes behind its answer": (
        "REQUEST_OPEN BODY ANSWERED DISCARDING_BODY TIMEOUT CLOSING"
    ),
    "a slow reader": "REQUEST BUSY WRITING SENDING TIMEOUT SENDING BROKEN CLOSING LOST CLOSED",
    "the last answer, with requests behind it": (
        "REQUEST BUSY ANSWERED_CLOSE_UNREAD LINGER DISCARD_LIMIT_EXCEEDED CLOSING"
    ),
    "the client ends sending, and is answered": "REQUEST BUSY EOF BUSY ANSWERED IDLE EOF CLOSING",
    "no request": "HEAD_BEGINS HEAD REFUSED LINGER EOF CLOSING LOST CLOSED",
    "a head that takes too long": "HEAD_BEGINS HEAD TIMEOUT LINGER",
    "one connection too many": "REFUSED LINGER TIMEOUT CLOSING",
    "a server that stops lets a head arrive": (
        "HEAD_BEGINS HEAD STOP HEAD REQUEST BUSY ANSWERED_CLOSE CLOSING"
    ),
    "a server that stops closes what is idle": "STOP CLOSING LOST CLOSED",
    "a server that stops lets a request finish": (
        "REQUEST BUSY STOP BUSY ANSWERED_CLOSE CLOSING LOST CLOSED"
    ),
    "a server that stops at once": "REQUEST BUSY ABORT ABORTED LOST DISCONNECTED BROKEN CLOSED",
    "a handler that ends before its connection": (
        "REQUEST BUSY ABORT ABORTED BROKEN CLOSING LOST CLOSED"
    ),
    "a newcomer needs the place of an idle connection": (
        "REQUEST BUSY GIVE_WAY BUSY ANSWERED IDLE GIVE_WAY CLOSING LOST CLOSED"
    ),
    "a newcomer needs the place of a slow head": "HEAD_BEGINS HEAD GIVE_WAY CLOSING LOST CLOSED",
    "a newcomer needs the place of a lingering connection": (
        "REQUEST_OPEN BODY GIVE_WAY BODY ANSWERED_CLOSE LINGER GIVE_WAY CLOSING LOST CLOSED"
    ),
    "a client that goes": "REQUEST BUSY LOST DISCONNECTED ANSWERED CLOSED",
    "a client that goes, and then the server": (
        "REQUEST BUSY LOST DISCONNECTED ABORT DISCONNECTED BROKEN CLOSED"
    ),
}


def _next(state: State, event: Event) -> Row:
    return TABLE[state].get(event, (state, ()))


@pytest.mark.parametrize("life", LIVES.values(), ids=LIVES)
def test_lives(life: str) -> None:
    state, words = State.NEW, life.split()
    for event, expected in zip(words[::2], words[1::2], strict=True):
        state, _ = _next(state, Event[event])
        assert state is State[expected], f"after {event}"


def _reached(first: State) -> set[State]:
    found, new = {first}, [first]
    while new:
        for state, _ in TABLE[new.pop()].values():
            if state not in found:
                found.add(state)
                new.append(state)
    return found


def test_every_state_is_reached_and_ends() -> None:
    assert set(TABLE) == set(State)
    assert _reached(State.NEW) == set(State)
    assert all(State.CLOSED in _reached(state) for state in State)
    assert not TABLE[State.CLOSED]


def test_every_event_and_every_action_is_in_the_table() -> None:
    events = {event for rows in TABLE.values() for event in rows}
    actions = {action for rows in TABLE.values() for _, done in rows.values() for action in done}
    assert events == set(Event)
    assert actions == set(Action)


def test_nothing_behind_the_end_becomes_a_request() -> None:
    for state in _OVER:
        reached = _reached(state)
        assert reached <= _OVER
        done = {
            action for one in reached for _, actions in TABLE[one].values() for action in actions
        }
        assert not done & {Action.BEGIN, Action.NEXT, Action.CONTINUE}


@pytest.mark.parametrize(("state", "event", "row"), ROWS)
def test_a_handler_begins_once_and_ends_once(state: State, event: Event, row: Row) -> None:
    following, actions = row
    begins = state not in _HANDLED and following in _HANDLED
    assert begins == (Action.BEGIN in actions)
    ends = state in _HANDLED and following not in _HANDLED
    assert ends == (event in ENDS)


@pytest.mark.parametrize(("state", "event", "row"), ROWS)
def test_the_rest_of_a_body_is_thrown_away_failed_or_taken(
    state: State, event: Event, row: Row
) -> None:
    following, actions = row
    leaves = state in TAKING_BODY and following not in TAKING_BODY
    if leaves and event is not Event.BODY_ENDS and state is not State.DISCARDING_BODY:
        cut = {Action.DROP_BODY, Action.FAIL_BODY, Action.ABORT_TRANSPORT}
        assert cut & set(actions)


@pytest.mark.parametrize(("state", "event", "row"), ROWS)
def test_a_connection_is_closed_and_forgotten_once(state: State, event: Event, row: Row) -> None:
    following, actions = row
    assert (following is State.CLOSED) == (Action.FORGET in actions)
    if following is State.LINGER:
        assert actions[-1] is Action.HALF_CLOSE
    if following in (State.CLOSING, State.ABORTED):
        assert {Action.CLOSE, Action.ABORT_TRANSPORT} & set(actions)
    if Action.REFUSE in actions:
        assert state not in _HANDLED, "an answer in the middle of another"


@pytest.mark.parametrize("state", State)
def test_every_state_hears_its_client_and_its_server(state: State) -> None:
    events = TABLE[state]
    if state is not State.CLOSED:
        assert (Event.LOST in events) == (state is not State.DISCONNECTED)
        assert (Event.ABORT in events) == (state is not State.ABORTED)
    if state in _HANDLED:
        assert {Event.ANSWERED_CLOSE, Event.BROKEN} <= set(events)
    if state not in _OVER or state is State.LINGER:
        assert Event.EOF in events


@pytest.mark.parametrize("state", State)
def test_no_client_is_waited_for_without_a_limit(state: State) -> None:
    timeout_s = timeouts_s(HttpSettings())[state]
    assert math.isinf(timeout_s) or Event.TIMEOUT in TABLE[state]
    waits = {State.BUSY, State.ABORTED, State.DISCONNECTED}  # states that wait for the handler
    if math.isinf(timeout_s) and state not in waits | {State.CLOSED}:
        _, actions = TABLE[state][Event.BODY_WANTED]
        assert Action.WATCH_BODY in actions


@pytest.mark.parametrize("state", State)
def test_a_connection_gives_way_only_while_it_waits_for_its_client(state: State) -> None:
    assert (Event.GIVE_WAY in TABLE[state]) == (state in WAITING)
    assert not (state in _HANDLED and state in WAITING), "a request or its answer would be lost"
