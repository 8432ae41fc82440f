"""The long proof of fencing: a gateway stands still under load, and goes on afterwards.

After 15 s it was declared dead: nothing that it has under way is committed, it answers nothing from
its memory, and it ends. After 6 s it was not: it answers nothing before a heartbeat was accepted.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.effort import scaled
from tests.engines.postgres.servers import quick_server
from tests.proof.gateways.rounds import Measured, prove
from tests.proof.gateways.serving import Serving

ROUNDS = scaled(30)
SHORT_ROUNDS = scaled(100)
DEAD_S = 15.0
LATE_S = 6.0
END_S = 10.0


@pytest.mark.timeout(2400)
def test_a_gateway_that_was_declared_dead_ends(tmp_path: Path) -> None:
    with quick_server(tmp_path) as server, Serving([server.url] * 2, tmp_path) as serving:

        def fault(seed: int) -> Measured:
            number = seed % 2
            serving.pause(number)
            time.sleep(DEAD_S)
            serving.resume(number)
            resumed = time.monotonic()
            assert serving.has_ended(number, END_S), "it did not notice that it was declared dead"
            ended_s = time.monotonic() - resumed
            serving.start(number)
            return {"ended_s": ended_s}

        prove("gateway stopped for 15 s", serving, ROUNDS, fault)


@pytest.mark.timeout(2400)
def test_a_gateway_that_stood_still_answers_nothing_from_its_memory(tmp_path: Path) -> None:
    with quick_server(tmp_path) as server, Serving([server.url] * 2, tmp_path) as serving:

        def fault(seed: int) -> Measured:
            serving.pause(seed % 2)
            time.sleep(LATE_S)
            serving.resume(seed % 2)
            return {}

        prove("gateway stopped for 6 s", serving, SHORT_ROUNDS, fault)
