"""The long proof of durability: 200 kills under concurrent load, every acknowledged write
verified."""

from __future__ import annotations

import random
from pathlib import Path

from tests.durability.rounds import FILES, QUEUES, RETAINED, TABLES, VERSIONS, kill_rounds

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
