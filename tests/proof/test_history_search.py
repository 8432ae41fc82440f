"""The history checker agrees with brute force on every history of three steps."""

from __future__ import annotations

from strongroom.testing.histories.linearizability import Model, State
from tests.testing.histories import Step
from tests.testing.test_search import MODELS, check_every_history


@MODELS
def test_every_history_of_three(model: Model[State], steps: list[Step]) -> None:
    assert min(check_every_history(model, steps, 3).values()) > 100
