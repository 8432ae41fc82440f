"""What the rows of its contents say of a segment.

Lives here: the sums, of all segments or of one. Must not live here: what they are compared with
(bodies/body_check.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

# The two places are for a condition on the segment's id.
_SUMS: Final = (
    "SELECT ids.id, ifnull(sum(length), 0), ifnull(max(offset + length), 0), "
    "ifnull(live_bytes, 0), ifnull(sealed, 0) "
    "FROM (SELECT id FROM segments {} UNION SELECT segment FROM contents {}) AS ids "
    "LEFT JOIN contents ON contents.segment = ids.id "
    "LEFT JOIN segments ON segments.id = ids.id GROUP BY ids.id ORDER BY ids.id"
)
_ALL: Final = _SUMS.format("", "")
_ONE: Final = _SUMS.format("WHERE id = ?1", "WHERE segment = ?1")


class SegmentSum(NamedTuple):
    """What the records say of a segment.

    Attributes:
        live_bytes: the sum of the lengths of its contents.
        end: where the furthest of them ends.
        noted_bytes: the live bytes in the segment's own row.
        sealed: whether nothing is ever written to it again.
    """

    id: int
    live_bytes: int
    end: int
    noted_bytes: int
    sealed: bool


def segment_sums(execute: Callable[..., Any], segment: int | None = None) -> list[SegmentSum]:
    """Return the sums of all segments in the order of their ids, or of one, if there is one with
    this id. Raises apsw.Error."""
    rows = execute(_ALL) if segment is None else execute(_ONE, (segment,))
    return [SegmentSum(row[0], row[1], row[2], row[3], bool(row[4])) for row in rows.fetchall()]
