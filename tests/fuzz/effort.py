"""How many examples a test tries: a share of what the profile in force allows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from hypothesis import HealthCheck, settings

Row = TypeVar("Row")
Column = TypeVar("Column")

# Where the counts given are reached: `make proof` runs the fuzz tests under this profile.
_LONG_EXAMPLES = 300
# The server outlives the examples on purpose: what one leaves behind is there for the next.
_CHECKS = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]


def examples(count: int) -> settings:
    """`count` examples in `make proof`; in `make test` a third of them."""
    given = settings.default
    assert given is not None
    scaled = count * given.max_examples // _LONG_EXAMPLES
    return settings(max_examples=max(1, scaled), suppress_health_check=_CHECKS)


def pairs(rows: Sequence[Row], columns: Sequence[Column]) -> Iterator[tuple[Row, Column]]:
    """Every row with every column in `make proof`; in `make test` one pair in three.

    The pairs left out lie on diagonals, so that each row still meets a third of the columns, and
    each column a third of the rows.
    """
    given = settings.default
    assert given is not None
    stride = max(1, _LONG_EXAMPLES // given.max_examples)
    for at, row in enumerate(rows):
        for column in columns[-at % stride :: stride]:
            yield row, column
