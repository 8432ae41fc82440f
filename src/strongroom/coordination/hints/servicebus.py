"""Azure Service Bus topics as a bus: a subscription for each listener, through azure-servicebus.

This bus has not been run against the real service. It is tested against a fake that accepts the
signatures of the official client. The policy needs the rights Manage (to create subscriptions),
Send and Listen; the topic must exist. A listener that dies leaves a subscription, which the service
deletes after `_AUTO_DELETE_ON_IDLE`; a topic has at most 2,000. All topics of hints share one
Service Bus topic: a message's subject is the topic of the hint. Source: Microsoft Learn, "Service
Bus queues, topics, and subscriptions", "Azure Service Bus quotas and limits". Must not live here:
reconnecting (bus.py).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

from azure.core.exceptions import AzureError, ClientAuthenticationError, ResourceNotFoundError
from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusReceiveMode
from azure.servicebus.exceptions import (
    MessagingEntityNotFoundError,
    ServiceBusAuthenticationError,
    ServiceBusAuthorizationError,
)
from azure.servicebus.management import ServiceBusAdministrationClient

from strongroom.coordination.clock import Clocks, SystemClocks
from strongroom.coordination.errors import Unsupported
from strongroom.coordination.hints.address import Address, address_of
from strongroom.coordination.hints.bus import (
    ATTEMPT_S,
    BusHints,
    BusRefused,
    BusUnavailable,
    TopicListeners,
)

log = logging.getLogger("strongroom.coordination")

_PORT: Final = 5671
_MESSAGE: Final = "look"
_AUTO_DELETE_ON_IDLE: Final = timedelta(minutes=5)  # the least that the service accepts
_MESSAGE_TTL: Final = timedelta(minutes=1)
_RECEIVE_S: Final = 5.0
_MESSAGES_MAX: Final = 16
_REFUSALS: Final = (
    ClientAuthenticationError,
    ServiceBusAuthenticationError,
    ServiceBusAuthorizationError,
)
_NOT_FOUND: Final = (MessagingEntityNotFoundError, ResourceNotFoundError)


class ServiceBus:
    """A bus for hints over one topic of a Service Bus namespace.

    Arguments:
        address: the host; policy and key as user and password; the topic as the path.
        clock: gives the nonces that name subscriptions.
    """

    def __init__(self, address: Address, clock: Clocks | None = None) -> None:
        self._topic, self._clock = address.path, clock or SystemClocks()
        self._host = address.host
        self._secrets = (
            f"Endpoint=sb://{address.host}/;SharedAccessKeyName={address.user};"
            f"SharedAccessKey={address.password}"
        )

    @property
    def display_url(self) -> str:
        return f"servicebus://{self._host}/{self._topic}"

    def publish(self, topic: str) -> None:
        message = ServiceBusMessage(_MESSAGE, subject=topic, time_to_live=_MESSAGE_TTL)
        with (
            self._translated_errors(),
            self._client() as client,
            client.get_topic_sender(self._topic) as sender,
        ):
            sender.send_messages(message, timeout=ATTEMPT_S)

    def listen(self, listeners: TopicListeners) -> None:
        """Notices within `_RECEIVE_S` that the listeners are gone."""
        name = f"hints-{self._clock.nonce()}"
        with self._translated_errors(), self._subscription(name), self._client() as client:
            receiver = client.get_subscription_receiver(
                self._topic, name, receive_mode=ServiceBusReceiveMode.RECEIVE_AND_DELETE
            )
            with receiver:
                # The service keeps every message that is sent since the subscription was created.
                listeners.subscribed()
                while not listeners.closed:
                    messages = receiver.receive_messages(_MESSAGES_MAX, _RECEIVE_S)
                    if any(message.subject == listeners.topic for message in messages):
                        listeners.message_received()

    @contextmanager
    def _subscription(self, name: str) -> Iterator[None]:
        administration = ServiceBusAdministrationClient.from_connection_string(
            self._secrets, retry_total=0, connection_timeout=ATTEMPT_S, read_timeout=ATTEMPT_S
        )
        with administration:
            administration.create_subscription(
                self._topic,
                name,
                auto_delete_on_idle=_AUTO_DELETE_ON_IDLE,
                default_message_time_to_live=_MESSAGE_TTL,
            )
            try:
                yield
            finally:
                try:
                    administration.delete_subscription(self._topic, name)
                except AzureError as error:
                    # The subscription is unused now, and the service deletes it when it is idle.
                    log.info(
                        "%s: %s is left behind (%s)", self.display_url, name, type(error).__name__
                    )

    def _client(self) -> ServiceBusClient:
        return ServiceBusClient.from_connection_string(
            self._secrets, retry_total=0, try_timeout=ATTEMPT_S
        )

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except _REFUSALS as error:
            text = f"{self.display_url} refuses the policy or the key ({type(error).__name__})"
            raise BusRefused(text) from None
        except _NOT_FOUND:
            raise BusRefused(f"{self.display_url} refuses: there is no such topic") from None
        except (AzureError, OSError, ValueError) as error:
            # A key that is not base64 raises a ValueError, whose text may quote the key.
            text = f"{self.display_url} does not answer ({type(error).__name__})"
            raise BusUnavailable(text) from None


def open_url(url: str, query: Mapping[str, str]) -> BusHints:
    """Return hints over a topic of Azure Service Bus.

    Arguments:
        url: servicebus://POLICY:KEY@NAMESPACE.servicebus.windows.net/TOPIC, percent-encoded
        query: no options.

    Raises:
        Unsupported: the URL cannot be understood, or lacks the policy, the key or the topic.
    """
    address = address_of(url, _PORT, query)
    if not address.user or not address.password or not address.path:
        raise Unsupported("servicebus:// needs all of POLICY:KEY@NAMESPACE.../TOPIC")
    if ";" in address.user + address.password:
        raise Unsupported("the policy and the key in servicebus:// have no ';' in them")
    return BusHints(ServiceBus(address))
