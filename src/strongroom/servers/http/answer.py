"""Answers: turns a handler's response, or an error, into bytes on the connection and a report.

Lives here: rendering and logging of errors, the handling of a response that fails while it is sent,
the call of the observer. Must not live here: the bytes of a response (http/send.py), the life of
the connection (http/protocol.py). Source: RFC 9112 section 8 (an incomplete response must not look
complete).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from strongroom.errors.core import INSUFFICIENT_STORAGE, INTERNAL_ERROR, SERVER_BUSY, StorageError
from strongroom.servers.http.body import EmptyBody, IncomingBody
from strongroom.servers.http.head import Head
from strongroom.servers.http.send import Plan, Sender, plan_response
from strongroom.servers.http.send_bodies import BodySender
from strongroom.servers.http.settings import Exchange, Observer, RenderError
from strongroom.services.core.outcomes import BROKEN, refusal_of
from strongroom.wire.core.http import Request, Response

_logger = logging.getLogger("strongroom.http")


def broken_refusal(error: BROKEN, request: Request) -> StorageError:
    """The refusal for an error of the storage engine, which is logged in a line that names the
    request.

    The error is no defect of the program, so the line has no traceback.
    """
    refusal = refusal_of(error)
    # The engine logs a full disk once; a line for every request would repeat it.
    level = logging.DEBUG if refusal.row is INSUFFICIENT_STORAGE else logging.ERROR
    text = "%s %s: the storage engine cannot serve: %s"
    _logger.log(level, text, request.method, request.path, error)
    return refusal


class Responder:
    """Answers the requests of one connection.

    Arguments:
        bodies: sends what is too large for one write.
        render_error, observe: see `HttpServer`.
        now: seconds of the loop's clock.
        watch: called when a write begins that may have to wait for the client.
    """

    __slots__ = (
        "_bodies",
        "_now",
        "_observe",
        "_render_error",
        "_response",
        "_sender",
        "_watch",
        "is_abandoned",
    )

    def __init__(
        self,
        sender: Sender,
        bodies: BodySender,
        render_error: RenderError,
        observe: Observer | None,
        now: Callable[[], float],
        watch: Callable[[], None],
    ) -> None:
        self._sender = sender
        self._bodies = bodies
        self._render_error = render_error
        self._observe = observe
        self._now = now
        self._watch = watch
        self._response = Response(0)  # the one that is sent
        self.is_abandoned = False  # whether a cancellation means that the client reads too slowly

    def render(self, error: Exception, request: Request | None) -> Response:
        """Return the response to a refusal or a defect. A defect is logged without query and
        headers."""
        if isinstance(error, MemoryError):
            self._sender.report(error)
            error = StorageError(SERVER_BUSY, "The server is short of memory.")
        if isinstance(error, BROKEN) and request is not None:
            error = broken_refusal(error, request)
        if not isinstance(error, StorageError):
            method, path = ("-", "-") if request is None else (request.method, request.path)
            _logger.error("unexpected error in %s %s", method, path, exc_info=error)
            error = StorageError(INTERNAL_ERROR)
        try:
            return self._render_error(error, request)
        except Exception:
            _logger.exception("an error could not be rendered")
            return Response(error.row.status)

    async def answer(
        self,
        request: Request,
        head: Head,
        body: IncomingBody | EmptyBody,
        response: Response,
        *,
        keep_alive: bool,
        started: float,
    ) -> Plan | None:
        """Send a response, handle every failure on the way, and report the exchange.

        Arguments:
            keep_alive: whether the connection can be used again afterwards.
            started: when the request's head was complete, by the loop's clock.

        Returns: the plan that was sent. None if the response could not be sent whole; the
            connection must then be aborted. `response.finished` has been called.
        """
        sender = self._sender
        self._response = response
        bytes_before = sender.bytes_out
        plan: Plan | None = None
        try:
            if not sender.lost:
                plan = await self._send(request, head, response, keep_alive)
        finally:
            if response.finished is not None:
                _finish(response)
            if self._observe is not None:
                sent, answer_head = self._response, b"" if plan is None else plan.head
                self._report(
                    Exchange(
                        request,
                        sent.status,
                        body.received_bytes,
                        sender.bytes_out - bytes_before,
                        self._now() - started,
                        plan is not None,
                        sent,
                        len(answer_head),
                        request.peer,
                        head.sent,
                        answer_head,
                    )
                )
        return plan

    def refuse(self, error: StorageError, peer: str, *, with_body: bool) -> None:
        """Refuse bytes that are no request; the connection must end afterwards."""
        response = self.render(error, None)
        plan, data = self._whole(response, None, keep_alive=False)
        if not with_body:
            data = plan.head
        self._sender.write_at_once(data, b"")
        if self._observe is not None:
            self._report(
                Exchange(
                    None,
                    response.status,
                    bytes_in=0,
                    bytes_out=len(data),
                    seconds=0.0,
                    complete=True,
                    response=response,
                    head_bytes=len(plan.head),
                    peer=peer,
                    answer_head=plan.head,
                )
            )

    async def _send(
        self, request: Request, head: Head, response: Response, keep_alive: bool
    ) -> Plan | None:
        sender = self._sender
        try:
            plan = plan_response(
                response,
                method=head.method,
                http_1_0=head.http_1_0,
                keep_alive=keep_alive and not response.close,
            )
            body = response.body if plan.with_body else b""
            is_last = not plan.keep_alive
            if isinstance(body, bytes) and sender.write_at_once(plan.head, body, is_last=is_last):
                if sender.congested:
                    self._watch()
                    await sender.drain()
                return plan
            self._watch()
            await self._bodies.send(plan, response)
        except ConnectionError:
            return None
        except asyncio.CancelledError:
            if not self.is_abandoned:
                raise
            return None
        except Exception as error:
            if sender.lost:
                return None
            if not sender.started:
                return self._send_instead(request, head, error, keep_alive)
            self.render(error, request)  # logs the error; the client must see a broken response
            return None
        return plan

    def _send_instead(
        self, request: Request, head: Head, error: Exception, keep_alive: bool
    ) -> Plan | None:
        """Send the refusal instead, since no byte of the response has been sent yet."""
        self._sender.discard_buffered()
        response = self.render(error, request)
        replaced, self._response = self._response, response
        response.operation, response.facts = replaced.operation, (replaced.facts, response.facts)
        plan, data = self._whole(response, head, keep_alive=keep_alive)
        self._sender.write_at_once(data, b"")
        return plan

    def _whole(
        self, response: Response, head: Head | None, *, keep_alive: bool
    ) -> tuple[Plan, bytes]:
        """Return the plan of a refusal's response, and all its bytes in one piece."""
        _finish(response)
        body = response.body if isinstance(response.body, bytes) else b""
        plan = plan_response(
            Response(response.status, response.headers, body, reason=response.reason),
            method="GET" if head is None else head.method,
            http_1_0=head is not None and head.http_1_0,
            keep_alive=keep_alive and not response.close,
        )
        return plan, plan.head + body if plan.with_body else plan.head

    def _report(self, exchange: Exchange) -> None:
        assert self._observe is not None
        try:
            self._observe(exchange)
        except Exception:
            _logger.exception("the observer of exchanges failed")


def _finish(response: Response) -> None:
    finished, response.finished = response.finished, None
    if finished is not None:
        try:
            finished()
        except Exception:
            _logger.exception("a response could not be finished")
