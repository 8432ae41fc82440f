"""The long proof of durability: 200 kills under concurrent load, every acknowledged write
verified."""

from __future__ import annotations

import random
from pathlib import Path

from strongroom.engines.embedded.check import Inspection
from strongroom.store.integrity import Integrity
from tests.durability.rounds import (
    FILES,
    QUEUES,
    RETAINED,
    TABLES,
    VERSIONS,
    files_of_both_protocols,
    kill_rounds,
)
from tests.durability.smb_workload import MixedWorker

ROUNDS = 200


def test_200_kills_lose_nothing(tmp_path: Path) -> None:
    seed = random.SystemRandom().getrandbits(32)
    acknowledged, lost = kill_rounds(tmp_path / "data", ROUNDS, seed)
    assert lost == []
    assert acknowledged > ROUNDS


def test_200_kills_lose_no_version(tmp_path: Path) -> None:
    seed = random.SystemRandom().getrandbits(32)
    acknowledged, lost = kill_rounds(tmp_path / "data", ROUNDS, seed, VERSIONS)
    assert lost == []
    assert acknowledged > ROUNDS


def test_200_kills_lose_nothing_that_is_deleted_and_kept(tmp_path: Path) -> None:
    seed = random.SystemRandom().getrandbits(32)
    acknowledged, lost = kill_rounds(tmp_path / "data", ROUNDS, seed, RETAINED)
    assert lost == []
    assert acknowledged > ROUNDS


def test_200_kills_lose_no_message(tmp_path: Path) -> None:
    seed = random.SystemRandom().getrandbits(32)
    acknowledged, lost = kill_rounds(tmp_path / "data", ROUNDS, seed, QUEUES)
    assert lost == []
    assert acknowledged > ROUNDS


def test_200_kills_lose_no_entity(tmp_path: Path) -> None:
    seed = random.SystemRandom().getrandbits(32)
    acknowledged, lost = kill_rounds(tmp_path / "data", ROUNDS, seed, TABLES)
    assert lost == []
    assert acknowledged > ROUNDS


def test_200_kills_lose_no_file(tmp_path: Path) -> None:
    seed = random.SystemRandom().getrandbits(32)
    acknowledged, lost = kill_rounds(tmp_path / "data", ROUNDS, seed, FILES)
    assert lost == []
    assert acknowledged > ROUNDS


def test_200_kills_lose_no_file_that_both_protocols_write(tmp_path: Path) -> None:
    seed = random.SystemRandom().getrandbits(32)
    workers: list[MixedWorker] = []
    data, workload = tmp_path / "data", files_of_both_protocols(workers)
    acknowledged, lost = kill_rounds(data, ROUNDS, seed, workload)
    assert lost == []
    over_smb = sum(worker.smb_acknowledged for worker in workers)
    assert over_smb > ROUNDS and acknowledged - over_smb > ROUNDS
    with Inspection(data) as inspection:
        assert list(Integrity(inspection).findings()) == []
