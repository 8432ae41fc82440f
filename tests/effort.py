"""How much a test repeats: all of it in `make proof`, a share in `make test`.

Lives here: the share, by the Hypothesis profile in force. `make proof` sets the long one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

from hypothesis import HealthCheck, settings

Row = TypeVar("Row")
Column = TypeVar("Column")

# Where the counts given are reached: the examples of the profile that `make proof` sets.
_LONG_EXAMPLES: Final = 300
# A server outlives the examples on purpose: what one leaves behind is there for the next.
_CHECKS: Final = [
    HealthCheck.function_scoped_fixture,
    HealthCheck.too_slow,
    HealthCheck.data_too_large,
]


def _profile_examples() -> int:
    given = settings.default
    assert given is not None
    return given.max_examples


def scaled(count: int) -> int:
    """`count` in `make proof`; in `make test` a sixth of it, and at least one."""
    return max(1, count * _profile_examples() // _LONG_EXAMPLES)


def stride() -> int:
    """1 in `make proof`; 6 in `make test`, where one of six in a row is tried."""
    return max(1, _LONG_EXAMPLES // _profile_examples())


def examples(count: int, steps: int = 50) -> settings:
    """`count` examples in `make proof`; in `make test` a sixth of them.

    Arguments:
        count: of examples.
        steps: of each, for a state machine.
    """
    return settings(
        max_examples=scaled(count), stateful_step_count=steps, suppress_health_check=_CHECKS
    )


def pairs(rows: Sequence[Row], columns: Sequence[Column]) -> Iterator[tuple[Row, Column]]:
    """Every row with every column in `make proof`; in `make test` one pair in six.

    The pairs left out lie on diagonals, so that each row still meets a sixth of the columns, and
    each column a sixth of the rows.
    """
    step = stride()
    for at, row in enumerate(rows):
        for column in columns[-at % step :: step]:
            yield row, column
