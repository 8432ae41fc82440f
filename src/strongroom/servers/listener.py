"""The interface between the composition root and anything that listens on a port.

Lives here: the protocol class, and a listener with its name and requested port. Must not live here:
any network protocol. The HTTP server (http/server.py) and listeners of other protocols implement
it.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Listener(Protocol):
    """Accepts connections and serves them."""

    draining: bool
    """Whether it accepts no more connections."""

    @property
    def connection_count(self) -> int:
        """How many connections are open."""
        ...

    async def listen(self, host: str, port: int) -> int:
        """Listen on every address of `host`.

        Arguments:
            host: a name or an address; "" for every interface.
            port: 0 for a free one.

        Returns: the port. Raises: OSError: an address is in use or not ours.
        """
        ...

    async def drain(self, timeout_s: float) -> bool:
        """Accept no more connections, let requests in flight finish for `timeout_s`, abort the
        rest.

        Returns: whether every request finished.
        """
        ...

    async def close(self) -> None:
        """Stop at once, and abort requests in flight. Idempotent."""
        ...

    def close_idle(self) -> None:
        """Close the connections that have no request in progress, to free memory."""
        ...


class RequestedListener(NamedTuple):
    """A listener that is to be opened: its name among the others, and its port (0 = a free one)."""

    name: str
    listener: Listener
    port: int


class RefusedListener(NamedTuple):
    """A listener that could not be opened.

    Attributes:
        name: its name among the others; None if the host is no name or address.
        reason: the system's reason, as text.
    """

    name: str | None
    host: str
    port: int
    reason: str
