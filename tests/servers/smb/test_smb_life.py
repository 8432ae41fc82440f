"""The state machine of an SMB connection: whole sequences of events, and rules for every row."""

from __future__ import annotations

import pytest

from strongroom.servers.smb.transport.life import (
    ANSWERING,
    BEGINNING,
    RECEIVING,
    TABLE,
    Row,
    SmbAction,
    SmbEvent,
    SmbPhase,
)

ROWS = [
    pytest.param(state, event, row, id=f"{state.name}-{event.name}")
    for state, events in TABLE.items()
    for event, row in events.items()
]
ENDS = " LOST ENDING ENDED CLOSED"
LIVES = {
    "a client that goes": "MEMORY_FREE READING LOST ENDING ENDED CLOSED",
    "a client that sends no more": "EOF CLOSING MEMORY_FREE CLOSING" + ENDS,
    "a client that sends no more and reads no answers": ("EOF CLOSING ANSWERS_LATE CLOSING" + ENDS),
    "requests that take their memory": (
        "MEMORY_FULL PAUSED MEMORY_FULL PAUSED MEMORY_FREE READING" + ENDS
    ),
    "answers that are not read for a while": (
        "WRITE_BLOCKED BLOCKED MEMORY_FULL BLOCKED WRITABLE PAUSED MEMORY_FREE READING" + ENDS
    ),
    "both at once": (
        "MEMORY_FULL PAUSED WRITE_BLOCKED BLOCKED MEMORY_FREE BLOCKED WRITABLE PAUSED"
        " MEMORY_FULL PAUSED" + ENDS
    ),
    "answers that are never read": "WRITE_BLOCKED BLOCKED ANSWERS_LATE CLOSING" + ENDS,
    "a frame that stalls": "ANSWERS_LATE READING FRAME_LATE CLOSING" + ENDS,
    "a frame that the server does not read": "MEMORY_FULL PAUSED FRAME_LATE PAUSED" + ENDS,
    "nobody logs on": "LOGON_LATE CLOSING" + ENDS,
    "a broken rule": "RULE_BROKEN CLOSING RULE_BROKEN CLOSING" + ENDS,
    "one connection too many": "REFUSED CLOSING" + ENDS,
    "a newcomer needs the place": "GIVE_WAY CLOSING GIVE_WAY CLOSING" + ENDS,
    "a server that stops": "STOP FINISHING MEMORY_FREE FINISHING ALL_ANSWERED CLOSING" + ENDS,
    "a server that stops beside a slow reader": (
        "STOP FINISHING WRITE_BLOCKED FINISHING_BLOCKED WRITABLE FINISHING WRITE_BLOCKED"
        " FINISHING_BLOCKED ALL_ANSWERED CLOSING" + ENDS
    ),
    "a server that stops beside a client that reads nothing": (
        "WRITE_BLOCKED BLOCKED STOP FINISHING_BLOCKED ANSWERS_LATE CLOSING" + ENDS
    ),
    "a server that stops at once": "STOP FINISHING ABORT CLOSING" + ENDS,
    "a server that waits no longer for buffered bytes": (
        "STOP FINISHING ALL_ANSWERED CLOSING ABORT CLOSING" + ENDS
    ),
    "requests that end after their client": "LOST ENDING ALL_ANSWERED ENDING ENDED CLOSED",
}


def _next(state: SmbPhase, event: SmbEvent) -> Row:
    return TABLE[state].get(event, (state, ()))


@pytest.mark.parametrize("life", LIVES.values(), ids=LIVES)
def test_lives(life: str) -> None:
    state, words = SmbPhase.READING, life.split()
    for event, expected in zip(words[::2], words[1::2], strict=True):
        state, _ = _next(state, SmbEvent[event])
        assert state is SmbPhase[expected], f"after {event}"


def _reached(first: SmbPhase) -> set[SmbPhase]:
    found, new = {first}, [first]
    while new:
        for state, _ in TABLE[new.pop()].values():
            if state not in found:
                found.add(state)
                new.append(state)
    return found


def test_every_state_is_reached_and_ends() -> None:
    assert set(TABLE) == set(SmbPhase)
    assert _reached(SmbPhase.READING) == set(SmbPhase)
    assert all(SmbPhase.CLOSED in _reached(state) for state in SmbPhase)
    assert not TABLE[SmbPhase.CLOSED]


def test_every_event_and_every_action_is_in_the_table() -> None:
    events = {event for rows in TABLE.values() for event in rows}
    actions = {action for rows in TABLE.values() for _, done in rows.values() for action in done}
    assert events == set(SmbEvent)
    assert actions == set(SmbAction)


def test_nothing_begins_after_the_server_has_stopped_or_the_client_has_gone() -> None:
    for state in set(SmbPhase) - RECEIVING:
        reached = _reached(state)
        assert not reached & RECEIVING
        done = {
            action for one in reached for _, actions in TABLE[one].values() for action in actions
        }
        assert not done & {SmbAction.BEGIN_FRAMES, SmbAction.RESUME_READING, SmbAction.CHECK_MEMORY}


@pytest.mark.parametrize(("state", "event", "row"), ROWS)
def test_reading_is_paused_once_and_resumed_once(
    state: SmbPhase, event: SmbEvent, row: Row
) -> None:
    following, actions = row
    if following in ANSWERING:
        stops = state is SmbPhase.READING and following is not SmbPhase.READING
        assert stops <= (SmbAction.PAUSE_READING in actions)
        resumes = state is not SmbPhase.READING and following is SmbPhase.READING
        assert resumes == (SmbAction.RESUME_READING in actions)


@pytest.mark.parametrize(("state", "event", "row"), ROWS)
def test_frames_begin_only_while_the_client_reads_its_answers(
    state: SmbPhase, event: SmbEvent, row: Row
) -> None:
    following, actions = row
    if SmbAction.BEGIN_FRAMES in actions:
        assert following in BEGINNING
    # A frame that waited for memory must not be forgotten when there is some.
    if event is SmbEvent.MEMORY_FREE or SmbAction.RESUME_READING in actions:
        assert SmbAction.BEGIN_FRAMES in actions


@pytest.mark.parametrize(("state", "event", "row"), ROWS)
def test_a_connection_is_closed_ended_and_forgotten_once(
    state: SmbPhase, event: SmbEvent, row: Row
) -> None:
    following, actions = row
    assert (
        (following is SmbPhase.ENDING)
        == (SmbAction.END_SESSIONS in actions)
        == (event is SmbEvent.LOST)
    )
    assert (following is SmbPhase.CLOSED) == (SmbAction.FORGET in actions)
    if following is SmbPhase.CLOSING and event is not SmbEvent.EOF:
        assert {SmbAction.CLOSE, SmbAction.ABORT_SOCKET} & set(actions)
    if following is SmbPhase.ENDING:
        assert SmbAction.CANCEL_ALL in actions, "nobody is left to answer"


@pytest.mark.parametrize("state", SmbPhase)
def test_every_state_hears_its_client_and_its_server(state: SmbPhase) -> None:
    events = set(TABLE[state])
    has_socket = state not in (SmbPhase.ENDING, SmbPhase.CLOSED)
    assert has_socket == (SmbEvent.LOST in events) == (SmbEvent.ABORT in events)
    for event in (SmbEvent.EOF, SmbEvent.RULE_BROKEN, SmbEvent.LOGON_LATE):
        assert (state in ANSWERING) == (event in events)
    assert (state in RECEIVING) == (SmbEvent.STOP in events) == (SmbEvent.GIVE_WAY in events)
    may_begin = state in BEGINNING
    assert may_begin == (SmbEvent.MEMORY_FREE in events) == (SmbEvent.MEMORY_FULL in events)
    is_blocked = state in (SmbPhase.BLOCKED, SmbPhase.FINISHING_BLOCKED)
    assert is_blocked == (SmbEvent.WRITABLE in events)
    has_bytes_to_send = is_blocked or state is SmbPhase.CLOSING
    assert has_bytes_to_send == (SmbEvent.ANSWERS_LATE in events)
    assert (state in ANSWERING and not is_blocked) == (SmbEvent.WRITE_BLOCKED in events)
