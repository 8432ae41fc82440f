"""The answer of List Queues.

Must not live here: which queues are listed. Source: "List Queues".
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from strongroom.values import Metadata
from strongroom.wire.core import xml


class QueueItem(msgspec.Struct, frozen=True):
    """One queue; `metadata` None unless asked for."""

    name: str
    metadata: Metadata | None = None


def write_queues(
    endpoint: str,
    queues: Iterable[QueueItem],
    next_marker: str,
    prefix: str | None = None,
    marker: str | None = None,
    max_results: int | None = None,
) -> bytes:
    """The page as XML.

    Arguments:
        endpoint: the service's URL, with a slash at its end.
        prefix, marker, max_results: as they were asked for; None = they were not.
        next_marker: empty when nothing is left.
    """
    rows = "".join(map(_row, queues))
    return xml.enumeration(endpoint, "Queues", rows, next_marker, prefix, marker, max_results)


def _row(item: QueueItem) -> str:
    name = xml.escape(item.name)
    return f"<Queue><Name>{name}</Name>{xml.metadata_element(item.metadata)}</Queue>"
