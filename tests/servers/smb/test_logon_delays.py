"""Failed logons delay an address, for any user name; successful ones cause no delay."""

from __future__ import annotations

import pytest

from strongroom.servers.smb.security import logon_delays
from strongroom.servers.smb.security.logon_delays import (
    DELAY_PER_FAILURE_S,
    UNDELAYED_FAILURES_MAX,
    LogonDelays,
)


def test_some_failures_are_free_and_the_next_wait() -> None:
    delays = LogonDelays()
    waits = [delays.reserve("10.0.0.1", 100.0) for _ in range(UNDELAYED_FAILURES_MAX + 7)]
    assert waits[:UNDELAYED_FAILURES_MAX] == [0.0] * UNDELAYED_FAILURES_MAX
    assert waits[UNDELAYED_FAILURES_MAX:] == [6.0, 12.0, 18.0, 24.0, 30.0, None, None]
    assert delays.reserve("10.0.0.2", 100.0) == 0.0


def test_time_heals() -> None:
    delays = LogonDelays()
    for _ in range(UNDELAYED_FAILURES_MAX):
        delays.reserve("10.0.0.1", 0.0)
    assert delays.reserve("10.0.0.1", DELAY_PER_FAILURE_S) == 0.0
    assert delays.reserve("10.0.0.1", DELAY_PER_FAILURE_S) == DELAY_PER_FAILURE_S


def test_success_gives_its_place_back() -> None:
    delays = LogonDelays()
    for _ in range(1000):
        assert delays.reserve("10.0.0.1", 0.0) == 0.0
        delays.succeeded("10.0.0.1")
    delays.succeeded("10.0.0.9")


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("fd00::1", "fd00::2", True),
        ("fd00::1", "fd00:0:0:1::1", False),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("fe80::1%eth0", "fe80::2%eth0", True),
        ("10.0.0.1", "10.0.0.2", False),
    ],
)
def test_a_network_of_ipv6_counts_as_one(one: str, other: str, is_same: bool) -> None:
    delays = LogonDelays()
    for _ in range(UNDELAYED_FAILURES_MAX):
        delays.reserve(one, 0.0)
    assert (delays.reserve(other, 0.0) == 0.0) is not is_same


def test_the_memory_of_addresses_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logon_delays, "ADDRESSES_MAX", 3)
    delays = LogonDelays()
    for _ in range(UNDELAYED_FAILURES_MAX + 1):
        delays.reserve("10.0.0.1", 0.0)
    for number in range(50):
        delays.reserve(f"10.0.1.{number}", 0.0)
    assert len(delays._free_at) <= 3
    assert delays.reserve("10.0.0.1", 0.0) != 0.0  # the address with the longest delay is kept
