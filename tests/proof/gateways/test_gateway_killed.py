"""The long proof of a gateway's death: one of two is killed under load, and started again.

The other one goes on, and nothing that either of them acknowledged is lost.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.effort import scaled
from tests.engines.postgres.servers import quick_server
from tests.proof.gateways.rounds import Measured, prove
from tests.proof.gateways.serving import Serving

ROUNDS = scaled(100)


@pytest.mark.timeout(2400)
def test_nothing_is_lost_with_a_gateway_that_is_killed(tmp_path: Path) -> None:
    with quick_server(tmp_path) as server, Serving([server.url] * 2, tmp_path) as serving:

        def fault(seed: int) -> Measured:
            serving.kill(seed % 2)
            serving.start(seed % 2)
            return {}

        prove("gateway killed", serving, ROUNDS, fault)
