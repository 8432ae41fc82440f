"""The life of a connection as a state machine: states, events, and the actions of each event.

Lives here: one table of transitions. The connection (http/protocol.py) reports events and carries
out the actions. An event that a state's row does not name changes nothing. Source: RFC 9112 section
9 (connections), RFC 9110 section 10.1.1 (Expect).
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from typing import Final

from strongroom.servers.http.settings import HttpSettings


class State(enum.IntEnum):
    """The state of a connection.

    The members are integers, which Python 3.11 looks up in a dictionary without a Python call.
    """

    NEW = enum.auto()
    """No byte of the first request has arrived."""
    IDLE = enum.auto()
    """A request is answered, and no byte of the next one has arrived."""
    HEAD = enum.auto()
    """A part of a request's head has arrived."""
    EXPECT = enum.auto()
    """A request is handled. Its client waits for 100 Continue before it sends the body."""
    BODY = enum.auto()
    """A request is handled, and its body still arrives."""
    BUSY = enum.auto()
    """A request is handled, and nothing more of it will arrive."""
    SENDING_EARLY = enum.auto()
    """A long answer is being written, and the request's body still arrives."""
    SENDING = enum.auto()
    """A long answer is being written, and nothing more of its request will arrive."""
    DISCARDING_BODY = enum.auto()
    """The answer is written. The rest of the request's body is discarded as it arrives."""
    LINGER = enum.auto()
    """The last answer is written. Incoming bytes are discarded until the client has seen it."""
    CLOSING = enum.auto()
    """The buffered bytes are sent."""
    ABORTED = enum.auto()
    """The server has broken the connection off, and its request has yet to end."""
    DISCONNECTED = enum.auto()
    """The client has gone, and its request has yet to end."""
    CLOSED = enum.auto()
    """The connection is over, and so is its last request."""


class Event(enum.IntEnum):
    # What the client sends.
    HEAD_BEGINS = enum.auto()
    REQUEST = enum.auto()  # a complete request has arrived
    REQUEST_OPEN = enum.auto()  # the head of a request has arrived; its body is still to come
    REQUEST_EXPECTS = enum.auto()  # the same, and the client asks whether to send the body
    REFUSED = enum.auto()  # the bytes are no request, or the server is full
    BODY_COMES = enum.auto()
    BODY_ENDS = enum.auto()
    DISCARD_LIMIT_EXCEEDED = enum.auto()  # a lingering connection has sent more than it may
    EOF = enum.auto()  # the client sends no more; it may still read
    LOST = enum.auto()  # the connection is gone in both directions
    # What the handler does.
    BODY_WANTED = enum.auto()  # it waits for bytes of the body
    WRITING = enum.auto()  # a write began that may have to wait for the client
    ANSWERED = enum.auto()  # the answer is written, and the connection may go on
    ANSWERED_CLOSE = enum.auto()  # the answer is written, and it said that the connection ends
    ANSWERED_CLOSE_UNREAD = enum.auto()  # the same, and the client sent bytes that stay unread
    BROKEN = enum.auto()  # the answer could not be written whole
    # What the server does.
    TIMEOUT = enum.auto()  # the deadline of the state has passed
    STOP = enum.auto()  # idle connections must end
    GIVE_WAY = enum.auto()  # a newcomer needs the place of a connection that waits for its client
    ABORT = enum.auto()  # every connection must end


class Action(enum.IntEnum):
    """A reaction to an event (http/protocol.py carries it out)."""

    BEGIN = enum.auto()  # handle the request
    REFUSE = enum.auto()  # refuse bytes that are no request
    CONTINUE = enum.auto()
    WATCH_BODY = enum.auto()  # from now on the client must send the body quickly
    CHECK_BODY = enum.auto()  # fail the body when it came too slowly
    FAIL_BODY = enum.auto()  # the handler's body ends here, incomplete
    DROP_BODY = enum.auto()  # discard the rest of the body, arrived or not
    WATCH_WRITING = enum.auto()  # from now on the client must read the answer quickly
    CHECK_WRITING = enum.auto()  # abandon the answer if the client reads too slowly
    NOTIFY_DISCONNECT = enum.auto()  # notify the handler that its client sends no more
    KEEP_EOF = enum.auto()  # remember the EOF until the earlier requests are answered
    CANCEL = enum.auto()
    NEXT = enum.auto()  # parse the bytes that arrived early
    HALF_CLOSE = enum.auto()  # close the sending side, and begin to discard incoming bytes
    CLOSE = enum.auto()  # close the connection after the buffered bytes
    ABORT_TRANSPORT = enum.auto()
    WAKE_WRITER = enum.auto()  # wake everything that waits for the lost client
    FORGET = enum.auto()  # remove the connection from the server


ENDS: Final = (Event.ANSWERED, Event.ANSWERED_CLOSE, Event.ANSWERED_CLOSE_UNREAD, Event.BROKEN)
"""The events that end the handling of a request."""

Row = tuple[State, tuple[Action, ...]]
"""The next state, and the actions to run then, in this order."""

_CLOSE: Final[Row] = State.CLOSING, (Action.CLOSE,)
_ABORT: Final[Row] = State.CLOSING, (Action.ABORT_TRANSPORT,)
_LINGER: Final[Row] = State.LINGER, (Action.HALF_CLOSE,)
_LINGER_IN_BODY: Final[Row] = State.LINGER, (Action.DROP_BODY, Action.HALF_CLOSE)
_REFUSE: Final[Row] = State.LINGER, (Action.REFUSE, Action.HALF_CLOSE)
_KEPT_EOF: Final = (Action.KEEP_EOF, Action.NOTIFY_DISCONNECT)
_CUT_BODY: Final = (Action.FAIL_BODY, *_KEPT_EOF)
_DISCONNECT: Final[Row] = (
    State.DISCONNECTED,
    (Action.WAKE_WRITER, Action.FAIL_BODY, Action.NOTIFY_DISCONNECT),
)
_DISCARD: Final[Row] = State.DISCARDING_BODY, (Action.DROP_BODY,)
_NEXT: Final[Row] = State.IDLE, (Action.NEXT,)

# Rows of states without a request in progress.
_UNHANDLED: Final[dict[Event, Row]] = {
    Event.LOST: (State.CLOSED, (Action.WAKE_WRITER, Action.FORGET)),
    Event.ABORT: _ABORT,
}
# Rows of states in which a request begins.
_BEGINNING: Final[dict[Event, Row]] = {
    Event.REQUEST: (State.BUSY, (Action.BEGIN,)),
    Event.REQUEST_OPEN: (State.BODY, (Action.BEGIN,)),
    Event.REQUEST_EXPECTS: (State.EXPECT, (Action.BEGIN,)),
    Event.REFUSED: _REFUSE,
    Event.EOF: _CLOSE,
    **_UNHANDLED,
}
# Rows of states with a request in progress.
_HANDLED: Final[dict[Event, Row]] = {
    Event.BROKEN: _ABORT,
    Event.LOST: _DISCONNECT,
    Event.ABORT: (State.ABORTED, (Action.ABORT_TRANSPORT, Action.CANCEL)),
}
# Rows of states with a request in progress that has arrived completely.
_HANDLED_WHOLE: Final[dict[Event, Row]] = {
    Event.ANSWERED: _NEXT,
    Event.ANSWERED_CLOSE: _CLOSE,
    Event.ANSWERED_CLOSE_UNREAD: _LINGER,
    **_HANDLED,
}

# Rows of states in which no byte of a request has arrived.
_IDLE: Final[dict[Event, Row]] = {
    Event.HEAD_BEGINS: (State.HEAD, ()),
    Event.TIMEOUT: _CLOSE,
    Event.STOP: _CLOSE,
    Event.GIVE_WAY: _CLOSE,
    **_BEGINNING,
}

TABLE: Final[Mapping[State, Mapping[Event, Row]]] = {
    State.NEW: _IDLE,
    State.IDLE: _IDLE,
    State.HEAD: {
        Event.TIMEOUT: _REFUSE,
        # It does not linger: its descriptor is wanted too.
        Event.GIVE_WAY: (State.CLOSING, (Action.REFUSE, Action.CLOSE)),
        **_BEGINNING,
    },
    State.EXPECT: {
        Event.BODY_WANTED: (State.BODY, (Action.CONTINUE, Action.WATCH_BODY)),
        Event.BODY_COMES: (State.BODY, ()),
        Event.WRITING: (State.SENDING_EARLY, (Action.WATCH_WRITING,)),
        Event.ANSWERED_CLOSE: _LINGER_IN_BODY,
        Event.EOF: (State.BUSY, _CUT_BODY),
        **_HANDLED,
    },
    State.BODY: {
        Event.BODY_WANTED: (State.BODY, (Action.WATCH_BODY,)),
        Event.BODY_ENDS: (State.BUSY, ()),
        Event.WRITING: (State.SENDING_EARLY, (Action.WATCH_WRITING,)),
        Event.ANSWERED: _DISCARD,
        Event.ANSWERED_CLOSE: _LINGER_IN_BODY,
        Event.TIMEOUT: (State.BODY, (Action.CHECK_BODY,)),
        Event.EOF: (State.BUSY, _CUT_BODY),
        **_HANDLED,
    },
    State.BUSY: {
        Event.WRITING: (State.SENDING, (Action.WATCH_WRITING,)),
        Event.EOF: (State.BUSY, _KEPT_EOF),
        **_HANDLED_WHOLE,
    },
    State.SENDING_EARLY: {
        Event.BODY_ENDS: (State.SENDING, ()),
        Event.ANSWERED: _DISCARD,
        Event.ANSWERED_CLOSE: _LINGER_IN_BODY,
        Event.TIMEOUT: (State.SENDING_EARLY, (Action.CHECK_WRITING,)),
        Event.EOF: (State.SENDING, _CUT_BODY),
        **_HANDLED,
    },
    State.SENDING: {
        Event.TIMEOUT: (State.SENDING, (Action.CHECK_WRITING,)),
        Event.EOF: (State.SENDING, _KEPT_EOF),
        **_HANDLED_WHOLE,
    },
    State.DISCARDING_BODY: {
        Event.BODY_ENDS: _NEXT,
        Event.TIMEOUT: _ABORT,
        Event.EOF: _CLOSE,
        **_UNHANDLED,
    },
    State.LINGER: {
        Event.DISCARD_LIMIT_EXCEEDED: _ABORT,
        Event.TIMEOUT: _ABORT,
        Event.GIVE_WAY: _ABORT,
        Event.EOF: _CLOSE,
        **_UNHANDLED,
    },
    State.CLOSING: {Event.TIMEOUT: _ABORT, **_UNHANDLED},
    State.ABORTED: {
        **dict.fromkeys(ENDS, _ABORT),
        Event.LOST: _DISCONNECT,
    },
    State.DISCONNECTED: {
        **dict.fromkeys(ENDS, (State.CLOSED, (Action.FORGET,))),
        Event.ABORT: (State.DISCONNECTED, (Action.CANCEL,)),
    },
    State.CLOSED: {},
}

# An answer in another state ends its connection. In EXPECT the client may send the body or leave it
# out, so the start of its next request is unknown.
REUSABLE: Final = frozenset({State.BODY, State.BUSY})
# States in which an answer must still be written to a client that sends no more.
ANSWERING: Final = frozenset({State.BUSY, State.SENDING})
# States in which bytes of a body are consumed, so reading resumes when its buffer has room.
TAKING_BODY: Final = frozenset(
    {State.EXPECT, State.BODY, State.SENDING_EARLY, State.DISCARDING_BODY}
)
# States in which a connection waits for its client and can give way to a newcomer, and whether the
# client has begun something. In LINGER it still sends the rest of a request that is answered.
WAITING: Final[Mapping[State, bool]] = {
    State.NEW: False,
    State.IDLE: False,
    State.HEAD: True,
    State.LINGER: True,
}


def timeouts_s(settings: HttpSettings) -> Mapping[State, float]:
    """Return how many seconds a connection may stay in each state.

    BODY has no limit of its own, since a slow handler is no fault of the client (WATCH_BODY).
    """
    return dict.fromkeys(State, math.inf) | {
        State.NEW: settings.head_timeout_s,
        State.IDLE: settings.idle_timeout_s,
        State.HEAD: settings.head_timeout_s,
        State.SENDING_EARLY: settings.write_stall_timeout_s,
        State.SENDING: settings.write_stall_timeout_s,
        State.DISCARDING_BODY: settings.discard_timeout_s,
        State.LINGER: settings.linger_timeout_s,
        State.CLOSING: settings.linger_timeout_s,
    }
