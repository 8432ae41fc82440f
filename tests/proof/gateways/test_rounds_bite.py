"""The judgement of a round finds gateways with a known defect."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from tests.engines.postgres.servers import quick_server
from tests.proof.gateways.rounds import Histories
from tests.proof.gateways.serving import PROGRAM, Serving

MUTANT = Path(__file__).with_name("mutant_gateway.py")
SECONDS = 6.0


@pytest.mark.parametrize(
    ("defect", "found"), [("stale", "history"), ("jumps", "a lease of 15 s ended after 1")]
)
def test_a_defect_is_found(tmp_path: Path, defect: str, found: str) -> None:
    starts = [PROGRAM, (sys.executable, str(MUTANT), defect)]
    with quick_server(tmp_path) as server, Serving([server.url] * 2, tmp_path, starts) as serving:
        histories = Histories(serving.way, "seen", 1)
        time.sleep(SECONDS)
        histories.stop()
        failures = list(histories.faults(serving.pass_time))
        print(*(one[:200] for one in failures), sep="\n")
        assert any(found in one for one in failures), failures
