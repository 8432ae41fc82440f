"""Sockets: which are ready, and who may listen on an address.

Python for Windows has no `select.poll`, and its `select.select` accepts sockets only, which is all
that is asked about here. Sources: poll(2), socket(7), unix(7); "Using SO_REUSEADDR and
SO_EXCLUSIVEADDRUSE" in the documentation of Winsock.
"""

from __future__ import annotations

import select
import socket
import sys
from typing import Final, Protocol

from strongroom.platform import UnsupportedSystem

POLLIN: Final[int] = getattr(select, "POLLIN", 0x1)
POLLOUT: Final[int] = getattr(select, "POLLOUT", 0x4)
POLLERR: Final[int] = getattr(select, "POLLERR", 0x8)
POLLHUP: Final[int] = getattr(select, "POLLHUP", 0x10)


# Windows: nobody else may listen on the address. What SO_REUSEADDR permits there is just that.
_EXCLUSIVE: Final[int | None] = getattr(socket, "SO_EXCLUSIVEADDRUSE", None)

# Python for Windows has no local sockets.
_LOCAL: Final[int | None] = getattr(socket, "AF_UNIX", None)

RESERVES_PORTS: Final = sys.platform == "linux"
"""Whether a bound socket that does not listen keeps a port for a listener that shares it."""


class _HasFileno(Protocol):
    def fileno(self) -> int: ...


class Poll(Protocol):
    """What is used of `select.poll`."""

    def register(self, fd: int | _HasFileno, eventmask: int = ..., /) -> None: ...

    def modify(self, fd: int | _HasFileno, eventmask: int, /) -> None: ...

    def unregister(self, fd: int | _HasFileno, /) -> None: ...

    def poll(self, timeout: float | None = None, /) -> list[tuple[int, int]]:
        """The timeout is in milliseconds. Return the sockets that are ready, and their events."""
        ...


class SelectPoll:
    """`Poll`, made of `select.select`. A socket that its peer has closed is readable."""

    def __init__(self) -> None:
        self._events: dict[int, int] = {}

    def register(self, fd: int | _HasFileno, eventmask: int = POLLIN | POLLOUT, /) -> None:
        self._events[_number(fd)] = eventmask

    def modify(self, fd: int | _HasFileno, eventmask: int, /) -> None:
        self._events[_number(fd)] = eventmask

    def unregister(self, fd: int | _HasFileno, /) -> None:
        del self._events[_number(fd)]

    def poll(self, timeout: float | None = None, /) -> list[tuple[int, int]]:
        reads = [fd for fd, events in self._events.items() if events & (POLLIN | POLLHUP)]
        writes = [fd for fd, events in self._events.items() if events & POLLOUT]
        timeout_s = None if timeout is None or timeout < 0 else timeout / 1000
        # Windows reports a connection that failed as an exception of the socket.
        ready = select.select(reads, writes, [*self._events], timeout_s)
        events_of: dict[int, int] = {}
        for fds, event in zip(ready, (POLLIN, POLLOUT, POLLERR), strict=True):
            for fd in fds:
                events_of[fd] = events_of.get(fd, 0) | event
        return list(events_of.items())


def _number(fd: int | _HasFileno) -> int:
    return fd if isinstance(fd, int) else fd.fileno()


def take_address_of_ended_server(listener: socket.socket) -> None:
    """Let a socket listen where a server listened that has just ended. Two listeners never share an
    address. Call it before `bind`."""
    option = socket.SO_REUSEADDR if _EXCLUSIVE is None else _EXCLUSIVE
    listener.setsockopt(socket.SOL_SOCKET, option, 1)


def send_datagram(name: str, data: bytes) -> None:
    """Send one message to a local socket, without waiting.

    Arguments:
        name: the socket's path; an abstract name begins with a zero character.

    Raises: OSError, also where Python has no local sockets.
    """
    if _LOCAL is None:
        raise UnsupportedSystem("Python has no local sockets on this system")
    with socket.socket(_LOCAL, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        sender.sendto(data, name)


def new_poll() -> Poll:
    if hasattr(select, "poll"):
        made: Poll = select.poll()
        return made
    return SelectPoll()
