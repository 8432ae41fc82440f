"""Numbers of things are in the singular for one, in the plural else."""

from __future__ import annotations

import pytest

from strongroom.cli.counted import counted


@pytest.mark.parametrize(
    ("count", "plural", "said"),
    [
        (0, "problems", "0 problems"),
        (1, "problems", "1 problem"),
        (2, "problems", "2 problems"),
        (1, "entities", "1 entity"),
        (1, "times", "1 time"),
    ],
)
def test_a_number_is_said_with_its_noun(count: int, plural: str, said: str) -> None:
    assert counted(count, plural) == said
