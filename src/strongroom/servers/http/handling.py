"""One request, from its head to the end of its answer.

Lives here: the task of a request, and whether its connection can be used again afterwards. Must not
live here: states of the connection (http/life.py), how an answer is written (http/answer.py).
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Protocol

import msgspec

from strongroom.servers.http.answer import Responder
from strongroom.servers.http.body import EmptyBody, IncomingBody
from strongroom.servers.http.head import Head
from strongroom.servers.http.owner import ConnectionOwner
from strongroom.servers.http.send import Plan
from strongroom.wire.core.http import Request

_logger = logging.getLogger("strongroom.http")


class RequestSource(Protocol):
    """The connection that a request arrived on."""

    @property
    def is_reusable(self) -> bool:
        """Whether another request may follow on the connection."""
        ...

    def handled(self, plan: Plan | None) -> None:
        """Note the end of the request; `plan` is what was sent, None if it was not sent whole."""
        ...


class Handling(msgspec.Struct, eq=False):
    """Handles one request.

    `_client` is the connection, whose `handled` is called at the end. `body` is filled by the
    connection. `_started` is in seconds of the loop's clock.
    """

    _client: RequestSource
    _owner: ConnectionOwner[Any]
    _responder: Responder
    _head: Head
    request: Request
    body: IncomingBody | EmptyBody
    _started: float
    _task: asyncio.Task[None] | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the handler in the next turn of the loop."""
        self._owner.turns.begin()
        # Named, since a default name is counted and formatted for each task.
        self._task = loop.create_task(self._run(), name="request")

    def cancel(self) -> None:
        """Cancel the handler, even if it has not started yet."""
        if self._task is not None:
            self._task.add_done_callback(self._cancelled)
            self._task.cancel()

    def give_up(self) -> None:
        """Stop writing the answer, since its client reads too slowly."""
        if self._task is not None and not self._responder.is_abandoned:
            self._responder.is_abandoned = True
            self._task.cancel()

    async def _run(self) -> None:
        plan: Plan | None = None
        try:
            plan = await self._answer()
        except Exception:
            _logger.exception("a connection failed")
        finally:
            self._end(plan)

    def _cancelled(self, task: asyncio.Task[None]) -> None:
        if self._task is not None:  # cancelled before its first step
            self.body.release()
            self._end(None)

    def _end(self, plan: Plan | None) -> None:
        self._task = None
        self._owner.turns.end()
        self._client.handled(plan)

    async def _answer(self) -> Plan | None:
        owner, request = self._owner, self.request
        try:
            response = await owner.handler(request)
        except Exception as error:
            response = self._responder.render(error, request)
        finally:
            self.body.release()
        size_bytes = len(response.body) if isinstance(response.body, bytes) else 0
        is_large = size_bytes > owner.settings.answer_large_bytes
        if is_large:
            owner.large_answers.reserve(self, size_bytes)
        try:
            return await self._responder.answer(
                request,
                self._head,
                self.body,
                response,
                keep_alive=self._is_reusable(),
                started=self._started,
            )
        finally:
            if is_large:
                owner.large_answers.release(self)

    def _is_reusable(self) -> bool:
        if self._owner.draining or not self._head.keep_alive or not self._client.is_reusable:
            return False
        left_bytes = self.body.left_bytes
        return left_bytes is not None and left_bytes <= self._owner.settings.discard_bytes_max
