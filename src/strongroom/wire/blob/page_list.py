"""The answer of Get Page Ranges.

Source: "Get Page Ranges", response body.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from strongroom.wire.core import xml


def write_page_list(
    ranges: Iterable[tuple[int, int, bool]], next_marker: str | None
) -> Iterator[bytes]:
    """The document, piece by piece.

    Arguments:
        ranges: (first byte, last byte, whether it was cleared), in order.
        next_marker: None leaves the element out, "" marks the last page.
    """
    marker = "" if next_marker is None else xml.element("NextMarker", next_marker)
    remaining = iter(ranges)
    first = next(remaining, None)
    if first is None and not marker:
        return xml.pieces(xml.DECLARATION, (), "<PageList />")
    rows = map(_row, remaining if first is None else chain((first,), remaining))
    return xml.pieces(f"{xml.DECLARATION}<PageList>", rows, f"{marker}</PageList>", 1000)


def _row(entry: tuple[int, int, bool]) -> str:
    first, last, cleared = entry
    return f"<{_tag(cleared)}><Start>{first}</Start><End>{last}</End></{_tag(cleared)}>"


def _tag(cleared: bool) -> str:
    return "ClearRange" if cleared else "PageRange"
