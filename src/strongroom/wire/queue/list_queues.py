"""The answer of List Queues.

Must not live here: which queues are listed. Source: "List Queues".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from strongroom.values import Metadata
from strongroom.wire.core import xml


class QueueItem(msgspec.Struct, frozen=True):
    """One queue; `metadata` is None unless requested."""

    name: str
    metadata: Metadata | None = None


def write_queues(
    asked: xml.PageRequest, queues: Iterable[QueueItem], next_marker: str
) -> Iterator[bytes]:
    """Yield the page as XML, piece by piece; `next_marker` is empty on the last page."""
    return xml.enumeration(asked, "Queues", map(_row, queues), next_marker)


def _row(item: QueueItem) -> str:
    name = xml.escape(item.name)
    return f"<Queue><Name>{name}</Name>{xml.metadata_element(item.metadata)}</Queue>"
