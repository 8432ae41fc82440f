"""Gates with hints over Azure Service Bus: a fake with the interface of the official client.

The tests do not use the real service. The fake checks every call against the signatures of
azure-servicebus. It behaves as the service's documentation describes topics and subscriptions.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from typing import Any, Self

import pytest
from azure.core.exceptions import ClientAuthenticationError, ResourceNotFoundError
from azure.servicebus import (
    ServiceBusClient,
    ServiceBusMessage,
    ServiceBusReceiver,
    ServiceBusSender,
)
from azure.servicebus.management import ServiceBusAdministrationClient

from strongroom.coordination.client import Client
from strongroom.coordination.hints import Hints, multicast, servicebus
from tests.coordination import hint_trials
from tests.coordination.hint_trials import NEVER_S, Polled, Waiters, until

KEY = "s3cretKey="
URL = "servicebus://RootPolicy:s3cretKey%3D@ns.servicebus.windows.net/releases"


class Namespace:
    """The state that the fake clients share."""

    def __init__(self) -> None:
        self.subscriptions: dict[str, list[ServiceBusMessage]] = {}
        self.made_count = 0
        self.down = self.cut = False
        self.lock = threading.Lock()

    def allow(self, secrets: str) -> None:
        fields = dict(part.split("=", 1) for part in secrets.split(";"))
        assert fields["Endpoint"] == "sb://ns.servicebus.windows.net/"
        if self.down:
            raise OSError("no route")
        if (fields["SharedAccessKeyName"], fields["SharedAccessKey"]) != ("RootPolicy", KEY):
            raise ClientAuthenticationError("InvalidSignature s3cretKey=")


def takes(method: Callable[..., Any], *arguments: Any, **named: Any) -> None:
    inspect.signature(method).bind(None, *arguments, **named)


class FakeContext:
    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def fakes(namespace: Namespace) -> tuple[type, type]:
    class Sender(FakeContext):
        def send_messages(self, message: ServiceBusMessage, **named: Any) -> None:
            takes(ServiceBusSender.send_messages, message, **named)
            with namespace.lock:
                for waiting in namespace.subscriptions.values():
                    waiting.append(message)

    class Receiver(FakeContext):
        def __init__(self, name: str) -> None:
            self.name = name

        def receive_messages(self, *arguments: Any, **named: Any) -> list[ServiceBusMessage]:
            takes(ServiceBusReceiver.receive_messages, *arguments, **named)
            threading.Event().wait(0.01)
            if namespace.cut:
                namespace.cut = False
                raise OSError("cut off")
            with namespace.lock:
                found = namespace.subscriptions[self.name][:]
                namespace.subscriptions[self.name].clear()
            return found

    class Data(FakeContext):
        @staticmethod
        def from_connection_string(secrets: str, **named: Any) -> Data:
            inspect.signature(ServiceBusClient.from_connection_string).bind(secrets, **named)
            namespace.allow(secrets)
            return Data()

        def get_topic_sender(self, topic: str) -> Sender:
            assert topic == "releases"
            return Sender()

        def get_subscription_receiver(self, topic: str, name: str, **named: Any) -> Receiver:
            takes(ServiceBusClient.get_subscription_receiver, topic, name, **named)
            return Receiver(name)

    class Administration(FakeContext):
        @staticmethod
        def from_connection_string(secrets: str, **named: Any) -> Administration:
            original = ServiceBusAdministrationClient.from_connection_string
            inspect.signature(original).bind(secrets, **named)
            namespace.allow(secrets)
            return Administration()

        def create_subscription(self, topic: str, name: str, **named: Any) -> None:
            takes(ServiceBusAdministrationClient.create_subscription, topic, name, **named)
            if topic != "releases":
                raise ResourceNotFoundError("no topic")
            assert len(name) <= 50
            with namespace.lock:
                assert name not in namespace.subscriptions
                namespace.subscriptions[name] = []
                namespace.made_count += 1

        def delete_subscription(self, topic: str, name: str) -> None:
            with namespace.lock:
                del namespace.subscriptions[name]

    return Data, Administration


@pytest.fixture
def namespace(monkeypatch: pytest.MonkeyPatch) -> Namespace:
    made = Namespace()
    data, administration = fakes(made)
    monkeypatch.setattr(servicebus, "ServiceBusClient", data)
    monkeypatch.setattr(servicebus, "ServiceBusAdministrationClient", administration)
    return made


def test_service_bus_releases_fifty_and_leaves_no_subscription(namespace: Namespace) -> None:
    hint_trials.all_are_released_by_the_message(lambda: multicast(URL))
    until(lambda: not namespace.subscriptions, "a subscription is left")
    assert namespace.made_count == 50


def test_service_bus_loses_a_tenth(namespace: Namespace) -> None:
    hint_trials.nobody_is_stranded_by_lost_messages(lambda: multicast(URL), 20)


def test_service_bus_refuses_a_wrong_key(
    namespace: Namespace, caplog: pytest.LogCaptureFixture
) -> None:
    wrong: Hints = multicast(URL.replace("s3cretKey", "0therKey"))
    hint_trials.a_wrong_secret_is_refused(wrong, "0therKey", caplog)
    assert "s3cretKey" not in caplog.text


def test_service_bus_without_the_topic(
    namespace: Namespace, caplog: pytest.LogCaptureFixture
) -> None:
    stop = multicast(URL.replace("releases", "nowhere")).subscribe("t", lambda: None)
    until(lambda: "there is no such topic" in caplog.text, "nobody said so")
    stop()


def test_service_bus_that_cuts_off_is_subscribed_anew(namespace: Namespace) -> None:
    store = Polled(NEVER_S)
    waiters = Waiters(store, lambda: multicast(URL), 1, "g")
    waiters.listen()
    namespace.down = True
    namespace.cut = True
    Client(store).gate("g", multicast(URL)).open("x")
    until(lambda: not namespace.cut, "it was not cut off")
    namespace.down = False
    waiters.join()
    assert waiters.found == ["x"]
    assert namespace.made_count >= 2
