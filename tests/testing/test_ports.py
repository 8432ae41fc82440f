"""The choice of free ports: reserved for whoever chose them, usable by servers that restart.

Ports are reserved on Linux only.
"""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from strongroom.testing import ports
from strongroom.testing.ports import HOST, free_port

# Another process that begins its search at the port of its argument.
_CHOOSE = """
import itertools, sys
from strongroom.testing import ports
ports._next = itertools.count(int(sys.argv[1]) - ports._FIRST)
print(ports.free_port())
"""


def chosen_elsewhere(first: int) -> int:
    command = [sys.executable, "-c", _CHOOSE, str(first)]
    return int(subprocess.run(command, check=True, capture_output=True, timeout=30).stdout)


def test_a_port_that_was_chosen_is_not_chosen_by_another_process() -> None:
    port = free_port()
    assert chosen_elsewhere(port) != port


def test_a_server_may_restart_on_its_port_while_no_other_process_chooses_it() -> None:
    port = free_port()
    for _ in range(3):
        with (
            socket.create_server((HOST, port)) as server,
            socket.create_connection((HOST, port)) as client,
        ):
            accepted, _ = server.accept()
            accepted.close()
            assert client.recv(1) == b""
        assert chosen_elsewhere(port) != port


def test_two_servers_do_not_share_a_chosen_port() -> None:
    port = free_port()
    with socket.create_server((HOST, port)), pytest.raises(OSError, match="in use"):
        socket.create_server((HOST, port))


def test_the_oldest_reservations_are_given_back() -> None:
    for _ in range(300):
        free_port()
    assert len(ports._reserved) == 128


def test_a_port_that_is_used_is_not_chosen() -> None:
    with socket.create_server((HOST, free_port())) as server:
        port = server.getsockname()[1]
        assert chosen_elsewhere(port) != port
