"""NATS as a bus: core publish and subscribe, through the official client nats-py.

The client is for asyncio. So each listener runs a loop on its own thread, and each `publish` runs
one for its duration. NATS does not keep messages for a listener that is not connected. A listener
that connects again reads the store once. Must not live here: reconnecting (bus.py). The client's
own is turned off, so that every reconnection is noticed.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, Final

from nats.aio.client import Callback, Client, ErrorCallback
from nats.aio.msg import Msg
from nats.errors import AuthorizationError, Error

from strongroom.coordination.errors import Unsupported
from strongroom.coordination.hints.address import Address, address_of, tls_of
from strongroom.coordination.hints.bus import (
    ATTEMPT_S,
    HEARTBEAT_S,
    BusHints,
    BusRefused,
    BusUnavailable,
    TopicListeners,
)

PORT: Final = 4222
_CLOSE_TIMEOUT_S: Final = 1.0
_MESSAGE: Final = b"look"
_PREFIX: Final = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")


class _Client(Client):
    """The official client, but without its fallback from TLS to a plain connection.

    The original obeys a server that says that TLS is not needed. Such a server may be anybody, and
    no password must be sent to it in the clear.
    """

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
        if self.options.get("tls") is not None and not info.get("tls_required"):
            raise _NoTls
        await super()._process_info(info, initial_connection)


class _NoTls(Error):
    """The server does not speak TLS."""


class NatsBus:
    """A bus for hints over a NATS server or cluster.

    Arguments:
        address: the server, with user and password, or with the token as the user alone.
        prefix: the first part of every subject, which keeps users of one server apart.
        tls: the context for TLS; None for plain connections.
    """

    def __init__(
        self, address: Address, prefix: str = "strongroom", tls: ssl.SSLContext | None = None
    ) -> None:
        self._address, self._prefix, self._tls = address, prefix, tls

    @property
    def display_url(self) -> str:
        return self._address.display_url

    def publish(self, topic: str) -> None:
        # A thread of its own: the caller's may have a running loop already.
        with ThreadPoolExecutor(1) as pool:
            pool.submit(asyncio.run, self._publish(self._subject(topic))).result()

    def listen(self, listeners: TopicListeners) -> None:
        asyncio.run(self._listen(listeners))

    async def _publish(self, subject: str) -> None:
        problems: list[Exception] = []
        async with self._connected(lambda: None, problems) as client:
            await client.publish(subject, _MESSAGE)
            await self._flush(client, problems)

    async def _listen(self, listeners: TopicListeners) -> None:
        loop, closed = asyncio.get_running_loop(), asyncio.Event()
        problems: list[Exception] = []
        listeners.on_close(lambda: _wake(loop, closed))
        try:
            async with self._connected(closed.set, problems) as client:

                async def heard(_: Msg) -> None:
                    listeners.message_received()

                await client.subscribe(self._subject(listeners.topic), cb=heard)
                await self._flush(client, problems)
                listeners.subscribed()
                await closed.wait()
                if not listeners.closed:
                    raise self._error_of(problems, client.last_error)
        finally:
            listeners.on_close(None)

    async def _flush(self, client: Client, problems: list[Exception]) -> None:
        # The client's ping overtakes the messages in its buffer, and then empties the buffer. Only
        # the answer to a second ping shows that the server has got them. A refusal comes before it.
        await client.flush(int(ATTEMPT_S))
        await client.flush(int(ATTEMPT_S))
        if problems:
            raise self._error_of(problems)

    @asynccontextmanager
    async def _connected(
        self, ended: Callable[[], None], problems: list[Exception]
    ) -> AsyncIterator[Client]:
        async def on_error(error: Exception) -> None:
            problems.append(error)
            ended()

        async def on_closed() -> None:
            ended()

        client = _Client()
        try:
            try:
                async with asyncio.timeout(ATTEMPT_S):
                    await self._connect(client, on_error, on_closed)
                yield client
            except (Error, OSError, TimeoutError) as error:
                raise self._error_of(problems, error) from None
        finally:
            await _close(client)

    async def _connect(self, client: Client, on_error: ErrorCallback, on_closed: Callback) -> None:
        address = self._address
        named = address.password is not None
        await client.connect(
            f"nats://{address.display_url.partition('://')[2]}",
            user=address.user if named else None,
            password=address.password,
            token=None if named else address.user,
            tls=self._tls,
            tls_hostname=None if self._tls is None else address.host,
            allow_reconnect=False,
            reconnect_time_wait=0,
            max_reconnect_attempts=1,
            connect_timeout=int(ATTEMPT_S),
            ping_interval=HEARTBEAT_S,
            error_cb=on_error,
            closed_cb=on_closed,
        )

    def _error_of(
        self, problems: Sequence[Exception], error: BaseException | None = None
    ) -> BusRefused | BusUnavailable:
        """Return one error for all: a refusal if there was one, since it causes the rest."""
        errors = [*problems, *([] if error is None else [error])]
        for one in errors:
            # The client puts the server's text, in lower case, into an error without its own type.
            text = str(one).lower()
            if isinstance(one, _NoTls):
                return BusRefused(f"{self.display_url} refuses TLS; no password was sent")
            if isinstance(one, AuthorizationError) or "authorization" in text:
                return BusRefused(f"{self.display_url} refuses the user, password or token")
            if "permissions violation" in text:
                return BusRefused(
                    f"{self.display_url} refuses this user the subject {self._prefix}.>"
                )
        what = type(errors[-1]).__name__ if errors else "the connection ended"
        return BusUnavailable(f"{self.display_url} does not answer ({what})")

    def _subject(self, topic: str) -> str:
        # A dot separates the parts of a subject, and no part may be empty.
        return f"{self._prefix}.{topic.replace('.', '%2E').replace('/', '.')}"


async def _close(client: Client) -> None:
    """Close a connection, even if it was only begun."""
    try:
        async with asyncio.timeout(_CLOSE_TIMEOUT_S):
            await client.close()
    except (Error, OSError, TimeoutError):
        pass  # the connection had ended, or the server does not answer the close


def _wake(loop: asyncio.AbstractEventLoop, closed: asyncio.Event) -> None:
    try:
        loop.call_soon_threadsafe(closed.set)
    except RuntimeError:
        pass  # the loop has ended meanwhile


def open_url(url: str, query: Mapping[str, str]) -> BusHints:
    """Return hints over NATS.

    Arguments:
        url: nats://[USER:PASSWORD@ | TOKEN@]HOST[:4222], nats+tls:// for TLS
        query: `prefix` of the subjects; "strongroom" by default; `ca`, for TLS: a file of
            certificates to trust in place of the system's.
    """
    with_tls = url.lower().startswith("nats+tls:")
    address = address_of(url, PORT, query, ("prefix", "ca") if with_tls else ("prefix",))
    prefix = query.get("prefix", "strongroom")
    if not _PREFIX.fullmatch(prefix):
        raise Unsupported(f"prefix={prefix} is no beginning of a subject: letters, digits, _ - .")
    return BusHints(NatsBus(address, prefix, tls_of(query.get("ca")) if with_tls else None))
