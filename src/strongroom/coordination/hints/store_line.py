"""Listening to a store that sends notifications, in the same way for PostgreSQL and Redis.

Lives here: `listen_on`, which listens on a `NotificationConnection` for one topic, and the
translation of a store's errors into a bus's. Must not live here: either protocol (stores/).
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from strongroom.coordination.errors import StoreRefused, StoreUnavailable
from strongroom.coordination.hints.bus import BusRefused, BusUnavailable, TopicListeners
from strongroom.coordination.stores.connections.listening import NotificationConnection
from strongroom.platform.sockets import POLLIN, new_poll


def listen_on(connection: NotificationConnection, topic: str, listeners: TopicListeners) -> None:
    """Listen on a connection until the listeners are gone.

    Arguments:
        topic: its name in the store.

    Raises: OSError, StoreUnavailable, StoreRefused: the connection failed, at once or later.
    """
    wake, waker = socket.socketpair()
    poll = new_poll()
    poll.register(waker, POLLIN)
    poll.register(connection.fileno(), POLLIN)
    try:
        listeners.on_close(lambda: _wake(wake))
        connection.subscribe(topic)
        listeners.subscribed()
        while not listeners.closed:
            # Read before the wait: notifications may have come together with an answer.
            for _ in connection.received():
                listeners.message_received()
            poll.poll()
    finally:
        listeners.on_close(None)
        wake.close()
        waker.close()


def _wake(wake: socket.socket) -> None:
    try:
        wake.send(b"!")
    except OSError:
        pass  # the connection has ended meanwhile


@contextmanager
def translated_errors(display_url: str, user: str) -> Iterator[None]:
    """Translate a store's errors into a bus's, without the user's name.

    Arguments:
        display_url: the store's address, for people.
        user: the user's name; empty if none is given.
    """
    try:
        yield
    except StoreRefused as error:
        raise BusRefused(f"{display_url} refuses: {_without_user(error, user)}") from None
    except (StoreUnavailable, OSError) as error:
        words = _without_user(error, user) or type(error).__name__
        raise BusUnavailable(f"{display_url} does not answer: {words}") from None


def _without_user(error: Exception, user: str) -> str:
    return str(error).replace(f'"{user}"', "(as in the URL)") if user else str(error)
