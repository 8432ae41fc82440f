"""Times as text: RFC 1123 dates of headers, ISO 8601 times of signatures and policies.

Must not live here: clocks, and what a time means. Sources: RFC 9110 section 5.6.7 (IMF-fixdate),
"Create a service SAS" (forms of signed times).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

from strongroom.values import TICKS_PER_S, datetime_of, ticks_of

_DAY_S: Final = 86_400
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = (
    *("Jan", "Feb", "Mar", "Apr", "May", "Jun"),
    *("Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
)
_RFC1123: Final = re.compile(
    r"([A-Z][a-z]{2}), ([0-9]{2}) ([A-Z][a-z]{2}) ([0-9]{4}) ([0-9]{2}):([0-9]{2}):([0-9]{2}) GMT"
)
_ISO: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:T([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,7}))?)?"
    r"(Z|[+-][0-9]{2}:[0-9]{2}))?"
)


def parse_rfc1123(text: str) -> int | None:
    """Ticks of `Fri, 26 Jun 2015 23:39:12 GMT`; None for anything else, a wrong weekday
    included."""
    found = _RFC1123.fullmatch(text)
    if found is None:
        return None
    day_name, day, month, year, hour, minute, second = found.groups()
    if month not in _MONTHS:
        return None
    try:
        moment = datetime(
            *(int(year), _MONTHS.index(month) + 1, int(day)),
            *(int(hour), int(minute), int(second)),
            tzinfo=UTC,
        )
    except ValueError:
        return None
    return ticks_of(moment) if _DAYS[moment.weekday()] == day_name else None


def format_rfc1123(ticks: int) -> str:
    """`Fri, 26 Jun 2015 23:39:12 GMT`, cheap for many times of few seconds or days."""
    return _second_text(ticks // TICKS_PER_S)


@lru_cache(maxsize=1024)
def _second_text(moment: int) -> str:
    day, second = divmod(moment, _DAY_S)
    minute, second = divmod(second, 60)
    hour, minute = divmod(minute, 60)
    return f"{_day_text(day)} {hour:02d}:{minute:02d}:{second:02d} GMT"


@lru_cache(maxsize=1024)
def _day_text(day: int) -> str:
    moment = datetime_of(day * _DAY_S * TICKS_PER_S)
    name, month = _DAYS[moment.weekday()], _MONTHS[moment.month - 1]
    return f"{name}, {moment.day:02d} {month} {moment.year:04d}"


def parse_iso8601(text: str) -> int | None:
    """Ticks of a UTC time of signatures and policies; None for anything else.

    Forms: `YYYY-MM-DD`, and `YYYY-MM-DDThh:mm`, with `:ss` and up to seven digits of a fraction if
    wanted, followed by `Z` or an offset `+hh:mm`.
    """
    found = _ISO.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    try:
        moment = datetime(
            *(int(year), int(month), int(day)),
            *(int(hour or 0), int(minute or 0), int(second or 0)),
            tzinfo=UTC,
        )
        moment -= _offset(zone)
    except (ValueError, OverflowError):
        return None
    return ticks_of(moment) + int((fraction or "").ljust(7, "0"))


def _offset(zone: str | None) -> timedelta:
    if zone is None or zone == "Z":
        return timedelta()
    hours, minutes = int(zone[1:3]), int(zone[4:6])
    if hours > 14 or minutes > 59:
        raise ValueError(zone)
    offset = timedelta(hours=hours, minutes=minutes)
    return -offset if zone[0] == "-" else offset
