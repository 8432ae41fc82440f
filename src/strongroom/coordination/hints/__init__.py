"""Hints: multicast beside a gate's store. A message says "look now"; the flag is the truth.

    hints = multicast("nats://app:secret@bus:4222")
    client.gate("go-live", hints).wait()

Lives here: `Hints`, what a gate asks of a bus; and `multicast`, the registry of buses. A bus's
module, and the client library that it needs, is imported when its scheme is asked for. Must not
live here: any bus (a module each); reconnecting (bus.py); gates (recipes/).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Final, NamedTuple, Protocol, runtime_checkable
from urllib.parse import urlsplit

from strongroom.coordination.errors import Unsupported
from strongroom.coordination.url_options import query_of


class Hints(Protocol):
    """A multicast channel: whatever is said on it means "look now", and may get lost."""

    def publish(self, topic: str) -> None:
        """Tell everybody who listens; a bus that is away is reported to the log, never raised.

        Arguments:
            topic: a key: ASCII letters, digits, `_ - . % /`, at most 255 characters.
        """
        ...

    def subscribe(self, topic: str, heard: Callable[[], None]) -> Callable[[], None]:
        """Call `heard`, from any thread, at every message from now on; returns how to stop it.

        It may begin to listen after it has returned, or again after it was cut off. It then calls
        `heard` once: whoever looks then has missed nothing. `heard` returns at once.
        """
        ...


@runtime_checkable
class Multicast(Hints, Protocol):
    """Hints that tell a message from the beginning of listening; every bus here does."""

    def listen(
        self, topic: str, heard: Callable[[], None], listening: Callable[[], None]
    ) -> Callable[[], None]:
        """Do as `subscribe`, but call `heard` at messages alone.

        Arguments:
            topic: see `publish`.
            heard: is called at each message.
            listening: is called whenever it listens from now on: at first, and after each outage.
        """
        ...


OpenUrl = Callable[[str, Mapping[str, str]], Multicast]
"""What a scheme names: takes the URL and its query as a mapping, returns the hints."""


class HintScheme(NamedTuple):
    """How a scheme is opened.

    Attributes:
        target: "module:function"; the function is an `OpenUrl`.
        extra: what `pip install 'strongroom[...]'` needs for it; empty where nothing is.
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
        Unsupported: nobody knows the scheme, the URL cannot be understood, or the library that
            it needs is not installed; the message names the extra to install.
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
