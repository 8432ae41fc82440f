"""Validates callers' arguments: times and counts.

Lives here: checks that need no store. NaN must be refused, as every comparison with it is false. A
rule would then never wait, wait for ever, or never consider a hold held. Must not live here: bounds
of a store (context.py), names (names.py).
"""

from __future__ import annotations

import math
import operator
from typing import Any

from strongroom.coordination.errors import Unsupported


def number(what: str, value: Any) -> float:
    """Return a plain int or float, which JSON can represent. Raises: Unsupported."""
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
    """Return a waiting time in seconds; None waits for ever. A negative time has expired already.

    Raises: Unsupported.
    """
    if value is None:
        return None
    seconds = number(what, value)
    if math.isnan(seconds):
        raise Unsupported(f"{what} is a number of seconds, or None to wait for ever, not {value!r}")
    return seconds


def delay(what: str, value: float) -> float:
    """Return a delay in seconds, which must be finite and not negative. Raises: Unsupported."""
    seconds = number(what, value)
    if not 0 <= seconds < math.inf:
        raise Unsupported(f"{what} is a number of seconds, 0 or more, not {value!r}")
    return seconds


def count(what: str, value: int) -> int:
    """Return a plain int, which JSON can represent. Raises: Unsupported."""
    try:
        return int(operator.index(value))
    except TypeError:
        raise Unsupported(f"{what} is a whole number, not {value!r}") from None
