"""The practicum on a real etcd: with API v2, with API v3, with our own commands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.coordination.servers import EtcdCluster, etcd_cluster, program

SCRIPT = Path(__file__).parents[2] / "examples" / "etcd_practicum.py"
API_2 = r"""API v2
  \$ ETCDCTL_API=2 etcdctl set my-lock unlocked
    unlocked
  \$ ETCDCTL_API=2 etcdctl set --swap-with-value unlocked my-lock alice
    alice
  \$ ETCDCTL_API=2 etcdctl set --swap-with-value unlocked my-lock bob
    Error:  101: Compare failed \(\[unlocked != alice\]\) \[\d+\]
  \$ ETCDCTL_API=2 etcdctl set --swap-with-value alice my-lock unlocked
    unlocked
"""
API_3 = r"""API v3
(?:.*\n)*    FAILURE
    my-lock
    alice
(?:.*\n)*  > mod\("my-lock"\) = "\d+"
(?:.*\n)*    SUCCESS
    OK
"""
OURS = r"""strongroom
  \$ strongroom lock my-lock --store=etcd://.* &
    fence (\d+)
  \$ strongroom locks show my-lock .*
    my-lock: held by .*
(?:.*\n)*    strongroom: 'my-lock' is not free; held by .*
  \$ strongroom lock my-lock .*
    fence (\d+)
"""


def practise(cluster: EtcdCluster) -> str:
    program("etcdctl", "etcd-client")
    done = subprocess.run(
        [sys.executable, SCRIPT, cluster.members[0].address],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_three_ways(tmp_path: Path) -> None:
    with etcd_cluster(tmp_path, 1, "--enable-v2=true") as cluster:
        for _ in range(2):  # the second time finds what the first has left
            said = practise(cluster)
            found = re.fullmatch(API_2 + API_3 + OURS, said)
            assert found is not None, said
            assert int(found[1]) < int(found[2])


@pytest.mark.parametrize("members", [1, 3])
def test_without_api_2(tmp_path: Path, members: int) -> None:
    with etcd_cluster(tmp_path, members) as cluster:
        said = practise(cluster)
    assert "does not speak API v2" in said
    assert re.search(API_3 + OURS, said), said
