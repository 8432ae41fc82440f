"""Parses times into ticks: RFC 1123 dates of headers, ISO 8601 times of signatures and policies.

Lives here: parsing only, once for all callers. Must not live here: writing (values.py), clocks, the
meaning of a time. Sources: RFC 9110 section 5.6.7 (IMF-fixdate); "Create a service SAS", section
"Specify the access period".
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from strongroom.values import DAY_NAMES, MONTH_NAMES, ticks_of

_RFC1123: Final = re.compile(
    r"([A-Z][a-z]{2}), ([0-9]{2}) ([A-Z][a-z]{2}) ([0-9]{4}) ([0-9]{2}):([0-9]{2}):([0-9]{2}) GMT"
)
_RFC1123_CHARS: Final = 29
_ISO8601: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:T([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,7}))?)?Z)?"
)
_ISO8601_CHARS_MAX: Final = 28


def parse_rfc1123(text: str) -> int | None:
    """Return the ticks of a time like `Fri, 26 Jun 2015 23:39:12 GMT`.

    Return None for any other text, and for a wrong weekday.
    """
    # The length is checked first, so that no long text is ever cached.
    return _rfc1123_ticks(text) if len(text) == _RFC1123_CHARS else None


@lru_cache(maxsize=64)
def _rfc1123_ticks(text: str) -> int | None:
    found = _RFC1123.fullmatch(text)
    if found is None or found[3] not in MONTH_NAMES:
        return None
    month = MONTH_NAMES.index(found[3]) + 1
    year, day, hour, minute, second = (int(found[part]) for part in (4, 2, 5, 6, 7))
    moment = _moment(year, month, day, hour, minute, second)
    if moment is None or DAY_NAMES[moment.weekday()] != found[1]:
        return None
    return ticks_of(moment)


def parse_iso8601(text: str) -> int | None:
    """Return the ticks of a UTC time of a SAS or stored policy; None if `text` has another form.

    Forms: `YYYY-MM-DD`, `YYYY-MM-DDThh:mmZ`, `YYYY-MM-DDThh:mm:ssZ`, and the last with up to seven
    digits of a fraction.
    """
    return _iso8601_ticks(text) if len(text) <= _ISO8601_CHARS_MAX else None


@lru_cache(maxsize=256)
def _iso8601_ticks(text: str) -> int | None:
    found = _ISO8601.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
    moment = _moment(year, month, day, hour, minute, second)
    return None if moment is None else ticks_of(moment) + int((found[7] or "").ljust(7, "0"))


def _moment(
    year: int, month: int, day: int, hour: int, minute: int, second: int
) -> datetime | None:
    try:
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
