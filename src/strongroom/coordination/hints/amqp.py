"""AMQP 0-9-1 (RabbitMQ) as a bus: a topic exchange, and an exclusive queue for each listener.

It uses the client pika, whose connections belong to one thread. Each listener has a connection of
its own. Each `publish` has one until the broker confirms the message. A queue ends with its
connection, so a listener that connects again reads the store once. Must not live here: reconnecting
(bus.py).
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import pika
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import (
    AMQPError,
    AuthenticationError,
    ChannelClosedByBroker,
    ConnectionClosedByBroker,
    ProbableAccessDeniedError,
    ProbableAuthenticationError,
)

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

PORTS: Final = {"amqp": 5672, "amqps": 5671}
_MESSAGE: Final = b"look"
# All messages are equal: a slow listener needs no more than the last few.
_QUEUE_LENGTH_MAX: Final = 16
_POLL_S: Final = 1.0
_REFUSED: Final = frozenset({403, 406, 530})


class AmqpBus:
    """A RabbitMQ, or another broker that speaks AMQP 0-9-1.

    Arguments:
        address: user, password, and the virtual host as the path; without a path it is "/".
        exchange: is declared if it does not exist: durable, of the type "topic".
        tls: the context for TLS; None for plain connections.
    """

    def __init__(
        self,
        address: Address,
        exchange: str = "strongroom.hints",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._address, self._exchange, self._tls = address, exchange, tls

    @property
    def display_url(self) -> str:
        return self._address.display_url

    def publish(self, topic: str) -> None:
        with self._channel() as channel:
            channel.confirm_delivery()
            channel.basic_publish(self._exchange, topic, _MESSAGE)

    def listen(self, listeners: TopicListeners) -> None:
        with self._channel() as channel:
            connection = channel.connection

            def wake() -> None:
                try:
                    connection.add_callback_threadsafe(lambda: None)
                except AMQPError:
                    pass  # the connection has ended, and with it the wait in the loop below

            queue = self._queue(channel, listeners)
            channel.basic_consume(queue, lambda *_: listeners.message_received(), auto_ack=True)
            listeners.on_close(wake)
            try:
                listeners.subscribed()
                while not listeners.closed:
                    connection.process_data_events(_POLL_S)
            finally:
                listeners.on_close(None)

    def _queue(self, channel: BlockingChannel, listeners: TopicListeners) -> str:
        bounds = {"x-max-length": _QUEUE_LENGTH_MAX}
        made = channel.queue_declare("", exclusive=True, auto_delete=True, arguments=bounds)
        name: str = made.method.queue
        channel.queue_bind(name, self._exchange, listeners.topic)
        return name

    @contextmanager
    def _channel(self) -> Iterator[BlockingChannel]:
        try:
            connection = pika.BlockingConnection(self._parameters())
            try:
                channel = connection.channel()
                channel.exchange_declare(self._exchange, "topic", durable=True)
                yield channel
            finally:
                if connection.is_open:
                    connection.close()
        except (AMQPError, OSError) as error:
            raise self._error_of(error) from None

    def _parameters(self) -> pika.ConnectionParameters:
        address, tls = self._address, None
        if self._tls is not None:
            tls = pika.SSLOptions(self._tls, address.host)
        return pika.ConnectionParameters(
            host=address.host,
            port=address.port,
            virtual_host=address.path or "/",
            credentials=pika.PlainCredentials(address.user or "guest", address.password or "guest"),
            heartbeat=HEARTBEAT_S,
            socket_timeout=ATTEMPT_S,
            stack_timeout=ATTEMPT_S,
            blocked_connection_timeout=ATTEMPT_S,
            connection_attempts=1,
            ssl_options=tls,
        )

    def _error_of(self, error: BaseException) -> BusRefused | BusUnavailable:
        if isinstance(error, AuthenticationError | ProbableAuthenticationError):
            return BusRefused(f"{self.display_url} refuses the user or the password")
        if isinstance(error, ProbableAccessDeniedError):
            host = self._address.path or "/"
            return BusRefused(f"{self.display_url} refuses this user the virtual host {host!r}")
        if isinstance(error, ConnectionClosedByBroker | ChannelClosedByBroker):
            # The broker's message names user, exchange and virtual host, never the password.
            text = f"{self.display_url} refuses: {error.reply_code} {error.reply_text}"
            if error.reply_code in _REFUSED:
                return BusRefused(text)
        return BusUnavailable(f"{self.display_url} does not answer ({type(error).__name__})")


def open_url(url: str, query: Mapping[str, str]) -> BusHints:
    """Return hints over AMQP.

    Arguments:
        url: amqp://USER:PASSWORD@HOST[:5672][/VHOST], amqps:// for TLS
        query: `exchange`; "strongroom.hints" by default; `ca`, for TLS: a file of certificates to
            trust in place of the system's.
    """
    scheme = url.partition(":")[0].lower()
    options = ("exchange", "ca") if scheme == "amqps" else ("exchange",)
    address = address_of(url, PORTS[scheme], query, options)
    tls = tls_of(query.get("ca")) if scheme == "amqps" else None
    exchange = query.get("exchange", "strongroom.hints")
    if not exchange or exchange.startswith("amq."):
        raise Unsupported(f"the exchange {exchange!r} cannot be declared: name one of your own")
    return BusHints(AmqpBus(address, exchange, tls))
