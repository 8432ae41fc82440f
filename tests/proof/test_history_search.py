"""The history checker agrees with brute force on every history of three steps, and on three times
as many random ones as in `make test`.
"""

from __future__ import annotations

from strongroom.testing.linearizability import Model, State
from tests.testing.histories import Step
from tests.testing.test_search import (
    MODELS,
    check_every_history,
    test_agrees_with_brute_force_on_random_histories,
    test_every_counterexample_is_one_by_brute_force,
    test_mutated_histories_are_judged_as_by_brute_force,
    test_what_an_atomic_blob_answers_is_accepted,
)

__all__ = [
    "test_agrees_with_brute_force_on_random_histories",
    "test_every_counterexample_is_one_by_brute_force",
    "test_mutated_histories_are_judged_as_by_brute_force",
    "test_what_an_atomic_blob_answers_is_accepted",
]


@MODELS
def test_every_history_of_three(model: Model[State], steps: list[Step]) -> None:
    assert min(check_every_history(model, steps, 3).values()) > 100
