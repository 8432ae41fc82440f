"""The long proof of exact outcomes: sessions of two gateways are ended every 0.2 s under load."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from tests.effort import scaled
from tests.engines.postgres.faults import end_one
from tests.engines.postgres.servers import Administrator, quick_server
from tests.proof.gateways.rounds import Measured, prove
from tests.proof.gateways.serving import Serving

ROUNDS = scaled(100)
SECONDS = 3.5


@pytest.mark.timeout(2400)
def test_ended_sessions_lose_and_repeat_nothing(tmp_path: Path) -> None:
    with quick_server(tmp_path) as server, Serving([server.url] * 2, tmp_path) as serving:
        administrator = Administrator(server.url)

        def fault(seed: int) -> Measured:
            chance, ended = random.Random(seed), 0
            end = time.monotonic() + SECONDS
            while time.monotonic() < end:
                time.sleep(0.2)
                ended += end_one(administrator, chance)
            return {"ended": ended}

        prove("killed backends", serving, ROUNDS, fault)
        administrator.close()
