"""Acknowledged writes survive SIGKILL; the long version is in tests/proof."""

from __future__ import annotations

import json
from pathlib import Path

from strongroom.engines.embedded.upkeep.check import Inspection
from strongroom.store.integrity import Integrity
from tests.cli.command import in_process
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


def test_nothing_acknowledged_is_lost_when_the_server_is_killed(tmp_path: Path) -> None:
    acknowledged, lost = kill_rounds(tmp_path / "data", rounds=2, seed=1)
    assert lost == []
    assert acknowledged > 0


def test_no_version_is_lost_when_the_server_is_killed(tmp_path: Path) -> None:
    """B-VER-01, B-VER-13: each acknowledged version has its content, and doctor finds nothing."""
    data = tmp_path / "data"
    acknowledged, lost = kill_rounds(data, rounds=2, seed=4, workload=VERSIONS)
    assert lost == []
    assert acknowledged > 0
    checked = in_process("doctor", data, "--json")
    assert checked.code == 0, checked.out
    assert json.loads(checked.out)["whole"]


def test_what_is_deleted_and_kept_comes_back_after_kills(tmp_path: Path) -> None:
    """B-SFT-01, B-SFT-06: each acknowledged deletion can be undone, and doctor finds nothing."""
    data = tmp_path / "data"
    acknowledged, lost = kill_rounds(data, rounds=1, seed=5, workload=RETAINED)
    assert lost == []
    assert acknowledged > 0
    checked = in_process("doctor", data, "--json")
    assert checked.code == 0, checked.out
    assert json.loads(checked.out)["whole"]


def test_no_message_is_lost_when_the_server_is_killed(tmp_path: Path) -> None:
    """Q-GET-07, Q-POP-05: put ones are there, deleted ones are not, got ones come back."""
    acknowledged, lost = kill_rounds(tmp_path / "data", rounds=2, seed=2, workload=QUEUES)
    assert lost == []
    assert acknowledged > 0


def test_no_entity_is_lost_or_torn_when_the_server_is_killed(tmp_path: Path) -> None:
    """T-BAT-02, T-WRI-07: a transaction in progress was applied completely or not at all."""
    acknowledged, lost = kill_rounds(tmp_path / "data", rounds=2, seed=3, workload=TABLES)
    assert lost == []
    assert acknowledged > 0


def test_no_file_is_lost_or_torn_when_the_server_is_killed(tmp_path: Path) -> None:
    """F-CRA-01, F-CPY-05: a change or copy in progress was applied completely or not at all."""
    acknowledged, lost = kill_rounds(tmp_path / "data", rounds=2, seed=4, workload=FILES)
    assert lost == []
    assert acknowledged > 0
    with Inspection(tmp_path / "data") as inspection:
        assert list(Integrity(inspection).findings()) == []


def test_no_file_is_lost_or_torn_when_both_protocols_write(tmp_path: Path) -> None:
    """F-CRA-01: over SMB too, each answered write is durable, and doctor finds nothing."""
    workers: list[MixedWorker] = []
    data, workload = tmp_path / "data", files_of_both_protocols(workers)
    acknowledged, lost = kill_rounds(data, rounds=2, seed=6, workload=workload)
    assert lost == []
    over_smb = sum(worker.smb_acknowledged for worker in workers)
    assert 0 < over_smb < acknowledged
    with Inspection(data) as inspection:
        assert list(Integrity(inspection).findings()) == []
