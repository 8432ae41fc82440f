"""Checks of callers' arguments: times and counts that are none.

Lives here: checks that need no store. NaN compares as false with everything. With it a rule would
never wait, or wait for ever, or never call a hold held. Must not live here: bounds of a store
(context.py), names (names.py).
"""

from __future__ import annotations

import math
import operator
from typing import Any

from strongroom.coordination.errors import Unsupported


def number(what: str, value: Any) -> float:
    """Return a number as the plain one that JSON has.

    Raises:
        Unsupported: it is none.
    """
    if type(value) is int or type(value) is float:
        plain: float = value
        return plain
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise Unsupported(f"{what} is a number, not {value!r}") from None


def waiting_time(what: str, value: float | None) -> float | None:
    """Return how long to wait: seconds, or None for ever; negative ones are over already.

    Raises:
        Unsupported: it is no number.
    """
    if value is None:
        return None
    seconds = number(what, value)
    if math.isnan(seconds):
        raise Unsupported(f"{what} is a number of seconds, or None to wait for ever, not {value!r}")
    return seconds


def delay(what: str, value: float) -> float:
    """Return a delay: finite, and not negative.

    Raises:
        Unsupported: it is no such number.
    """
    seconds = number(what, value)
    if not 0 <= seconds < math.inf:
        raise Unsupported(f"{what} is a number of seconds, 0 or more, not {value!r}")
    return seconds


def count(what: str, value: int) -> int:
    """Return a whole number as the plain int that JSON has.

    Raises:
        Unsupported: it is none.
    """
    try:
        return int(operator.index(value))
    except TypeError:
        raise Unsupported(f"{what} is a whole number, not {value!r}") from None
