"""Hints: messages beside a gate's store, which say only that the gate should be read now.

    hints = multicast("nats://app:secret@bus:4222")
    client.gate("go-live", hints).wait()

The record in the store decides; a hint may get lost. Lives here: `Hints`, the methods that a gate
needs of a bus; and `multicast`, the registry of buses. A bus's module and its client library are
imported when its scheme is asked for. Must not live here: any bus (a module each); reconnecting
(bus.py); gates (recipes/).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Final, NamedTuple, Protocol, runtime_checkable
from urllib.parse import urlsplit

from strongroom.coordination.errors import Unsupported
from strongroom.coordination.options.url_options import query_of


class Hints(Protocol):
    """A multicast channel. Every message means "read the store now", and may get lost."""

    def publish(self, topic: str) -> None:
        """Send a message to all listeners. An unreachable bus is logged, and raises nothing.

        Arguments:
            topic: a key: ASCII letters, digits, `_ - . % /`, at most 255 characters.
        """
        ...

    def subscribe(self, topic: str, heard: Callable[[], None]) -> Callable[[], None]:
        """Call `heard`, from any thread, at each message from now on; return a function to stop it.

        It may begin to listen only after it has returned, or again after an outage. It then calls
        `heard` once. A caller that reads the store then has missed nothing. `heard` must return at
        once.
        """
        ...


@runtime_checkable
class Multicast(Hints, Protocol):
    """Hints that report messages and the beginning of listening separately; every bus here does."""

    def listen(
        self, topic: str, heard: Callable[[], None], listening: Callable[[], None]
    ) -> Callable[[], None]:
        """Do as `subscribe`, but call `heard` only at messages.

        Arguments:
            topic: see `publish`.
            heard: is called at each message.
            listening: is called when messages are delivered from now on: at first, and after each
                outage.
        """
        ...


OpenUrl = Callable[[str, Mapping[str, str]], Multicast]
"""What a scheme names: takes the URL and its query as a mapping, returns the hints."""


class HintScheme(NamedTuple):
    """The module that opens URLs of a scheme.

    Attributes:
        target: "module:function"; the function is an `OpenUrl`.
        extra: the extra of `pip install 'strongroom[...]'` that it needs; empty if it needs none.
    """

    target: str
    extra: str = ""


_PACKAGE: Final = "strongroom.coordination.hints"
SCHEMES: Final[dict[str, HintScheme]] = {
    "amqp": HintScheme(f"{_PACKAGE}.amqp:open_url", "amqp"),
    "amqps": HintScheme(f"{_PACKAGE}.amqp:open_url", "amqp"),
    "azure": HintScheme(f"{_PACKAGE}.strongroom:open_url"),
    "etcd": HintScheme(f"{_PACKAGE}.etcd:open_url"),
    "memory": HintScheme(f"{_PACKAGE}.memory:open_url"),
    "nats": HintScheme(f"{_PACKAGE}.nats:open_url", "nats"),
    "nats+tls": HintScheme(f"{_PACKAGE}.nats:open_url", "nats"),
    "postgres": HintScheme(f"{_PACKAGE}.postgres:open_url", "postgres"),
    "postgresql": HintScheme(f"{_PACKAGE}.postgres:open_url", "postgres"),
    "redis": HintScheme(f"{_PACKAGE}.redis:open_url"),
    "rediss": HintScheme(f"{_PACKAGE}.redis:open_url"),
    "servicebus": HintScheme(f"{_PACKAGE}.servicebus:open_url", "servicebus"),
}
"""A program may add its own."""


def multicast(url: str) -> Multicast:
    """Return the bus that a URL names; nothing is sent yet.

    Arguments:
        url: nats://USER:PASSWORD@HOST:4222, amqp://USER:PASSWORD@HOST/VHOST,
            servicebus://POLICY:KEY@NAMESPACE.servicebus.windows.net/TOPIC, redis://...,
            postgres://..., etcd://..., azure://ACCOUNT/CONTAINER (a Strongroom), memory://NAME.
            User, password and token are percent-encoded, and appear in no message or log.

    Raises:
        Unsupported: the scheme is unknown, the URL cannot be understood, or the library that it
            needs is not installed; the message names the extra to install.
    """
    try:
        parts = urlsplit(url)
        query = query_of(url)
    except ValueError:
        # The text of the error may quote the URL, and so its password.
        raise Unsupported("the URL of the message bus cannot be read") from None
    scheme = SCHEMES.get(parts.scheme)
    if scheme is None:
        known = ", ".join(sorted(SCHEMES))
        raise Unsupported(f"no message bus is known for {parts.scheme!r}; known are {known}")
    module, _, function = scheme.target.partition(":")
    try:
        opener: OpenUrl = getattr(import_module(module), function)
        return opener(url, query)
    except ModuleNotFoundError as error:
        remedy = f": pip install 'strongroom[{scheme.extra}]'" if scheme.extra else ""
        raise Unsupported(
            f"{parts.scheme}:// needs {error.name!r}, not installed here{remedy}"
        ) from error
