"""One HTTP connection: it parses bytes, hands requests to the handler in order, writes responses.

Lives here: the translation of callbacks into events, and the execution of the table's actions. Must
not live here: the table (http/life.py), the grammar of heads (http/head.py) and bodies
(http/body.py), framing of responses (http/send.py), one request (http/handling.py), listening
(connections/accepting.py). Source: RFC 9112 section 9.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from strongroom.errors.core import INCOMPLETE_BODY, REQUEST_TIMEOUT, SERVER_BUSY, StorageError
from strongroom.servers.connections.accepting import TLS_HANDSHAKE
from strongroom.servers.connections.budget import WaitingConnection
from strongroom.servers.connections.idle_sockets import is_quiet
from strongroom.servers.http import life
from strongroom.servers.http.ahead import PipelineBuffer
from strongroom.servers.http.answer import Responder
from strongroom.servers.http.body import EmptyBody, IncomingBody, WholeBody
from strongroom.servers.http.buffers import limit_reads
from strongroom.servers.http.handling import Handling
from strongroom.servers.http.head import Head, HeadParser
from strongroom.servers.http.life import Action, Event, State
from strongroom.servers.http.owner import ConnectionOwner
from strongroom.servers.http.pacing import Pacing
from strongroom.servers.http.send import CONTINUE, Plan, Sender
from strongroom.servers.http.send_bodies import BodySender
from strongroom.wire.core.http import Request

_EMPTY: Final = EmptyBody()
# Module constants, since an attribute access on an enumeration costs a call in Python 3.11.
_REQUEST, _ANSWERED = Event.REQUEST, Event.ANSWERED


class Connection(asyncio.Protocol):
    """Serves one client (the asyncio protocol of one transport).

    Attributes:
        pacing: has the deadline at which the server's sweep calls `expire`.
    """

    # connection_made sets these.
    _transport: asyncio.Transport
    _sender: Sender
    _responder: Responder
    _peer: str
    _tls: bool

    def __init__(self, owner: ConnectionOwner[Connection], loop: asyncio.AbstractEventLoop) -> None:
        self._owner = owner
        self._loop = loop
        self._parser = HeadParser(owner.settings)
        self._state = State.NEW
        self.pacing = Pacing(owner.settings, loop.time)
        self._pipelined = PipelineBuffer()
        self._handling: Handling | None = None  # set from a request's head until the next request

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to serve, or refuse the connection if the server is full."""
        assert isinstance(transport, asyncio.Transport)
        owner, settings = self._owner, self._owner.settings
        self._transport = transport
        address = transport.get_extra_info("peername")
        self._peer = address[0] if isinstance(address, tuple) else ""
        self._tls = transport.get_extra_info("ssl_object") is not None
        transport.set_write_buffer_limits(high=settings.write_buffer_high_bytes)
        # The first read may contain the start of a body, before the body has its share of memory.
        limit_reads(transport, settings.first_read_bytes_max)
        self._sender = sender = Sender(transport, self._loop, owner.turns)
        bodies = BodySender(sender, transport, self._loop, owner.slices, tls=self._tls)
        tell = owner.render_error, owner.observe
        writing = partial(self._on, Event.WRITING)
        self._responder = Responder(sender, bodies, *tell, self._loop.time, writing)
        self.pacing.set_timeout(owner.timeouts_s[State.NEW])
        if not owner.admit(self):
            self._on(Event.REFUSED, StorageError(SERVER_BUSY, "Too many connections are open."))

    def data_received(self, data: bytes) -> None:
        """Handle bytes of the client. Each state consumes its part and leaves the rest to the next
        state."""
        self._feed(data, 0)

    def eof_received(self) -> bool:
        """Handle the end of the client's data. It may still read, so received requests are
        answered."""
        self._sender.write_deferred()
        self._on(Event.EOF, StorageError(INCOMPLETE_BODY))
        return self._state in life.ANSWERING and not self._tls

    def connection_lost(self, exc: Exception | None) -> None:
        """Handle the end of the connection. A running handler is notified, but runs on."""
        self._on(Event.LOST, StorageError(INCOMPLETE_BODY))

    def pause_writing(self) -> None:
        self._sender.pause()

    def resume_writing(self) -> None:
        self._sender.resume()

    # Events, and their actions.

    def _on(self, event: Event, error: StorageError | None = None) -> None:
        """Apply an event: change the state and run the actions of the table's row.

        Arguments:
            error: the reason why the client is refused, or why its body fails.
        """
        row = life.TABLE[self._state].get(event)
        if row is None:
            return
        state, actions = row
        if state is not self._state:
            self._state = state
            self.pacing.set_timeout(self._owner.timeouts_s[state])
        for action in actions:
            _ACTIONS[action](self, error)

    def _feed(self, data: bytes, position: int) -> None:
        while position < len(data):
            position = _TAKERS[self._state](self, data, position)

    def _take_head(self, data: bytes, start: int) -> int:
        parser = self._parser
        try:
            position = parser.feed(data, start)
        except StorageError as error:
            if data.startswith(TLS_HANDSHAKE, start) and not self._tls:
                self._owner.warn_of_tls(self._peer)
            self._on(Event.REFUSED, error)
            return len(data)
        if position < 0:
            if parser.started:
                self._on(Event.HEAD_BEGINS)
            return len(data)
        head = parser.head
        assert head is not None
        return self._take_request(head, data, position)

    def _take_request(self, head: Head, data: bytes, position: int) -> int:
        """Begin a request whose head is complete. Its body, or a part of it, starts at
        `position`."""
        event, size_bytes = _REQUEST, head.size_bytes
        body: IncomingBody | EmptyBody = _EMPTY
        if size_bytes is None or size_bytes > len(data) - position:
            event = Event.REQUEST_EXPECTS if head.expects_continue else Event.REQUEST_OPEN
            owner = self._owner
            share = owner.buffers.begin(self._transport)
            body = IncomingBody(
                size_bytes, self, share, owner.documents, owner.buffers, slices=owner.slices
            )
        elif size_bytes:
            body = WholeBody(data[position : position + size_bytes])
            position += size_bytes
        request = Request(head.method, head.target, head.headers, body, self._peer, self._tls)
        self._sender.started = False
        self._handling = Handling(
            self, self._owner, self._responder, head, request, body, _started=self._loop.time()
        )
        self._on(event)
        return position

    def _take_body(self, data: bytes, start: int) -> int:
        assert self._handling is not None
        body = self._handling.body
        assert isinstance(body, IncomingBody)
        if len(self._pipelined):  # these bytes come after the buffered ones
            return self._take_pipelined(data, start)
        self._on(Event.BODY_COMES)
        position = body.receive(data, start)
        if body.ended:
            self._on(Event.BODY_ENDS)
        elif position < len(data):
            self._pipelined.add(data, position)
            self._transport.pause_reading()
            if not body.is_paused:
                self._loop.call_soon(self._take_rest)
            return len(data)
        return position

    def _take_rest(self) -> None:
        """Continue with buffered bytes, after other connections had a turn or the body has room
        again."""
        if self._state in life.TAKING_BODY:
            self._transport.resume_reading()
            self._feed(*self._pipelined.take())

    def _take_pipelined(self, data: bytes, start: int) -> int:
        if self._pipelined.add(data, start) > self._owner.settings.pipeline_bytes_max:
            self._transport.pause_reading()
        return len(data)

    def _discard(self, data: bytes, start: int) -> int:
        if self._state is State.LINGER and not self.pacing.count_discarded(len(data) - start):
            self._on(Event.DISCARD_LIMIT_EXCEEDED)
        return len(data)

    # For the request in progress (BodyFeed, RequestSource).

    @property
    def is_held_back(self) -> bool:
        return self._state is State.EXPECT

    def body_wanted(self) -> None:
        """Note that the handler waits for bytes: from now on the client must send them quickly."""
        self._on(Event.BODY_WANTED)

    def pause_body(self) -> None:
        self._transport.pause_reading()

    def resume_body(self) -> None:
        self._take_rest()

    @property
    def is_reusable(self) -> bool:
        return self._state in life.REUSABLE

    def handled(self, plan: Plan | None) -> None:
        if plan is None:
            self._on(Event.BROKEN)
        elif plan.keep_alive:
            self._on(_ANSWERED)
        elif len(self._pipelined) and not self._pipelined.is_at_eof:
            self._on(Event.ANSWERED_CLOSE_UNREAD)
        else:
            self._on(Event.ANSWERED_CLOSE)

    # For the server.

    def abort(self) -> None:
        """End the connection at once, and cancel its handler."""
        self._on(Event.ABORT)

    def close_if_idle(self) -> None:
        """Close the connection unless it has a request, or a part of one."""
        self._on(Event.STOP)

    def waiting(self) -> WaitingConnection | None:
        has_begun = life.WAITING.get(self._state)
        if has_begun is None:
            return None
        since = self.pacing.began(self._owner.timeouts_s[self._state])
        return WaitingConnection(has_begun, since, self, self.give_way)

    def give_way(self, since: float) -> bool:
        waiting, sender = self.waiting(), self._sender
        if waiting is None or waiting.since != since:
            return False
        if sender.flushed_bytes() != sender.bytes_out or not is_quiet(self._transport):
            return False
        self._on(Event.GIVE_WAY, StorageError(REQUEST_TIMEOUT))
        return True

    def expire(self) -> None:
        """Handle a deadline that has passed; the server's sweep calls this."""
        self._on(Event.TIMEOUT, StorageError(REQUEST_TIMEOUT))

    # Actions of the table.

    def _next(self) -> None:
        """Wait for the next request, whose bytes may have arrived already."""
        self._handling = None
        self._transport.resume_reading()
        self._feed(*self._pipelined.take())
        if self._pipelined.is_at_eof:
            self._on(Event.EOF, StorageError(INCOMPLETE_BODY))
        elif self._owner.draining:
            self._on(Event.STOP)

    def _forget(self) -> None:
        self._handling = None
        self._parser.close()
        # It refers to this connection. Without the cycle, the connection and the buffers of its TLS
        # are freed at once.
        del self._responder
        self._owner.forget(self)


_Do = Callable[[Connection, StorageError | None], None]
_Take = Callable[[Connection, bytes, int], int]


def _given(error: StorageError | None) -> StorageError:
    assert error is not None, "this event comes with an error"
    return error


def _current(connection: Connection) -> Handling:
    assert connection._handling is not None
    return connection._handling


def _half_close(connection: Connection, error: StorageError | None) -> None:
    connection.pacing.linger()
    connection._pipelined.take()
    connection._sender.end()
    connection._transport.resume_reading()


def _refuse(connection: Connection, error: StorageError | None) -> None:
    with_body = not connection._parser.is_head
    connection._responder.refuse(_given(error), connection._peer, with_body=with_body)


_ACTIONS: Final[Mapping[Action, _Do]] = {
    Action.BEGIN: lambda c, _: _current(c).start(c._loop),
    Action.REFUSE: _refuse,
    Action.CONTINUE: lambda c, _: c._sender.write_now(CONTINUE),
    Action.WATCH_BODY: lambda c, _: c.pacing.watch_body(_current(c).body),
    Action.CHECK_BODY: lambda c, e: c.pacing.check_body(_current(c).body, _given(e)),
    Action.FAIL_BODY: lambda c, e: _current(c).body.fail(_given(e)),
    Action.DROP_BODY: lambda c, _: _current(c).body.discard(),
    Action.WATCH_WRITING: lambda c, _: c.pacing.watch_writing(c._sender),
    Action.CHECK_WRITING: lambda c, _: c.pacing.check_writing(c._sender, _current(c).give_up),
    Action.NOTIFY_DISCONNECT: lambda c, _: _current(c).request.mark_disconnected(),
    Action.KEEP_EOF: lambda c, _: c._pipelined.end(),
    Action.CANCEL: lambda c, _: _current(c).cancel(),
    Action.NEXT: lambda c, _: c._next(),
    Action.HALF_CLOSE: _half_close,
    Action.CLOSE: lambda c, _: c._sender.close(),
    Action.ABORT_TRANSPORT: lambda c, _: c._sender.abort(),
    Action.WAKE_WRITER: lambda c, _: c._sender.connection_lost(),
    Action.FORGET: lambda c, _: c._forget(),
}
_TAKERS: Final[Mapping[State, _Take]] = {
    **dict.fromkeys(State, Connection._discard),
    **dict.fromkeys((State.NEW, State.IDLE, State.HEAD), Connection._take_head),
    **dict.fromkeys(life.TAKING_BODY, Connection._take_body),
    **dict.fromkeys((State.BUSY, State.SENDING), Connection._take_pipelined),
}
