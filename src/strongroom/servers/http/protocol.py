"""One HTTP connection: bytes in, requests to the handler one after the other, responses out.

Lives here: the life of a connection: how it goes from state to state (http/state.py), deadlines,
and when it may be used again. Must not live here: the grammar of heads (http/head.py) and bodies
(http/body.py), framing of responses (http/send.py), when a request runs (http/turns.py),
listening (http/accepting.py). Source: RFC 9112 section 9 (connections), RFC 9110 section 10.1.1.
"""

from __future__ import annotations

import asyncio
import logging
import math
from typing import Final

from strongroom.errors import (
    INCOMPLETE_BODY,
    REQUEST_TIMEOUT,
    SERVER_BUSY,
    StorageError,
)
from strongroom.servers.http.ahead import Ahead
from strongroom.servers.http.answer import Responder
from strongroom.servers.http.body import EmptyBody, IncomingBody, WholeBody
from strongroom.servers.http.buffers import limit_reads
from strongroom.servers.http.head import Head, HeadParser
from strongroom.servers.http.linger import Linger
from strongroom.servers.http.owner import ConnectionOwner
from strongroom.servers.http.send import CONTINUE, Plan, Sender
from strongroom.servers.http.state import BODY, BUSY, CLOSED, CLOSING, HEAD, LINGER, State
from strongroom.wire.core.http import Request

_logger = logging.getLogger("strongroom.http")
_EMPTY: Final = EmptyBody()


class Connection(asyncio.Protocol):
    """Serves one client (the asyncio protocol of one transport).

    Arguments:
        owner: the server.
        loop: the running loop.
    """

    # What connection_made sets.
    _transport: asyncio.Transport
    _sender: Sender
    _responder: Responder

    def __init__(self, owner: ConnectionOwner[Connection], loop: asyncio.AbstractEventLoop) -> None:
        self._owner = owner
        self._settings = owner.settings
        self._loop = loop
        self._parser = HeadParser(owner.settings)
        self._state: State = HEAD
        self.deadline = math.inf
        self._head: Head | None = None
        self._body: IncomingBody | EmptyBody = _EMPTY
        self._request: Request | None = None
        self._task: asyncio.Task[None] | None = None
        self._ahead = Ahead()
        self._discarding = False
        self._eof = False
        self._sending = False
        self._mark = 0
        self._linger: Linger | None = None  # in the state LINGER
        self._started = 0.0
        self._peer = ""
        self._tls = False

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to serve, or refuse when the server is full."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        address = transport.get_extra_info("peername")
        self._peer = address[0] if isinstance(address, tuple) else ""
        self._tls = transport.get_extra_info("ssl_object") is not None
        transport.set_write_buffer_limits(high=self._settings.write_buffer_high_bytes)
        # The first read may bring a body's beginning, before the body has its share of memory.
        limit_reads(transport, self._settings.first_read_bytes_max)
        owner = self._owner
        self._sender = Sender(transport, self._loop, owner.turns, tls=self._tls)
        tell = owner.render_error, owner.observe
        self._responder = Responder(self._sender, *tell, self._loop.time, self._start_sending)
        self.deadline = self._loop.time() + self._settings.head_timeout_s
        if not owner.admit(self):
            self._refuse(StorageError(SERVER_BUSY, "Too many connections are open."))

    def data_received(self, data: bytes) -> None:
        """Bytes of the client, given to whoever waits for them in this state."""
        self._receive(data, 0)

    def _receive(self, data: bytes, start: int) -> None:
        state = self._state
        if state is HEAD:
            self._receive_head(data, start)
        elif state is BODY:
            self._receive_body(data, start)
        elif state is BUSY:
            self._receive_ahead(data, start)
        elif state is LINGER:
            assert self._linger is not None
            self.deadline = self._linger.deadline(self._loop.time())
            if not self._linger.takes(len(data)):
                self._transport.abort()

    def eof_received(self) -> bool:
        """The client sends no more. It may still read, so requests that are here are answered."""
        self._eof = True
        self._sender.catch_up()
        if self._state not in (BODY, BUSY):
            return False
        self._hear_eof()
        return not (self._discarding or self._tls)

    def _hear_eof(self) -> None:
        """Nothing more comes for the request that is here."""
        if self._state is BODY:
            assert isinstance(self._body, IncomingBody)
            self._body.fail(StorageError(INCOMPLETE_BODY))
        self._tell_gone()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is over; a handler that still runs is told, but runs on."""
        self._state = CLOSED
        self.deadline = math.inf
        self._eof = True
        self._parser.close()
        self._sender.lose()
        if isinstance(self._body, IncomingBody):
            self._body.fail(StorageError(INCOMPLETE_BODY))
        self._tell_gone()
        if self._task is None:
            self._owner.forget(self)

    def pause_writing(self) -> None:
        """The client reads too slowly."""
        self._sender.pause()

    def resume_writing(self) -> None:
        """The client has caught up."""
        self._sender.resume()

    # Bytes in.

    def _receive_head(self, data: bytes, start: int) -> None:
        parser = self._parser
        had_started = parser.started
        try:
            position = parser.feed(data, start)
        except StorageError as error:
            self._refuse(error)
            return
        if position < 0:
            if parser.started and not had_started:
                self.deadline = self._loop.time() + self._settings.head_timeout_s
            return
        head = parser.head
        assert head is not None
        position = self._begin(head, data, position)
        if position < len(data):
            self._receive(data, position)

    def _begin(self, head: Head, data: bytes, position: int) -> int:
        """A request is here: let it be handled. Returns the position behind what it has taken."""
        self.deadline = math.inf
        self._started = self._loop.time()
        self._sender.started = False
        self._head = head
        size_bytes = head.size_bytes
        if size_bytes == 0:
            self._state = BUSY
            self._body = _EMPTY
        elif size_bytes is not None and size_bytes <= len(data) - position:
            self._state = BUSY
            self._body = WholeBody(data[position : position + size_bytes])
            position += size_bytes
        else:
            self._state = BODY
            owner = self._owner
            share = owner.buffers.begin(self._transport)
            self._body = IncomingBody(size_bytes, self, share, owner.documents, owner.buffers)
            self._body.is_held_back = head.expects_continue
        request = Request(head.method, head.target, head.headers, self._body, self._peer, self._tls)
        self._request = request
        self._owner.turns.begin()
        self._task = self._loop.create_task(self._serve(request))
        return position

    def _receive_body(self, data: bytes, start: int) -> None:
        body = self._body
        assert isinstance(body, IncomingBody)
        body.is_held_back = False  # the client did not wait for it
        position = body.receive(data, start)
        if not body.ended:
            if body.failed and self._discarding:
                self._close()
            return
        if not self._discarding:
            self._state = BUSY
            if not self._sending:
                self.deadline = math.inf
        if position < len(data):
            self._receive_ahead(data, position)
        if self._discarding:
            self._next()

    def _receive_ahead(self, data: bytes, start: int) -> None:
        if self._ahead.add(data, start) > self._settings.pipeline_bytes_max:
            self._transport.pause_reading()

    def pause_body(self) -> None:
        """The handler reads its body more slowly than it arrives."""
        self._transport.pause_reading()

    def resume_body(self) -> None:
        """The handler has caught up."""
        if self._state is BODY:
            self._transport.resume_reading()

    def body_wanted(self) -> None:
        """The handler waits for bytes: from now on the client must be quick."""
        if self._body.is_held_back:
            self._body.is_held_back = False
            if not self._sender.started:
                self._sender.write_now(CONTINUE)
        if self.deadline == math.inf:
            self._start_body_period(self._loop.time())

    def _start_body_period(self, now: float) -> None:
        self._mark = self._body.received_bytes
        self.deadline = now + self._settings.body_stall_timeout_s

    # Requests to the handler, responses out.

    async def _serve(self, request: Request) -> None:
        plan: Plan | None = None
        try:
            plan = await self._answer(request)
        except Exception:
            _logger.exception("a connection failed")
        finally:
            self._ended(plan)

    async def _answer(self, request: Request) -> Plan | None:
        head = self._head
        assert head is not None
        try:
            response = await self._owner.handler(request)
        except Exception as error:
            response = self._responder.render(error, request)
        finally:
            self._body.release()
        size_bytes = len(response.body) if isinstance(response.body, bytes) else 0
        is_held = size_bytes > self._settings.answer_large_bytes
        if is_held:
            self._owner.large_answers.hold(self, size_bytes)
        try:
            return await self._responder.answer(
                request,
                head,
                self._body,
                response,
                keep_alive=self._reusable(),
                started=self._started,
            )
        finally:
            if is_held:
                self._owner.large_answers.let_go(self)

    def _ended(self, plan: Plan | None) -> None:
        """The request is over; `plan` says how it was answered, None means not whole."""
        self._task = self._request = None
        self._sending = False
        self._owner.turns.end()
        if self._state is CLOSED:
            self._owner.forget(self)
        elif plan is None:
            self._abort()
        elif plan.keep_alive:
            self._after_answer()
        else:
            self._close()

    def _reusable(self) -> bool:
        """Whether the connection can go on after this answer."""
        head = self._head
        if head is None or not head.keep_alive or self._owner.draining:
            return False
        if self._state is not BODY:
            return self._state is BUSY
        body = self._body
        assert isinstance(body, IncomingBody)
        # Without its 100 Continue a client may send the body or leave it out: nobody can know.
        if body.is_held_back or body.failed or self._eof or body.left_bytes is None:
            return False
        return body.left_bytes <= self._settings.discard_bytes_max

    def _start_sending(self) -> None:
        self._sending = True
        self._mark = self._sender.flushed_bytes()
        self.deadline = self._loop.time() + self._settings.write_stall_timeout_s

    def _after_answer(self) -> None:
        """Go on with the next request, after what is left of this one's body."""
        if self._state is not BODY:
            self._next()
            return
        assert isinstance(self._body, IncomingBody)
        if self._body.failed:
            self._close()
            return
        self._discarding = True
        self.deadline = self._loop.time() + self._settings.discard_timeout_s
        self._body.discard()

    def _next(self) -> None:
        """Wait for the next request, which may be here already."""
        if self._state >= LINGER:
            return
        self._state = HEAD
        self._body = _EMPTY
        self._discarding = False
        self.deadline = self._loop.time() + self._settings.idle_timeout_s
        self._transport.resume_reading()
        if self._ahead:
            self._receive_head(*self._ahead.take())
        if self._state is HEAD:
            if self._eof:
                self._close()
            elif self._owner.draining:
                self.close_if_idle()
        elif self._eof:
            self._hear_eof()

    # The end.

    def _refuse(self, error: StorageError) -> None:
        """Answer what is no request, and end the connection. Only while none is handled."""
        self._responder.refuse(error, with_body=not self._parser.is_head)
        self._close(unread=True)

    def _close(self, *, unread: bool = False) -> None:
        """End the connection so that the client sees the last answer.

        Closing a socket with unread input resets it, and a reset may overtake the answer. So what
        still comes is read and dropped for a while.
        """
        if self._state >= LINGER:
            return
        self._sender.catch_up()
        unread = unread or self._state is BODY or bool(self._ahead)
        now = self._loop.time()
        self._ahead.take()
        if isinstance(self._body, IncomingBody):
            self._body.discard()
        if unread and not self._eof:
            self._state = LINGER
            self._linger = Linger(self._settings, now)
            self.deadline = self._linger.deadline(now)
            self._sender.end()
            self._transport.resume_reading()
        else:
            self._state = CLOSING
            self.deadline = now + self._settings.linger_timeout_s
            self._transport.close()

    def _abort(self) -> None:
        if self._state is not CLOSED:
            self._sender.catch_up()
            self._state = CLOSING
            self._transport.abort()

    def abort(self) -> None:
        """End the connection at once, and cancel its handler."""
        self._abort()
        task = self._task
        if task is not None:
            task.add_done_callback(self._cancelled)
            task.cancel()

    def _cancelled(self, task: asyncio.Task[None]) -> None:
        if task is self._task:  # it had not begun
            self._body.release()
            self._ended(None)

    def close_if_idle(self) -> None:
        """Close the connection unless a request, or a part of one, is here."""
        if self._state is HEAD and not self._parser.started:
            self._close()

    def give_up(self) -> None:
        """Stop writing the response, whose client is too slow."""
        if not self._responder.given_up:
            self._responder.given_up = True
            if self._task is not None:
                self._task.cancel()

    def expire(self, now: float) -> None:
        """Called by the server's sweep when `deadline` has passed."""
        if self._sending:
            self._judge_writing(now)
        elif self._state is HEAD:
            if self._parser.started:
                self._refuse(StorageError(REQUEST_TIMEOUT))
            else:
                self._close()
        elif self._state is BODY and not self._discarding:
            self._judge_body(now)
        else:
            self._transport.abort()

    def _judge_writing(self, now: float) -> None:
        flushed = self._sender.flushed_bytes()
        blocked = self._sender.congested or self._sender.in_kernel
        if blocked and flushed - self._mark < self._settings.stall_bytes_min:
            self.give_up()
        self._mark = flushed
        self.deadline = now + self._settings.write_stall_timeout_s

    def _judge_body(self, now: float) -> None:
        body = self._body
        assert isinstance(body, IncomingBody)
        too_few = body.received_bytes - self._mark < self._settings.stall_bytes_min
        if body.waiting and too_few:
            self.deadline = math.inf
            body.fail(StorageError(REQUEST_TIMEOUT))
        else:
            self._start_body_period(now)

    def _tell_gone(self) -> None:
        if self._request is not None:
            self._request.tell_gone()
