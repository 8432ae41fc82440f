"""The long proof of failover: a primary dies under the load of two gateways, and its synchronous
standby is promoted.

In the second part the clocks of both servers are 5 s apart. So store time would jump ahead with one
promotion, and back with the next one: no lease may end early, and no stamp may fall. One gateway is
started again after each promotion, and takes its time from the new primary.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.effort import scaled
from tests.engines.postgres.cluster import PostgresCluster
from tests.proof.gateways.rounds import Measured, prove
from tests.proof.gateways.serving import Serving, off_by

ROUNDS = scaled(30)
APART_S = 5


@pytest.mark.timeout(2400)
def test_a_promoted_standby_has_all_that_was_acknowledged(tmp_path: Path) -> None:
    with PostgresCluster(tmp_path) as cluster, Serving([cluster.url] * 2, tmp_path) as serving:

        def fault(seed: int) -> Measured:
            cluster.kill_primary()
            taken_s = cluster.promote()
            cluster.rejoin()
            return {"promotion_s": taken_s}

        prove("primary killed", serving, ROUNDS, fault)


@pytest.mark.timeout(2400)
def test_time_neither_jumps_nor_falls_with_another_clock(tmp_path: Path) -> None:
    with PostgresCluster(tmp_path) as cluster:
        (standby,) = cluster.standbys
        cluster.nodes[standby].start_within(off_by(APART_S))
        cluster.nodes[standby].kill()
        cluster.nodes[standby].restart()
        cluster.wait_for_standbys()
        with Serving([cluster.url] * 2, tmp_path) as serving:

            def fault(seed: int) -> Measured:
                before_s = _clock_s(cluster)
                cluster.kill_primary()
                taken_s = cluster.promote()
                ahead_s = _clock_s(cluster) - before_s
                cluster.rejoin()
                serving.kill(seed % 2)
                serving.start(seed % 2)
                return {"promotion_s": taken_s, "ahead_s": ahead_s}

            prove("standby's clock 5 s off", serving, ROUNDS, fault)


def _clock_s(cluster: PostgresCluster) -> float:
    return float(cluster.ask("SELECT extract(epoch FROM clock_timestamp())"))
