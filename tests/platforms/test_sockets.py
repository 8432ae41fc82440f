"""The poll that is made of `select.select` answers like the system's own."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from strongroom.platform.sockets import POLLIN, POLLOUT, Poll, SelectPoll, new_poll


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    one, other = socket.socketpair()
    yield one, other
    one.close()
    other.close()


@pytest.mark.parametrize("make", [SelectPoll, new_poll])
def test_a_poll_tells_what_a_socket_is_ready_for(
    make: type[Poll], pair: tuple[socket.socket, socket.socket]
) -> None:
    one, other = pair
    poll = make()
    poll.register(one, POLLIN)
    assert poll.poll(0) == []
    poll.modify(one, POLLIN | POLLOUT)
    assert poll.poll(0) == [(one.fileno(), POLLOUT)]
    other.send(b"x")
    assert poll.poll() == [(one.fileno(), POLLIN | POLLOUT)]
    one.recv(1)
    poll.modify(one.fileno(), POLLIN)
    assert poll.poll(1) == []
    poll.unregister(one)
    other.close()
    assert poll.poll(0) == []


@pytest.mark.parametrize("make", [SelectPoll, new_poll])
def test_a_poll_tells_that_the_peer_has_closed(
    make: type[Poll], pair: tuple[socket.socket, socket.socket]
) -> None:
    one, other = pair
    poll = make()
    poll.register(one, POLLIN)
    other.close()
    ((number, events),) = poll.poll(0)
    assert number == one.fileno()
    assert events & POLLIN
