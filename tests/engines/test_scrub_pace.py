"""How fast the scrub reads: a table of rates, pauses and due times."""

from __future__ import annotations

import pytest

from strongroom.engines.embedded.scrub.pace import (
    CEILING_BYTES_S,
    FLOOR_BYTES_S,
    PAUSE_S_MAX,
    PIECE_BYTES,
    SHARE,
    is_due,
    pause_s,
    piece_records,
    rate_bytes_s,
)

_DAY_S = 86400.0
_MONTH_S = 30 * _DAY_S
_GIB = 1 << 30


@pytest.mark.parametrize(
    ("left_bytes", "since_s", "expected"),
    [
        (0, 0.0, FLOOR_BYTES_S),
        (10 * _GIB, 0.0, FLOOR_BYTES_S),
        (10_000 * _GIB, 0.0, 10_000 * _GIB / (27 * _DAY_S)),
        (10_000 * _GIB, -5 * _DAY_S, 10_000 * _GIB / (27 * _DAY_S)),  # the clock was set back
        (5_000 * _GIB, 13.5 * _DAY_S, 10_000 * _GIB / (27 * _DAY_S)),
        (5_000 * _GIB, 22 * _DAY_S, CEILING_BYTES_S),
        (1, 27 * _DAY_S, CEILING_BYTES_S),
        (1, 300 * _DAY_S, CEILING_BYTES_S),
        (100_000 * _GIB, 0.0, CEILING_BYTES_S),
    ],
)
def test_the_rate_ends_the_pass_in_time_within_its_bounds(
    left_bytes: int, since_s: float, expected: float
) -> None:
    assert rate_bytes_s(left_bytes, since_s, _MONTH_S) == pytest.approx(expected)


@pytest.mark.parametrize("total_gib", [1, 100, 3_000, 9_000])
def test_a_pass_at_these_rates_ends_in_time(total_gib: int) -> None:
    """Simulate a pass hour by hour, in which the server is off every third day."""
    left_bytes, hours = total_gib * _GIB, 0
    while left_bytes > 0:
        if hours // 24 % 3 != 2:
            left_bytes -= int(3600 * rate_bytes_s(left_bytes, hours * 3600, _MONTH_S))
        hours += 1
    assert hours <= 30 * 24


@pytest.mark.parametrize(
    ("read_bytes", "took_s", "expected"),
    [
        (PIECE_BYTES, 0.0, 0.125),  # for the rate
        (PIECE_BYTES, 0.005, 0.12),
        (PIECE_BYTES, 0.05, 0.95),  # a slow disk: a twentieth of the time
        (0, 0.0, 0.0),
        (0, 0.001, 0.019),
        (PIECE_BYTES, 100.0, PAUSE_S_MAX),
    ],
)
def test_a_pause_keeps_the_rate_and_the_share(
    read_bytes: int, took_s: float, expected: float
) -> None:
    assert pause_s(read_bytes, took_s, CEILING_BYTES_S) == pytest.approx(expected)


def test_reading_takes_at_most_its_share_of_the_time() -> None:
    for took_s in (0.0001, 0.003, 0.01, 0.5, 3.0):
        for read_bytes in (0, 8192, PIECE_BYTES):
            pause = pause_s(read_bytes, took_s, CEILING_BYTES_S)
            assert took_s / (took_s + pause) <= SHARE * 1.0001


@pytest.mark.parametrize(
    ("since_s", "expected"),
    [
        (0.0, False),
        (_MONTH_S - 1, False),
        (_MONTH_S, True),
        (10 * _MONTH_S, True),
        (-_DAY_S, False),  # the clock was set back by a day
        (-2 * _MONTH_S, True),  # by more than a pass: when the last one began is not known
    ],
)
def test_a_pass_begins_when_the_last_one_began_long_enough_ago(
    since_s: float, expected: bool
) -> None:
    assert is_due(since_s, _MONTH_S) is expected


@pytest.mark.parametrize(
    ("count", "read_bytes", "expected"),
    [
        (64, 0, 128),
        (64, PIECE_BYTES // 2, 64),
        (64, 2 * PIECE_BYTES, 32),
        (1, 2 * PIECE_BYTES, 1),
        (1000, 0, 1024),
    ],
)
def test_a_piece_has_more_records_while_they_are_small(
    count: int, read_bytes: int, expected: int
) -> None:
    assert piece_records(count, read_bytes, 1024) == expected
