"""The answer of List Queues. Source: "List Queues"."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from strongroom.values import Metadata
from strongroom.wire.core import xml


def write_queues(
    request: xml.PageRequest, queues: Iterable[tuple[str, Metadata | None]], next_marker: str
) -> Iterator[bytes]:
    """The page as XML, piece by piece.

    Arguments:
        queues: the name and the metadata of each; None = metadata was not requested.
        next_marker: empty on the last page.
    """
    rows = (
        f"<Queue><Name>{xml.escape(name)}</Name>{xml.metadata_element(metadata)}</Queue>"
        for name, metadata in queues
    )
    return xml.enumeration(request, "Queues", rows, next_marker)
