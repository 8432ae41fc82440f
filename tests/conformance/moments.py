"""Dates of condition headers, relative to a Last-Modified.

Must not live here: any evaluation of conditions.
"""

from __future__ import annotations

from datetime import timedelta
from email.utils import format_datetime, parsedate_to_datetime

OTHER_ETAG = '"0x8D0000000000000"'


def shifted(date: str, seconds: int) -> str:
    """Return an RFC 1123 date, shifted by some seconds."""
    return format_datetime(parsedate_to_datetime(date) + timedelta(seconds=seconds), usegmt=True)
