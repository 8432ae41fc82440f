"""The long proof of durability: 200 kills of each workload under concurrent load, every
acknowledged write verified. It prints how many there were."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from strongroom.engines.embedded.upkeep.check import Inspection
from strongroom.store.integrity import Integrity
from tests.durability.rounds import (
    BLOBS,
    FILES,
    QUEUES,
    RETAINED,
    TABLES,
    VERSIONS,
    Workload,
    files_of_both_protocols,
    kill_rounds,
)
from tests.durability.smb_workload import MixedWorker

ROUNDS = 200
WORKLOADS = {
    "blobs": BLOBS,
    "versions": VERSIONS,
    "deleted and kept": RETAINED,
    "messages": QUEUES,
    "entities": TABLES,
    "files": FILES,
}


def killed(data: Path, name: str, workload: Workload) -> int:
    """Kill a server `ROUNDS` times; return the number of acknowledged writes, of which none is
    lost."""
    seed = random.SystemRandom().getrandbits(32)
    acknowledged, lost = kill_rounds(data, ROUNDS, seed, workload)
    print(f"{name}: {ROUNDS} kills, {acknowledged} acknowledged, {len(lost)} lost, seed {seed}")
    assert lost == []
    return acknowledged


@pytest.mark.parametrize("name", WORKLOADS)
def test_200_kills_lose_nothing(tmp_path: Path, name: str) -> None:
    assert killed(tmp_path / "data", name, WORKLOADS[name]) > ROUNDS


def test_200_kills_lose_no_file_that_both_protocols_write(tmp_path: Path) -> None:
    workers: list[MixedWorker] = []
    data = tmp_path / "data"
    acknowledged = killed(data, "files of both protocols", files_of_both_protocols(workers))
    over_smb = sum(worker.smb_acknowledged for worker in workers)
    assert over_smb > ROUNDS and acknowledged - over_smb > ROUNDS
    with Inspection(data) as inspection:
        assert list(Integrity(inspection).findings()) == []
