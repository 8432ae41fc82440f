"""The answer of Get Page Ranges.

Must not live here: which ranges there are. Source: "Get Page Ranges", response body.
"""

from __future__ import annotations

from collections.abc import Iterable

from strongroom.wire.core import xml


def write_page_list(ranges: Iterable[tuple[int, int, bool]], next_marker: str | None) -> bytes:
    """The document.

    Arguments:
        ranges: (first byte, last byte, whether it was cleared), in order.
        next_marker: None leaves the element out, "" says that nothing is left.
    """
    rows = "".join(
        f"<{_tag(cleared)}><Start>{first}</Start><End>{last}</End></{_tag(cleared)}>"
        for first, last, cleared in ranges
    )
    marker = "" if next_marker is None else xml.element("NextMarker", next_marker)
    inner = rows + marker
    root = f"<PageList>{inner}</PageList>" if inner else "<PageList />"
    return (xml.DECLARATION + root).encode()


def _tag(cleared: bool) -> str:
    return "ClearRange" if cleared else "PageRange"
