"""The end of a connection whose client still sends is bounded in time and in bytes."""

from __future__ import annotations

from strongroom.servers.http.linger import Linger
from strongroom.servers.http.settings import HttpSettings

SETTINGS = HttpSettings(linger_timeout_s=30.0, linger_idle_timeout_s=2.0, linger_bytes_max=10)


def test_what_comes_puts_the_end_off_but_not_for_ever() -> None:
    linger = Linger(SETTINGS, now=100.0)
    assert [linger.deadline(now) for now in (100.0, 110.0, 129.0)] == [102.0, 112.0, 130.0]


def test_so_many_bytes_may_come_and_no_more() -> None:
    linger = Linger(SETTINGS, now=100.0)
    assert [linger.takes(size_bytes) for size_bytes in (4, 6, 1)] == [True, True, False]
