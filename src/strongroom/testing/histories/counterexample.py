"""Turns a history that has no linearization into a readable counterexample.

Lives here: the cut to the shortest prefix that fails, the removal of irrelevant operations, and the
table. Must not live here: the verdict (`search.py`).
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from strongroom.testing.histories.linearizability import (
    NEVER,
    CompletedCall,
    Model,
    ModelHints,
    State,
)
from strongroom.testing.histories.search import SearchLimitError, SearchResult, find_order

_TRIED_MAX: Final = 20_000  # operations searched in all attempts to leave some out
_CONTEXT_ROWS: Final = 6  # operations shown before those without a place in the order
_ROWS_MAX: Final = 24  # the middle of a longer table is hidden


@dataclass(frozen=True, slots=True)
class Counterexample:
    """Operations of one object that no order explains.

    Arguments:
        object_key: the object.
        operations: the shortest prefix of the history that fails, without irrelevant operations.
            Operations in progress at its end have `returned == NEVER`.
        order: the longest order of some of them that the model allows, as numbers.
        states: the possible states of the object after that order.
    """

    object_key: str
    operations: tuple[CompletedCall, ...]
    order: tuple[int, ...]
    states: frozenset[Hashable]

    def render(self) -> str:
        """Return the table: a row for each operation, its place in the order, and a timeline."""
        last = max(self.operations, key=_returned)
        rows = self._rows(last)
        hidden = len(self.operations) - len(rows)
        states = " or ".join(sorted(map(repr, self.states)))
        lines = [
            f"{self.object_key!r} is not linearizable: no order of these operations explains "
            f"the answer of #{last.number}.",
            f"The longest order that can be explained has {len(self.order)} of "
            f"{len(self.operations)} operations and leaves: {states}.",
            *([f"{hidden} operations are not shown."] if hidden else []),
            *_table(rows, self.order),
        ]
        return "\n".join(lines)

    def _rows(self, last: CompletedCall) -> list[CompletedCall]:
        """Return the rows: operations without a place in the order, and those around them."""
        placed = set(self.order)
        left = [operation for operation in self.operations if operation.number not in placed]
        begin = min((operation.invoked for operation in left), default=0)
        context = set(self.order[-_CONTEXT_ROWS:])
        rows = [
            operation
            for operation in self.operations
            if operation.returned > begin or operation.number in context
        ]
        half = _ROWS_MAX // 2
        ends = {operation.number for operation in (*rows[:half], *rows[-half:], last)}
        return [operation for operation in rows if operation.number in ends]


def counterexample(
    operations: Sequence[CompletedCall], model: Model[State], object_key: str, max_steps: int
) -> Counterexample:
    """Return the shortest prefix that fails, without irrelevant operations.

    Arguments:
        operations: the operations of one object, known to have no valid order.
        model, object_key, max_steps: see `find_order`.

    Raises:
        SearchLimitError: the search for the shortest prefix reached its limit.
    """
    ends = sorted(operation.returned for operation in operations if operation.returned < NEVER)
    low, high = 0, len(ends) - 1
    while low < high:
        middle = (low + high) // 2
        if find_order(_prefix(operations, ends[middle]), model, object_key, max_steps).complete:
            low = middle + 1
        else:
            high = middle
    shortest = _prefix(operations, ends[high])
    kept, found = _without_reads(shortest, model, object_key, max_steps)
    return Counterexample(object_key, tuple(kept), found.order, found.states)


def _prefix(operations: Sequence[CompletedCall], end: int) -> list[CompletedCall]:
    """Return the history up to a position. Calls in progress there may have happened or not.

    Such an operation keeps its later response, which is a fact, so that the cut comes early.
    """
    return [
        operation if operation.returned <= end else replace(operation, returned=NEVER)
        for operation in operations
        if operation.invoked < end
    ]


def _without_reads(
    operations: list[CompletedCall], model: Model[State], object_key: str, max_steps: int
) -> tuple[list[CompletedCall], SearchResult]:
    """Leave out operations that change nothing, in ever smaller pieces, while the rest still fails.

    Only those may be left out. Without a write, the reads of its value would fail, although the
    server is correct.
    """
    kept, found = operations, find_order(operations, model, object_key, max_steps)
    if not isinstance(model, ModelHints):
        return kept, found
    droppable = [
        operation
        for operation in operations
        if operation.returned < NEVER and model.never_changes(operation.call, operation.result)
    ]
    size, tried = len(droppable), 0
    while size and droppable and tried < _TRIED_MAX:
        for start in range(0, len(droppable), size):
            tried += len(kept)
            piece = {operation.number for operation in droppable[start : start + size]}
            rest = [operation for operation in kept if operation.number not in piece]
            outcome = _try(rest, model, object_key, max_steps)
            if outcome is not None and not outcome.complete:
                kept, found = rest, outcome
        numbers = {operation.number for operation in kept}
        droppable = [operation for operation in droppable if operation.number in numbers]
        size = min(size // 2, len(droppable))
    return kept, found


def _try(
    operations: list[CompletedCall], model: Model[State], object_key: str, max_steps: int
) -> SearchResult | None:
    try:
        return find_order(operations, model, object_key, max_steps)
    except SearchLimitError:
        return None


def _returned(operation: CompletedCall) -> int:
    return operation.returned if operation.returned < NEVER else -1


def _table(rows: Sequence[CompletedCall], order: Sequence[int]) -> list[str]:
    place = {number: str(position + 1) for position, number in enumerate(order)}
    cells = [("#", "order", "client", "call", "answer", "time")]
    for row, line in zip(rows, _timeline(rows), strict=True):
        answer = repr(row.result)
        cells.append(
            (str(row.number), place.get(row.number, "-"), row.client, repr(row.call), answer, line)
        )
    widths = [max(len(cell[column]) for cell in cells) for column in range(6)]
    return [
        "  ".join(text.ljust(width) for text, width in zip(cell, widths, strict=True)).rstrip()
        for cell in cells
    ]


def _timeline(rows: Sequence[CompletedCall]) -> list[str]:
    """Return a bar for each row: `[` invoked, `]` returned, `>` not returned by the end."""
    positions = sorted({at for row in rows for at in (row.invoked, row.returned)} - {NEVER})
    column = {position: index for index, position in enumerate(positions)}
    lines = []
    for row in rows:
        begin = column[row.invoked]
        end = column.get(row.returned, len(positions))
        mark = "]" if row.returned < NEVER else ">"
        lines.append(" " * begin + "[" + "-" * (end - begin - 1) + mark)
    return lines
