"""The times by which snapshots of blobs and of shares are named.

Sources: "Snapshot Blob", "Snapshot Share".
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from strongroom.errors.core import invalid_query
from strongroom.values import ticks_of

_TIME: Final = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})\.([0-9]{7})Z")


def snapshot_time(text: str, name: str = "snapshot") -> int:
    """The ticks of a snapshot's time as responses give it, in the query parameter `name`."""
    match = _TIME.fullmatch(text)
    try:
        if match is None:
            raise ValueError(text)
        moment = datetime.fromisoformat(match[1]).replace(tzinfo=UTC)
    except ValueError:
        raise invalid_query(name, text, "The value is not the time of a snapshot.") from None
    return ticks_of(moment) + int(match[2])
