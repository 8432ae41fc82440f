"""The long proof against power cuts: 300 rounds of two lives each, with new chance every time."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from tests.engines.power_cut_rounds import run_round

ROUNDS = 300


@pytest.mark.timeout(900)
def test_300_rounds_of_power_cuts_take_nothing_back(tmp_path: Path) -> None:
    first = random.SystemRandom().getrandbits(32)
    operations = 0
    for seed in range(first, first + ROUNDS):
        directory = tmp_path / str(seed)
        directory.mkdir()
        operations += run_round(directory, seed, rounds=25)
        shutil.rmtree(directory)  # what fails stays, with the seed as its name
    assert operations > 100 * ROUNDS
