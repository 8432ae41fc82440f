"""Where a gateway listens for the others if nobody says it."""

from __future__ import annotations

import socket

import pytest

from strongroom.servers.forwarding.announcements import default_host


@pytest.mark.parametrize(
    ("listening", "host"),
    [
        (("127.0.0.1",), "127.0.0.1"),
        (("0.0.0.0", "10.0.0.7"), "10.0.0.7"),
        (("[::]", "[2001:db8::1]"), "2001:db8::1"),
        (("store.example.net", "127.0.0.1"), "store.example.net"),
    ],
)
def test_it_is_the_first_host_that_others_can_connect_to(
    listening: tuple[str, ...], host: str
) -> None:
    assert default_host(listening) == host


@pytest.mark.parametrize("wildcard", ["", "0.0.0.0", "::", "[::]"])
def test_on_all_interfaces_it_is_the_machines_own_address(wildcard: str) -> None:
    host = default_host((wildcard,))
    assert host not in ("", "0.0.0.0", "::")


def test_a_machine_without_a_network_has_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*_: object) -> None:
        raise OSError("Network is unreachable")

    monkeypatch.setattr(socket, "socket", unreachable)
    assert default_host(("0.0.0.0",)) == socket.getfqdn()
