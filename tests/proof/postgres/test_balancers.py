"""The long proof of taking over: two gateways of a store behind HAProxy and nginx, under load.

The one that serves is killed or stopped. The other one takes over, and nothing that was answered is
lost.
"""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Final

import pytest

from tests.effort import scaled
from tests.engines.postgres.servers import quick_server
from tests.proof.postgres.balancers import BALANCERS, Balanced, balanced
from tests.proof.postgres.http_load import HttpLoad, Verdict

ROUNDS: Final = scaled(10)
_WRITES: Final = 30


def taken_over(behind: Balanced, name: str, how: signal.Signals) -> tuple[float, Verdict]:
    """End the gateway that serves, and start it again once the other one serves. Return how long
    nothing was acknowledged, and what became of the writes."""
    load = HttpLoad(behind.services, name)
    load.acknowledges(_WRITES)
    ended = behind.serving()
    began = time.monotonic()
    ended.stop(how)
    load.acknowledges(_WRITES)
    ended.start()
    ended.wait(ended.waits)
    load.acknowledges(_WRITES)
    load.stop()
    return load.gap_s(began), load.verdict()


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "stopped"])
@pytest.mark.parametrize("balancer", BALANCERS)
def test_what_was_answered_is_there_after_the_other_gateway_took_over(
    tmp_path: Path, balancer: str, how: signal.Signals
) -> None:
    gaps: list[float] = []
    acknowledged = 0
    with (
        quick_server(tmp_path) as database,
        balanced(balancer, database.url, tmp_path) as behind,
    ):
        try:
            for number in range(ROUNDS):
                gap_s, verdict = taken_over(behind, f"load{number}", how)
                gaps.append(gap_s)
                acknowledged += verdict.acknowledged
                assert verdict.is_exact, verdict
        finally:
            shown = ", ".join(f"{gap:.1f}" for gap in sorted(gaps))
            print(f"{balancer}, {how.name}: {acknowledged} acknowledged, 0 lost, gaps {shown} s")
