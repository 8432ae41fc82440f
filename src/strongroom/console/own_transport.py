"""Requests of the toolkit to the server in the same process, without a socket.

Lives here: the toolkit's `Transport`, which hands a signed request to the path of every request.
Must not live here: the signature (the toolkit's), the meaning of an answer. Such requests are not
in the access log, the figures or the tail of requests: they are the console's own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import CancelledError
from concurrent.futures import TimeoutError as OutOfTime

from strongroom.coordination.errors import StoreUnavailable
from strongroom.coordination.stores.connections.http_pool import HttpResponse, NoResponse
from strongroom.platform.files import pread
from strongroom.servers.requests.admission import ServiceContext
from strongroom.servers.requests.pipeline import respond
from strongroom.setup.files import RequestBytes
from strongroom.values import FileSlice
from strongroom.wire.core.http import Headers, Request, Response


class OwnTransport:
    """Carries requests from any thread to the server's event loop.

    Arguments:
        context: the path of requests to the Blob service.
        loop: the server's event loop.
    """

    def __init__(self, context: ServiceContext, loop: asyncio.AbstractEventLoop) -> None:
        self.host = "this server"
        self._context, self._loop = context, loop

    def send(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes,
        timeout_s: float,
        long_polls: bool = False,
    ) -> HttpResponse:
        """Send one request, and return its answer; see `Transport`. Not on the loop's own thread.

        Raises:
            StoreUnavailable: the server has stopped.
            NoResponse: the answer did not come in time.
        """
        fields = Headers([*headers.items(), ("Content-Length", str(len(body)))])
        answering = self._answer(Request(method, target, fields, RequestBytes(body)))
        try:
            future = asyncio.run_coroutine_threadsafe(answering, self._loop)
        except RuntimeError:
            answering.close()
            raise StoreUnavailable("this server has stopped") from None
        try:
            return future.result(max(0.0, timeout_s))
        except OutOfTime:
            future.cancel()
            raise NoResponse("this server did not answer in time") from None
        except CancelledError:
            raise NoResponse("this server is stopping") from None

    async def _answer(self, request: Request) -> HttpResponse:
        response = await respond(self._context, request)
        try:
            body = await _whole_body(response)
        finally:
            if response.finished is not None:
                response.finished()
        return HttpResponse(
            response.status, {name.lower(): value for name, value in response.headers}, body
        )

    def reset(self) -> None:
        """Do nothing: there are no connections."""

    def close(self) -> None:
        """Do nothing: there are no connections."""


async def _whole_body(response: Response) -> bytes:
    if isinstance(response.body, bytes):
        return response.body
    pieces = [_bytes_of(piece) async for piece in response.body]
    return b"".join(pieces)


def _bytes_of(piece: bytes | FileSlice) -> bytes:
    if isinstance(piece, FileSlice):
        return pread(piece.file.fileno(), piece.length, piece.offset)
    return piece
