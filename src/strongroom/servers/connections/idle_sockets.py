"""Whether the kernel holds bytes of a connection that this process has not seen.

Lives here: one question to the kernel. Must not live here: which connection is closed
(budget.py). A request that has reached the kernel would be lost if its connection were
closed before the event loop reads it.
"""

from __future__ import annotations

import asyncio

from strongroom.platform.sockets import POLLIN, POLLOUT, new_poll


def is_quiet(transport: asyncio.BaseTransport) -> bool:
    """Return whether a connection's socket has nothing to read, and room for more to send.

    A transport without a socket is quiet. A socket that its client has closed is not, since the
    event loop is about to learn of it.
    """
    client = transport.get_extra_info("socket")
    return client is None or is_quiet_socket(client.fileno())


def is_quiet_socket(number: int) -> bool:
    """Return the same for the descriptor of a socket; a negative one is closed."""
    if number < 0:
        return False
    poll = new_poll()
    poll.register(number, POLLIN | POLLOUT)
    return poll.poll(0) == [(number, POLLOUT)]
