"""A pool of persistent HTTP connections to one server; a request is sent once.

Lives here: the choice of a connection, and the errors of failed requests. Either the request never
reached the server (`StoreUnavailable`), or it may have (`NoResponse`). There is one retry rule: a
read is sent again if its idle connection proves to be closed. Source: RFC 9112, section 9.3.1. Must
not live here: the syntax (connections/http_connection.py), signatures, the meaning of a status
(each store).
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Mapping
from typing import Final, Protocol
from urllib.parse import SplitResult, urlsplit

from strongroom.coordination.clock import Clocks
from strongroom.coordination.errors import StoreRefused, StoreUnavailable, Unsupported
from strongroom.coordination.options.url_options import check_host
from strongroom.coordination.stores.connections.http_connection import (
    BadResponse,
    HttpConnection,
    HttpResponse,
)
from strongroom.coordination.stores.connections.tls_refusals import refusal_of

__all__ = ["HttpPool", "HttpResponse", "NoResponse", "Transport"]

_IDLE_MAX: Final = 32


def endpoint_parts(url: str) -> SplitResult:
    """Return the parts of an endpoint's URL, whose host and port are usable.

    Raises:
        Unsupported: it is not an http:// or https:// URL with a host, or it holds a user. The URL
            is quoted without what may be a password or a key.
    """
    try:
        parts = urlsplit(url)
        is_endpoint = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_endpoint = False
    if not is_endpoint:
        raise Unsupported(
            f"{_shown(url)} is no endpoint; write http(s)://host[:port], with a port from 1 to"
            " 65535"
        )
    if "@" in parts.netloc:
        raise Unsupported(
            "the endpoint holds a user or a password, which nothing reads; write"
            " http(s)://host[:port]"
        )
    check_host(parts.hostname or "")
    return parts


def _shown(url: str) -> str:
    scheme, _, rest = url.partition("://")
    if scheme not in ("http", "https"):
        return "the URL of the server"  # it may be a key in the wrong place
    # A password may hold any character, so all before the last @ may be a part of it.
    place = rest.rpartition("@")[2].partition("?")[0].partition("#")[0]
    return repr(f"{scheme}://{place}")


class NoResponse(Exception):
    """A request was sent, at least in part, and no response came: its fate is unknown."""


class Transport(Protocol):
    """What carries requests to one server, and its responses back; see `HttpPool`. Thread-safe."""

    host: str

    def send(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes,
        timeout_s: float,
        long_polls: bool = False,
    ) -> HttpResponse: ...

    def reset(self) -> None:
        """A forked child must not use the inherited connections."""
        ...

    def close(self) -> None:
        """Delayed requests are interrupted."""
        ...


class HttpPool:
    """Connections to one server. Thread-safe.

    Arguments:
        url: http:// or https://, a host and an optional port; a path is ignored.
        tls: the TLS context; by default it trusts the system's authorities.
    """

    def __init__(self, url: str, clock: Clocks, tls: ssl.SSLContext | None = None) -> None:
        parts = endpoint_parts(url)
        port = parts.port
        self.host, self.host_field = parts.hostname or "", parts.netloc
        secure = parts.scheme == "https"
        self._port = port or (443 if secure else 80)
        self._tls = (tls or ssl.create_default_context()) if secure else None
        self._clock = clock
        self.reset()

    def reset(self) -> None:
        """In a forked child, the inherited connections belong to the parent."""
        self._lock = threading.Lock()
        self._idle: list[HttpConnection] = []
        self._waiting: set[HttpConnection] = set()
        self._close_count = 0

    def send(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes,
        timeout_s: float,
        long_polls: bool = False,
    ) -> HttpResponse:
        """Send one request.

        Arguments:
            method: GET and HEAD are sent again if an idle connection was closed.
            target: the path and query, as they are sent.
            headers: all but Host and Content-Length.
            timeout_s: for connecting, sending and receiving together.
            long_polls: whether the server delays its response on purpose; `close` interrupts such a
                request.

        Raises:
            StoreUnavailable: the request certainly never arrived.
            StoreRefused: the request cannot be sent, or its response is too large.
            NoResponse: the request may have arrived.
        """
        until_s = self._clock.monotonic_s() + timeout_s
        head = self._head(method, target, headers, body)
        close_count = self._close_count
        while True:
            connection = self._take_idle()
            reused = connection is not None
            connection = connection or self._connect(until_s)
            reusable = False
            try:
                if long_polls:
                    with self._lock:
                        self._waiting.add(connection)
                response, reusable = connection.exchange(method, head, body, until_s)
                return response
            except TimeoutError as error:
                raise NoResponse(f"{self.host_field} did not answer in time") from error
            except (OSError, BadResponse) as error:
                if refusal := refusal_of(error):
                    raise StoreRefused(f"{self.host_field}: {refusal}") from error
                stale = reused and close_count == self._close_count
                if stale and method in ("GET", "HEAD"):
                    continue
                raise NoResponse(
                    f"{self.host_field} did not answer: {_error_text(error)}"
                ) from error
            finally:
                self._give_back(connection, reusable)

    def _head(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> str:
        lines = [f"{method} {target} HTTP/1.1", f"Host: {self.host_field}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if body or method in ("PUT", "POST"):
            lines.append(f"Content-Length: {len(body)}")
        lines += ("Accept-Encoding: identity", "\r\n")
        head = "\r\n".join(lines)
        # A value with a line break could add a header, so it is refused.
        if not head.isascii() or head.count("\n") != len(lines) or head.count("\r") != len(lines):
            raise StoreRefused("a header, or the target, holds what no header can")
        return head

    def _take_idle(self) -> HttpConnection | None:
        """Return one that seems to be open; None if there is none."""
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None or connection.is_reusable():
                return connection
            connection.close()

    def _connect(self, until_s: float) -> HttpConnection:
        if until_s <= self._clock.monotonic_s():
            raise StoreUnavailable(f"{self.host_field} was not asked: the time is up")
        try:
            return HttpConnection(self.host, self._port, self._tls, self._clock, until_s)
        except OSError as error:
            if refusal := refusal_of(error):
                raise StoreRefused(f"{self.host_field}: {refusal}") from error
            reason = f"{self.host_field} cannot be reached: {_error_text(error)}"
            raise StoreUnavailable(reason) from error

    def _give_back(self, connection: HttpConnection, reusable: bool) -> None:
        with self._lock:
            self._waiting.discard(connection)
            if reusable and len(self._idle) < _IDLE_MAX:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        """Interrupt delayed requests too. A later request reconnects."""
        with self._lock:
            self._close_count += 1
            idle, self._idle = self._idle, []
            waiting = list(self._waiting)
        for connection in idle:
            connection.close()
        for connection in waiting:
            connection.interrupt()


def _error_text(error: Exception) -> str:
    return str(error) or type(error).__name__
