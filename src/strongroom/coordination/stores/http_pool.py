"""Requests over kept-alive connections to one server, each sent once: for stores that speak HTTP.

Lives here: sockets, time limits, and the distinction that decides everything: a request that
certainly never reached the server (`StoreUnavailable`), and one whose answer never came
(`NoAnswer`). Only a read whose connection turns out to have been closed while it was idle is sent
again. Source: RFC 9112 section 9.3 (persistence). Must not live here: signatures, what a status
means (each store).
"""

from __future__ import annotations

import http.client
import select
import socket
import threading
from collections.abc import Mapping
from email.message import Message
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from strongroom.coordination.clock import Clock
from strongroom.coordination.errors import StoreRefused, StoreUnavailable, Unsupported

BODY_BYTES_MAX: Final = 16 << 20
_IDLE_MAX: Final = 32


class Answer(NamedTuple):
    """What the server said; `headers` are looked up without regard to case."""

    status: int
    headers: Message
    body: bytes

    def header(self, name: str) -> str:
        """Return a header; empty if it is not there."""
        return str(self.headers.get(name, ""))

    @property
    def etag(self) -> str:
        """The entity tag, with its quotes; empty if there is none."""
        return self.header("ETag")


class NoAnswer(Exception):
    """The request went out, or a part of it, and no answer came: its fate is unknown."""


class HttpPool:
    """Connections to one server. Any thread may use it.

    Arguments:
        url: http:// or https://, a host, maybe a port; a path is not looked at.
        clock: for time limits.

    Raises:
        Unsupported: the URL is none of that kind.
    """

    def __init__(self, url: str, clock: Clock) -> None:
        parts = urlsplit(url)
        try:
            port = parts.port
        except ValueError:
            port = -1
        if parts.scheme not in ("http", "https") or not parts.hostname or port == -1:
            raise Unsupported(f"{url!r} is no endpoint; write http(s)://host[:port]")
        self._secure, self.host, self._port = parts.scheme == "https", parts.hostname, port
        self.host_field = parts.netloc.rpartition("@")[2]
        self._clock = clock
        self.forget()

    def forget(self) -> None:
        """Start without connections; in a forked child those that were inherited are another's."""
        self._lock = threading.Lock()
        self._idle: list[http.client.HTTPConnection] = []
        self._waiting: set[http.client.HTTPConnection] = set()
        self._closings = 0

    def send(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes,
        timeout_s: float,
        waits: bool = False,
    ) -> Answer:
        """Send one request and return its answer.

        Arguments:
            method: GET and HEAD may be sent again over a connection that proved to be dead.
            target: path and query as they are sent.
            headers: all but Host and Content-Length.
            body: what is sent.
            timeout_s: for connecting, sending and receiving together.
            waits: its answer may take long on purpose; `close` breaks it off.

        Raises:
            StoreUnavailable: it certainly never arrived.
            StoreRefused: an answer of more than `BODY_BYTES_MAX`.
            NoAnswer: it may have arrived.
        """
        until_s = self._clock.monotonic_s() + timeout_s
        closings = self._closings
        while True:
            connection = self._idle_one()
            reused = connection is not None
            connection = connection or self._connected(until_s)
            if waits:
                with self._lock:
                    self._waiting.add(connection)
            try:
                return self._exchange(connection, method, target, headers, body, until_s)
            except TimeoutError as error:
                raise NoAnswer(f"{self.host_field} did not answer in time") from error
            except (OSError, http.client.HTTPException) as error:
                stale = reused and closings == self._closings
                if stale and method in ("GET", "HEAD"):
                    continue
                raise NoAnswer(f"{self.host_field} did not answer: {_words(error)}") from error
            finally:
                self._give_back(connection)

    def _exchange(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes,
        until_s: float,
    ) -> Answer:
        sound = False
        try:
            self._limit(connection, until_s)
            connection.request(method, target, body or None, dict(headers))
            self._limit(connection, until_s)
            response = connection.getresponse()
            self._limit(connection, until_s)
            content = response.read(BODY_BYTES_MAX + 1)
            if response.length and len(content) <= BODY_BYTES_MAX:
                # A read of a bounded size does not complain of an answer that was cut off.
                raise http.client.IncompleteRead(content, response.length)
            sound = response.isclosed() and not response.will_close
        finally:
            if not sound:
                connection.close()
        if len(content) > BODY_BYTES_MAX:
            raise StoreRefused(f"{self.host_field} sent more than {BODY_BYTES_MAX} bytes")
        return Answer(response.status, response.headers, content)

    def _limit(self, connection: http.client.HTTPConnection, until_s: float) -> None:
        left_s = until_s - self._clock.monotonic_s()
        if left_s <= 0:
            raise TimeoutError("the time is up")
        if connection.sock is not None:
            connection.sock.settimeout(left_s)

    def _idle_one(self) -> http.client.HTTPConnection | None:
        """Return a connection that has been used before and is open as far as one can see."""
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None or _is_quiet(connection):
                return connection
            connection.close()

    def _connected(self, until_s: float) -> http.client.HTTPConnection:
        left_s = until_s - self._clock.monotonic_s()
        if left_s <= 0:
            raise StoreUnavailable(f"{self.host_field} was not asked: the time is up")
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        connection = kind(self.host, self._port, timeout=left_s)
        try:
            connection.connect()
        except OSError as error:
            connection.close()
            reason = f"{self.host_field} cannot be reached: {_words(error)}"
            raise StoreUnavailable(reason) from error
        return connection

    def _give_back(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            self._waiting.discard(connection)
            if connection.sock is not None and len(self._idle) < _IDLE_MAX:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        """Close what is idle, and break off what waits. Further requests connect anew."""
        with self._lock:
            self._closings += 1
            idle, self._idle = self._idle, []
            waiting = [connection.sock for connection in self._waiting]
        for connection in idle:
            connection.close()
        for sock in waiting:
            if sock is not None:
                try:
                    sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # it ended by itself meanwhile


def _is_quiet(connection: http.client.HTTPConnection) -> bool:
    """Whether nothing is to be read: an idle connection that can be read from has been closed."""
    if connection.sock is None:
        return False
    poll = select.poll()
    poll.register(connection.sock, select.POLLIN | select.POLLHUP | select.POLLERR)
    return not poll.poll(0)


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__
