"""The observers of requests: access log, tracing and the tail of requests, where they are on.

Lives here: what an observer is told. A server without observers does not even test for them while
it handles a request.

There are two kinds. A RequestObserver follows a request from its begin, over HTTP and SMB. It may
use the times that the request waited for the engine, so it costs more. An ExchangeObserver is told
of ended requests over HTTP only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import msgspec

from strongroom.servers.http.settings import Exchange
from strongroom.wire.core.http import Request, Response
from strongroom.wire.smb.header import Header

Handle = Callable[[Request], Awaitable[Response]]


class SmbExchange(msgspec.Struct, frozen=True):
    """One message of SMB and its answer.

    Attributes:
        peer: the client's address and port.
        request: the message, from its header on.
        status: the NTSTATUS of the answer.
        account: whose key the session has proven; "" without an authenticated session.
        share: the share of the tree connect; "" without one.
        path: the names from the share's root down; None if the message is for no file.
        session_id, tree_id: as the client knows them.
        bytes_out: the length of the answer's body.
    """

    peer: str
    header: Header
    request: memoryview
    status: int
    seconds: float
    account: str
    share: str
    path: tuple[str, ...] | None
    session_id: int
    tree_id: int
    bytes_out: int


class ExchangeObserver(Protocol):
    """Observes ended requests over HTTP, on the event loop. It needs no times of the engine."""

    def of_listener(self, name: str) -> Callable[[Exchange], None]:
        """Return the function that is called with each exchange of the port called `name`."""
        ...


class RequestObserver(Protocol):
    """Observes the requests of all listeners, on the event loop, with the times of the engine."""

    def begin(self, request: Request | None) -> None:
        """Note a request that begins, in the task that handles it; None = one of SMB."""
        ...

    def observe(self, exchange: Exchange, listener: str) -> None:
        """Note the end of a request over HTTP, in the task of `begin`; requests that could not be
        read had none.

        Arguments:
            listener: the name of the port.
        """
        ...

    def observe_smb(self, exchange: SmbExchange) -> None:
        """Note the end of a message of SMB, in the task of `begin`."""
        ...


def watched(handle: Handle, observers: Sequence[RequestObserver]) -> Handle:
    """Return a handler that tells the observers when a request begins; without observers, the
    handler itself."""
    if not observers:
        return handle

    def begin(request: Request) -> Awaitable[Response]:
        for observer in observers:
            observer.begin(request)
        return handle(request)

    return begin
