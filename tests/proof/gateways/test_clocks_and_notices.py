"""The long proofs of gateways whose clock is 5 s off, and whose notifications are all lost."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from tests.conformance.blobs import put
from tests.effort import scaled
from tests.engines.postgres.servers import quick_server
from tests.proof.gateways.leases import act_on
from tests.proof.gateways.rounds import Measured, prove
from tests.proof.gateways.serving import PROGRAM, Serving, off_by
from tests.proof.gateways.ways import WAIT, Way
from tests.proof.postgres.http_store import made

ROUNDS = scaled(100)
OFF_S = 5
WAIT_S = 30.0
DEAF = Path(__file__).with_name("deaf_gateway.py")


def woken_s(serving: Serving, container: str) -> float:
    """Wait at a gateway for a lease that is given back at the other one. Return how long it takes
    from then on until the one that waits has it."""
    own, other = (Way([one.services.port], WAIT_S).clients().blobs for one in serving.gateways)
    made(own.put(f"{container}?restype=container"))
    put(own, f"{container}/b")
    lease_id = "cccccccc-0000-4000-8000-000000000000"
    made(act_on(own, f"{container}/b", "acquire", proposed_lease_id=lease_id, lease_duration=-1))
    fields = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1"}
    wait = {**fields, WAIT: str(int(WAIT_S) - 5)}
    waiting = other.start("PUT", f"{container}/b?comp=lease", wait)
    time.sleep(0.5)
    made(act_on(own, f"{container}/b", "release", lease_id=lease_id))
    released = time.monotonic()
    made(waiting.result(WAIT_S))
    return time.monotonic() - released


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
            return {"woken_s": max(woken_s(serving, f"/w{seed}x{one}") for one in range(2))}

        prove("notices lost", serving, ROUNDS, fault)
