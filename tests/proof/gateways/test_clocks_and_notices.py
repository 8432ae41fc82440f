"""The long proofs of gateways whose clock is 5 s off, and whose notifications are all lost."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from tests.effort import scaled
from tests.engines.postgres.servers import quick_server
from tests.proof.gateways.rounds import Measured, prove
from tests.proof.gateways.serving import PROGRAM, Serving, off_by

ROUNDS = scaled(100)
OFF_S = 5
DEAF = Path(__file__).with_name("deaf_gateway.py")


@pytest.mark.timeout(2400)
@pytest.mark.parametrize("off_s", [OFF_S, -OFF_S])
def test_a_gateway_whose_clock_is_off(tmp_path: Path, off_s: int) -> None:
    """It is started again in each round, so that it joins with its clock."""
    starts = [PROGRAM, (*off_by(off_s), *PROGRAM)]
    with quick_server(tmp_path) as server, Serving([server.url] * 2, tmp_path, starts) as serving:

        def fault(seed: int) -> Measured:
            serving.kill(1)
            serving.start(1)
            return {}

        prove(f"clock {off_s:+d} s off", serving, ROUNDS, fault)


@pytest.mark.timeout(2400)
def test_gateways_that_tell_each_other_nothing(tmp_path: Path) -> None:
    starts = [(sys.executable, str(DEAF))] * 2
    with quick_server(tmp_path) as server, Serving([server.url] * 2, tmp_path, starts) as serving:

        def fault(seed: int) -> Measured:
            time.sleep(3.0)
            return {}

        prove("notices lost", serving, ROUNDS, fault)
