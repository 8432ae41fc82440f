"""The long proof against power cuts: rounds of two lives each, with new randomness every time.

It covers the engine alone, and whole requests on entities and messages.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.durability.power_cut_kept import KeptPlay
from tests.durability.power_cut_queues import QueuePlay
from tests.durability.power_cut_tables import TablePlay
from tests.durability.power_cuts import Play
from tests.durability.power_cuts import run_round as run_served
from tests.engines.power_cut_rounds import run_round

ROUNDS = 300


@pytest.mark.timeout(900)
def test_300_rounds_of_power_cuts_take_nothing_back(tmp_path: Path) -> None:
    assert _rounds(tmp_path, partial(run_round, rounds=25)) > 100 * ROUNDS


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("play", [TablePlay, QueuePlay, KeptPlay])
def test_300_rounds_take_back_no_answer(play: Callable[[], Play], tmp_path: Path) -> None:
    """T-WRI-07, T-WRI-09, T-BAT-02, Q-GET-07, Q-POP-05."""
    assert _rounds(tmp_path, partial(run_served, rounds=25, make=play)) > 100 * ROUNDS


def _rounds(tmp_path: Path, run: Callable[[Path, int], int]) -> int:
    """Run them all; how many operations of the disk there were."""
    first = random.SystemRandom().getrandbits(32)
    operations = 0
    for seed in range(first, first + ROUNDS):
        directory = tmp_path / str(seed)
        directory.mkdir()
        operations += run(directory, seed)
        shutil.rmtree(directory)  # what fails stays, with the seed as its name
    return operations
