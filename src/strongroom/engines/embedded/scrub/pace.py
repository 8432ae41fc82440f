"""How fast the scrub reads. Pure: sizes and times in, rates and pauses out.

Lives here: the rate that ends a pass in time, its bounds, and the pause after each piece.

A pass is planned for nine tenths of its time, so that one that was held up still ends in time. If
the server was off for a while, the rest is read faster. The pause after a piece has a second
reason: at most a twentieth of the time is spent on reading. A piece takes longer on a disk or an
interpreter that is busy with requests, so the scrub makes way for them.
"""

from __future__ import annotations

from typing import Final

FLOOR_BYTES_S: Final = 256 * 1024
"""A small store is read within hours, and then left alone until the next pass."""
CEILING_BYTES_S: Final = 8 * 1024 * 1024
"""20 TiB in 30 days: a tenth of what a hard disk reads, and less of any other."""
PIECE_BYTES: Final = 1024 * 1024
"""What is read without a pause, at most."""
SHARE: Final = 0.05
PAUSE_S_MAX: Final = 60.0
_PLANNED: Final = 0.9


def rate_bytes_s(left_bytes: int, since_s: float, interval_s: float) -> float:
    """Return how many bytes a second end the pass in time, within the bounds.

    Arguments:
        left_bytes: what is left of the pass.
        since_s: for how long the pass has been going on, by the wall clock. It counts as 0 if it is
            negative, after the clock was set back.
        interval_s: how long a pass may take.
    """
    left_s = interval_s * _PLANNED - max(0.0, since_s)
    if left_s <= 0:
        return CEILING_BYTES_S
    return min(CEILING_BYTES_S, max(FLOOR_BYTES_S, left_bytes / left_s))


def pause_s(read_bytes: int, took_s: float, rate: float) -> float:
    """Return how long to pause after a piece.

    Arguments:
        read_bytes: how long the piece was.
        took_s: how long it took to read.
        rate: how many bytes are to be read in a second.
    """
    for_rate_s = read_bytes / rate - took_s
    for_share_s = took_s * (1 / SHARE - 1)
    return min(PAUSE_S_MAX, max(0.0, for_rate_s, for_share_s))


def is_due(since_s: float, interval_s: float) -> bool:
    """Return whether the next pass is to begin.

    Arguments:
        since_s: how long ago the last one began, by the wall clock. A pass that seems to have begun
            in the future has not: the clock was set back.
    """
    return since_s >= interval_s or since_s < -interval_s


def piece_records(count: int, read_bytes: int, most: int) -> int:
    """Return how many records the next piece has.

    Arguments:
        count: how many the last one had.
        read_bytes: what was read for them.
        most: the largest number.
    """
    if read_bytes > PIECE_BYTES:
        return max(1, count // 2)
    return min(most, count * 2) if read_bytes < PIECE_BYTES // 4 else count
