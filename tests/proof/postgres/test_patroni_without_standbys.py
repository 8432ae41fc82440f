"""The long proof of what Patroni's two synchronous modes mean while no standby is there.

Without strict mode, the primary goes on alone, and what is answered then is on one machine only. So
Patroni promotes nobody when that one is lost. Whoever forces it gives those writes up.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

import pytest

from tests.proof.postgres.gateway import Gateway
from tests.proof.postgres.http_load import HttpLoad
from tests.proof.postgres.http_store import HttpStore
from tests.proof.postgres.patroni import QUICK, PatroniCluster, PatroniNode

_WRITES: Final = 30
_ALONE_S: Final = 5.0
_FAILOVER_S: Final = 4.0 * QUICK["ttl"]


def others(cluster: PatroniCluster, leader: PatroniNode) -> list[PatroniNode]:
    return [node for node in cluster.nodes if node is not leader]


def no_leader_for(cluster: PatroniCluster, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert not cluster.leaders()
        time.sleep(0.1)


@pytest.mark.timeout(600)
def test_what_a_primary_alone_has_answered_is_lost_by_a_forced_failover(tmp_path: Path) -> None:
    with PatroniCluster(tmp_path, is_strict=False) as cluster:
        gateway = Gateway(cluster.url, tmp_path)
        try:
            gateway.wait(gateway.serves)
            load = HttpLoad(gateway.services, "load")
            load.acknowledges(_WRITES)
            leader = cluster.leader()
            away = time.monotonic()
            for node in others(cluster, leader):
                node.kill()
            load.acknowledges(_WRITES)
            print(f"the primary answered alone after {load.gap_s(away):.2f} s")
            alone = time.monotonic()
            time.sleep(_ALONE_S)
            load.stop()
            leader.kill()
            first, *_ = others(cluster, leader)
            for node in others(cluster, leader):
                node.start()
            no_leader_for(cluster, _FAILOVER_S)
            cluster.control("failover", "--candidate", first.name, "--force")
            assert cluster.leader() is first
            verdict = load.verdict()
            later = sum(one.at > alone for one in load.acknowledged)
        finally:
            gateway.stop()
    print(f"{verdict.acknowledged} acknowledged, {later} of them in {_ALONE_S} s without a standby")
    print(f"a forced failover has lost {len(verdict.lost)} blobs, entities and messages")
    assert verdict.lost, "else strict mode would be of no use"


@pytest.mark.timeout(600)
def test_with_strict_mode_nothing_is_answered_without_a_standby(tmp_path: Path) -> None:
    with PatroniCluster(tmp_path, is_strict=True) as cluster:
        gateway = Gateway(cluster.url, tmp_path)
        try:
            gateway.wait(gateway.serves)
            load = HttpLoad(gateway.services, "load")
            load.acknowledges(_WRITES)
            leader = cluster.leader()
            for node in others(cluster, leader):
                node.kill()
            away = time.monotonic()
            time.sleep(_ALONE_S + 10.0)
            reading = HttpStore(gateway.services, "load")
            health, read = gateway.health(), reading.get_document("counter0").status
            reading.close()
            in_between = [one for one in load.acknowledged if one.at > away + 1.0]
            cluster.rejoin()
            load.acknowledges(_WRITES)
            load.stop()
            verdict = load.verdict()
        finally:
            gateway.stop()
    print(f"{verdict}; without a standby, health is {health}, and a read is answered {read}")
    assert not in_between
    assert verdict.is_exact, verdict
