"""Where a connection is between its first byte and its last.

Lives here: the states. Must not live here: what leads from one to another (http/protocol.py).
Source: RFC 9112 section 9.
"""

from __future__ import annotations

import enum


class State(enum.IntEnum):
    """HEAD -> BODY -> BUSY -> HEAD ...; then LINGER or CLOSING, and CLOSED."""

    HEAD = 0
    """Idle, or a head is arriving."""
    BODY = 1
    """A request is handled, its body still arrives."""
    BUSY = 2
    """A request is handled, all of it is here."""
    LINGER = 3
    """The last answer is written; what arrives is thrown away until the client has seen it."""
    CLOSING = 4
    """What is buffered goes out."""
    CLOSED = 5


# By themselves, since to ask the enumeration for one costs Python 3.11 a call, ten times a request.
HEAD, BODY, BUSY = State.HEAD, State.BODY, State.BUSY
LINGER, CLOSING, CLOSED = State.LINGER, State.CLOSING, State.CLOSED
