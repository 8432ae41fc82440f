"""The long proof of Patroni: leaders are lost under load over HTTP, and nothing answered is lost.

It needs Debian's packages patroni and etcd-server.
"""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from tests.effort import scaled
from tests.proof.postgres.balancers import balanced
from tests.proof.postgres.gateway import Gateway
from tests.proof.postgres.http_load import HttpLoad, Verdict
from tests.proof.postgres.patroni import DEFAULT, PatroniCluster
from tests.proof.postgres.plain_writer import PlainWriter

ROUNDS = scaled(10)
_WRITES = 40
_OWN_S = 5.0
_OUTAGE_S = 10.0


class Failover(msgspec.Struct, frozen=True):
    """A leader's loss.

    Attributes:
        promotion_s: until a session to the new primary was open.
        plain_s: how long a plain client of PostgreSQL had no confirmed write.
        served_s: how long clients of the server had no acknowledged write.
        rejoined_s: how long it took until all nodes were in their places again.
    """

    promotion_s: float
    plain_s: float
    served_s: float
    rejoined_s: float
    verdict: Verdict

    @property
    def own_s(self) -> float:
        """What the server needed beyond a plain client."""
        return self.served_s - self.plain_s


def leader_lost(cluster: PatroniCluster, gateway: Gateway, name: str) -> Failover:
    """Kill the leader under load, and let it rejoin after the failover."""
    load = HttpLoad(gateway.services, name)
    with PlainWriter(cluster.url) as plain:
        load.acknowledges(_WRITES)
        leader = cluster.leader()
        killed = time.monotonic()
        leader.kill()
        load.acknowledges(_WRITES)
        promotion_s, plain_s, served_s = (
            plain.promotion_s(killed),
            plain.gap_s(killed),
            load.gap_s(killed),
        )
        rejoined_s = cluster.rejoin()
        load.acknowledges(_WRITES)
    load.stop()
    return Failover(promotion_s, plain_s, served_s, rejoined_s, load.verdict())


def summary(label: str, found: list[Failover]) -> str:
    """Return what the losses of leaders took, for people."""
    refused: Counter[int] = Counter()
    for one in found:
        refused.update(one.verdict.refused)
    lines = [
        f"{label}: {len(found)} leaders lost, "
        f"{sum(one.verdict.acknowledged for one in found)} writes acknowledged, "
        f"{sum(len(one.verdict.lost) for one in found)} lost, other answers {dict(refused)}"
    ]
    for what in ("promotion_s", "plain_s", "served_s", "own_s", "rejoined_s"):
        values = sorted(getattr(one, what) for one in found)
        middle = values[len(values) // 2]
        lines.append(f"  {what}: {values[0]:.2f} to {values[-1]:.2f}, middle {middle:.2f}")
    return "\n".join(lines)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("is_strict", [False, True], ids=["synchronous", "strict"])
def test_a_lost_leader_takes_no_answered_write_with_it(tmp_path: Path, is_strict: bool) -> None:
    found: list[Failover] = []
    with PatroniCluster(tmp_path, is_strict=is_strict) as cluster:
        gateway = Gateway(cluster.url, tmp_path)
        try:
            gateway.wait(gateway.serves)
            for number in range(ROUNDS):
                found.append(leader_lost(cluster, gateway, f"load{number}"))
                assert found[-1].verdict.is_exact, found[-1]
        finally:
            gateway.stop()
            print(summary("strict" if is_strict else "synchronous", found) if found else "")
    # No exact time: that of a busy machine is not foreseeable.
    assert min(one.own_s for one in found) < _OWN_S


@pytest.mark.timeout(600)
def test_the_default_times_of_patroni_lose_nothing_either(tmp_path: Path) -> None:
    """The database is away for longer than the 10 s after which gateways count as dead."""
    with (
        PatroniCluster(tmp_path, is_strict=False, times=DEFAULT) as cluster,
        balanced("haproxy", cluster.url, tmp_path) as behind,
    ):
        load = HttpLoad(behind.services, "load")
        with PlainWriter(cluster.url) as plain:
            load.acknowledges(_WRITES)
            leader = cluster.leader()
            serving = behind.serving()
            killed = time.monotonic()
            leader.kill()
            load.acknowledges(_WRITES)
            served_s, plain_s = load.gap_s(killed), plain.gap_s(killed)
        load.stop()
        verdict = load.verdict()
        is_same = behind.serving() is serving
    print(f"default times: {served_s:.1f} s against {plain_s:.1f} s of a plain client, {verdict}")
    print("the same gateway serves" if is_same else "the other gateway serves")
    assert verdict.is_exact, verdict
    assert plain_s > _OUTAGE_S
