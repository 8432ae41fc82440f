"""The life of an SMB connection as a state machine: states, events, and the actions of each event.

Lives here: one table of transitions. The connection (connection.py) reports events and carries out
the actions. An event that a state's row does not name changes nothing. Who has logged on is no
state: sessions come and go (state/connections.py). Source: [MS-SMB2] sections 3.3.5.1, 3.3.7.1;
smb.md 1.1, 5.1.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final


class SmbPhase(enum.IntEnum):
    """The state of a connection.

    The members are integers, which Python 3.11 looks up in a dictionary without a Python call.
    """

    READING = enum.auto()
    """Frames are read, and begin at once."""
    PAUSED = enum.auto()
    """Nothing is read, since requests in progress have taken their memory. One frame may run."""
    BLOCKED = enum.auto()
    """Nothing is read and no frame begins, since the client does not read its answers."""
    FINISHING = enum.auto()
    """The server stops. Nothing is read, and the requests in progress are answered."""
    FINISHING_BLOCKED = enum.auto()
    """The same, and the client does not read its answers."""
    CLOSING = enum.auto()
    """The connection is closed or broken off, and its socket has yet to go."""
    ENDING = enum.auto()
    """The socket has gone. Sessions and requests in progress are ended."""
    CLOSED = enum.auto()
    """The connection is over, and so are its sessions and requests."""


class SmbEvent(enum.IntEnum):
    # What the socket reports.
    WRITE_BLOCKED = enum.auto()  # too many bytes of answers wait for the client
    WRITABLE = enum.auto()  # the client has read enough of them
    EOF = enum.auto()
    LOST = enum.auto()  # the connection is gone in both directions
    # What its requests do.
    RULE_BROKEN = enum.auto()  # a frame or a message breaks a rule that ends the connection
    MEMORY_FULL = enum.auto()  # they have taken their memory
    MEMORY_FREE = enum.auto()
    ALL_ANSWERED = enum.auto()  # none is in progress any more
    ENDED = enum.auto()  # after LOST: no session is left either
    # A time limit has passed.
    LOGON_LATE = enum.auto()  # nobody has logged on
    FRAME_LATE = enum.auto()  # a frame has begun, and its bytes come too slowly
    ANSWERS_LATE = enum.auto()  # no byte has moved; the client may have answers to read
    # What the listener does.
    REFUSED = enum.auto()  # there are too many connections
    GIVE_WAY = enum.auto()  # a newcomer needs the place of a connection that waits for its client
    STOP = enum.auto()  # the server stops
    ABORT = enum.auto()


class SmbAction(enum.IntEnum):
    """A reaction to an event (connection.py carries it out)."""

    PAUSE_READING = enum.auto()
    RESUME_READING = enum.auto()
    CHECK_MEMORY = enum.auto()  # apply MEMORY_FULL or MEMORY_FREE
    BEGIN_FRAMES = enum.auto()  # begin frames that wait
    DROP_FRAMES = enum.auto()  # drop them
    CANCEL_WAITING = enum.auto()  # cancel the requests that were answered PENDING
    CANCEL_ALL = enum.auto()  # cancel all requests: nobody is left to answer
    CHECK_ANSWERED = enum.auto()  # apply ALL_ANSWERED if it is so
    CLOSE = enum.auto()  # close the socket after the buffered bytes
    ABORT_SOCKET = enum.auto()
    END_SESSIONS = enum.auto()  # end sessions and requests, then apply ENDED
    FORGET = enum.auto()  # remove the connection from the listener


Row = tuple[SmbPhase, tuple[SmbAction, ...]]
"""The next state, and the actions to run then, in this order."""

_ABORT: Final[Row] = SmbPhase.CLOSING, (SmbAction.ABORT_SOCKET,)
_LOST: Final[Row] = (
    SmbPhase.ENDING,
    (SmbAction.DROP_FRAMES, SmbAction.CANCEL_ALL, SmbAction.END_SESSIONS),
)
_FINISH: Final = (
    SmbAction.PAUSE_READING,
    SmbAction.DROP_FRAMES,
    SmbAction.CANCEL_WAITING,
    SmbAction.CHECK_ANSWERED,
)

# Rows of states in which requests are answered.
_ANSWERED: Final[dict[SmbEvent, Row]] = {
    # The transport closes itself, and sends the buffered bytes before.
    SmbEvent.EOF: (SmbPhase.CLOSING, ()),
    SmbEvent.LOST: _LOST,
    SmbEvent.RULE_BROKEN: _ABORT,
    SmbEvent.LOGON_LATE: _ABORT,
    SmbEvent.ABORT: _ABORT,
}
# Rows of states in which the client is served.
_SERVED: Final[dict[SmbEvent, Row]] = {
    SmbEvent.GIVE_WAY: _ABORT,
    SmbEvent.STOP: (SmbPhase.FINISHING, _FINISH),
    **_ANSWERED,
}

TABLE: Final[Mapping[SmbPhase, Mapping[SmbEvent, Row]]] = {
    SmbPhase.READING: {
        SmbEvent.MEMORY_FREE: (SmbPhase.READING, (SmbAction.BEGIN_FRAMES,)),
        SmbEvent.MEMORY_FULL: (SmbPhase.PAUSED, (SmbAction.PAUSE_READING, SmbAction.BEGIN_FRAMES)),
        SmbEvent.WRITE_BLOCKED: (SmbPhase.BLOCKED, (SmbAction.PAUSE_READING,)),
        SmbEvent.FRAME_LATE: _ABORT,
        SmbEvent.REFUSED: _ABORT,
        **_SERVED,
    },
    # A frame cannot be late here: the server does not read it.
    SmbPhase.PAUSED: {
        SmbEvent.MEMORY_FREE: (
            SmbPhase.READING,
            (SmbAction.RESUME_READING, SmbAction.BEGIN_FRAMES),
        ),
        SmbEvent.MEMORY_FULL: (SmbPhase.PAUSED, (SmbAction.BEGIN_FRAMES,)),
        SmbEvent.WRITE_BLOCKED: (SmbPhase.BLOCKED, ()),
        **_SERVED,
    },
    SmbPhase.BLOCKED: {
        SmbEvent.WRITABLE: (SmbPhase.PAUSED, (SmbAction.CHECK_MEMORY,)),
        SmbEvent.ANSWERS_LATE: _ABORT,
        **_SERVED,
        SmbEvent.STOP: (SmbPhase.FINISHING_BLOCKED, _FINISH),
    },
    SmbPhase.FINISHING: {
        SmbEvent.WRITE_BLOCKED: (SmbPhase.FINISHING_BLOCKED, ()),
        SmbEvent.ALL_ANSWERED: (SmbPhase.CLOSING, (SmbAction.CLOSE,)),
        **_ANSWERED,
    },
    SmbPhase.FINISHING_BLOCKED: {
        SmbEvent.WRITABLE: (SmbPhase.FINISHING, ()),
        SmbEvent.ALL_ANSWERED: (SmbPhase.CLOSING, (SmbAction.CLOSE,)),
        SmbEvent.ANSWERS_LATE: _ABORT,
        **_ANSWERED,
    },
    # A client that sends no more may still have answers to read.
    SmbPhase.CLOSING: {
        SmbEvent.LOST: _LOST,
        SmbEvent.ANSWERS_LATE: _ABORT,
        SmbEvent.ABORT: _ABORT,
    },
    SmbPhase.ENDING: {SmbEvent.ENDED: (SmbPhase.CLOSED, (SmbAction.FORGET,))},
    SmbPhase.CLOSED: {},
}

# States in which received bytes are taken, and a connection without requests may give way.
RECEIVING: Final = frozenset({SmbPhase.READING, SmbPhase.PAUSED, SmbPhase.BLOCKED})
# States in which a frame may begin.
BEGINNING: Final = frozenset({SmbPhase.READING, SmbPhase.PAUSED})
# States in which answers are sent.
ANSWERING: Final = RECEIVING | {SmbPhase.FINISHING, SmbPhase.FINISHING_BLOCKED}
