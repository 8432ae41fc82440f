"""A power cut takes back nothing that was shown and tears nothing. The long run is in tests/proof."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engines.power_cut_rounds import run_round


@pytest.mark.parametrize("seed", range(12))
def test_nothing_shown_is_lost_or_torn(seed: int, tmp_path: Path) -> None:
    assert run_round(tmp_path, seed, rounds=25) > 0
