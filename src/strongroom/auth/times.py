"""The two text forms of time that signatures carry, read into ticks.

Lives here: parsing only; judging a time is the business of whoever asks. Source: RFC 9110 section
5.6.7 (IMF-fixdate) and "Create a service SAS", section "Specify the access period".
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from strongroom.values import ticks_of

_MONTHS: Final = {
    month: number
    for number, month in enumerate(
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), 1
    )
}
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_RFC1123: Final = re.compile(
    r"([A-Z][a-z]{2}), ([0-9]{2}) ([A-Z][a-z]{2}) ([0-9]{4}) ([0-9]{2}):([0-9]{2}):([0-9]{2}) GMT"
)
_RFC1123_CHARS: Final = 29
_ISO8601: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:T([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,7}))?)?Z)?"
)


def parse_rfc1123(text: str) -> int | None:
    """Ticks of `Fri, 26 Jun 2015 23:39:12 GMT`, or None when `text` is not of that form."""
    # The length is looked at first so that nothing long is ever kept in the cache.
    return _rfc1123_ticks(text) if len(text) == _RFC1123_CHARS else None


@lru_cache(maxsize=64)
def _rfc1123_ticks(text: str) -> int | None:
    found = _RFC1123.fullmatch(text)
    if found is None or found[1] not in _DAYS or found[3] not in _MONTHS:
        return None
    clock = (int(found[5]), int(found[6]), int(found[7]))
    return _ticks(int(found[4]), _MONTHS[found[3]], int(found[2]), *clock)


@lru_cache(maxsize=256)
def parse_iso8601(text: str) -> int | None:
    """Ticks of a UTC time of a SAS or stored policy, or None when `text` has another form.

    Forms: `YYYY-MM-DD`, `YYYY-MM-DDThh:mmZ`, `YYYY-MM-DDThh:mm:ssZ`, and the last with up to seven
    digits of a fraction.
    """
    found = _ISO8601.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
    ticks = _ticks(year, month, day, hour, minute, second)
    return None if ticks is None else ticks + int((found[7] or "").ljust(7, "0"))


def _ticks(year: int, month: int, day: int, hour: int, minute: int, second: int) -> int | None:
    try:
        return ticks_of(datetime(year, month, day, hour, minute, second, tzinfo=UTC))
    except ValueError:
        return None
