"""The answer of Get Page Ranges.

Must not live here: which ranges are listed. Source: "Get Page Ranges", response body.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from strongroom.wire.core import xml


def write_page_list(
    ranges: Iterable[tuple[int, int, bool]], next_marker: str | None
) -> Iterator[bytes]:
    """Yield the document, piece by piece.

    Arguments:
        ranges: (first byte, last byte, whether it was cleared), in order.
        next_marker: None leaves the element out, "" marks the last page.
    """
    marker = "" if next_marker is None else xml.element("NextMarker", next_marker)
    left = iter(ranges)
    first = next(left, None)
    if first is None and not marker:
        return xml.pieces(xml.DECLARATION, (), "<PageList />")
    rows = map(_row, left if first is None else chain((first,), left))
    return xml.pieces(f"{xml.DECLARATION}<PageList>", rows, f"{marker}</PageList>", 1000)


def _row(found: tuple[int, int, bool]) -> str:
    first, last, cleared = found
    return f"<{_tag(cleared)}><Start>{first}</Start><End>{last}</End></{_tag(cleared)}>"


def _tag(cleared: bool) -> str:
    return "ClearRange" if cleared else "PageRange"
