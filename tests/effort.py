"""The number of repetitions of a test: all in `make proof`, a share of them in `make test`.

Lives here: the share, by the current Hypothesis profile. `make proof` sets the long one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

from hypothesis import HealthCheck, settings

Row = TypeVar("Row")
Column = TypeVar("Column")

# The number of examples in the profile of `make proof`, with which the given counts are reached.
_LONG_EXAMPLES: Final = 300
# A server outlives the examples on purpose, so an example meets the data of those before it.
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
    """Return `count` in `make proof`; in `make test` a tenth of it, and at least one."""
    return max(1, count * _profile_examples() // _LONG_EXAMPLES)


def stride() -> int:
    """Return 1 in `make proof`; 10 in `make test`, where every tenth case is tried."""
    return max(1, _LONG_EXAMPLES // _profile_examples())


def examples(count: int, steps: int = 50) -> settings:
    """Return settings for `count` examples in `make proof`; in `make test` for a tenth of them.

    Arguments:
        count: the number of examples.
        steps: the steps of each example, for a state machine.
    """
    return settings(
        max_examples=scaled(count), stateful_step_count=steps, suppress_health_check=_CHECKS
    )


def pairs(rows: Sequence[Row], columns: Sequence[Column]) -> Iterator[tuple[Row, Column]]:
    """Yield every row with every column in `make proof`; in `make test` one pair in ten.

    The pairs left out lie on diagonals. So each row still meets a tenth of the columns, and each
    column a tenth of the rows.
    """
    step = stride()
    for at, row in enumerate(rows):
        for column in columns[-at % step :: step]:
            yield row, column
