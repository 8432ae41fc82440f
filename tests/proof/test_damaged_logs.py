"""The long proof that damage in a log is distinguished from the results of a power cut.

Every frame of a log is damaged, and the store refuses each time. After hundreds of power cuts, with
any sectors kept, it never refuses. Some follow a commit that a full disk rolled back.
"""

from __future__ import annotations

import asyncio
import random
import shutil
from pathlib import Path
from typing import BinaryIO

import pytest

from strongroom.clock import ManualClock
from strongroom.engines.embedded.disk.directory import Damaged, DirectoryLayout
from strongroom.engines.embedded.log import checkpoints
from strongroom.engines.embedded.log import gate as log_gate
from strongroom.engines.embedded.log.check import LogVerdict, examine_log
from strongroom.engines.embedded.log.wal_format import FRAME_HEAD_BYTES
from strongroom.engines.embedded.records.bound_pages import PAGE_BYTES
from strongroom.engines.embedded.store import EmbeddedOptions, open_store
from strongroom.testing.contract.subject import face, put
from tests.engines.full_log_rounds import roll_back_and_cut_power
from tests.engines.logs import flipped, frame_at, judged
from tests.engines.power_cut_rounds import run_round
from tests.engines.torn_logs import LEFTOVERS, tear

CUTS = 500
_COMMITS = 50
_OPTIONS = EmbeddedOptions(ballast_bytes=64 * 1024)
_FRAME_BYTES = PAGE_BYTES + FRAME_HEAD_BYTES
_system_chance = random.SystemRandom()


async def _killed(directory: Path) -> Path:
    """A directory in which a server was killed after commits of all sizes, the last one of few
    frames."""
    chance = random.Random(3)
    store = await open_store(directory / "source", ManualClock(), options=_OPTIONS)
    for number in range(_COMMITS):
        count = chance.choice((1, 1, 2, 5, 12)) if number < _COMMITS - 1 else 1
        for_each = [
            (face(b"%d %d" % (number, one)), chance.randbytes(2000)) for one in range(count)
        ]
        await put(store, *for_each)
    data = directory / "data"
    shutil.copytree(directory / "source", data)
    await store.close()
    return data


async def _open(data: Path) -> None:
    store = await open_store(data, ManualClock(), options=_OPTIONS)
    await store.close()


@pytest.mark.timeout(900)
def test_a_flip_in_any_frame_before_the_last_commit_is_refused(tmp_path: Path) -> None:
    data = asyncio.run(_killed(tmp_path))
    log = Path(DirectoryLayout(str(data)).log)
    whole = log.read_bytes()
    frames = judged(whole, PAGE_BYTES).frames
    # The last commit begins where cutting one frame leaves no more to cut.
    last = next(
        number
        for number in range(frames, 0, -1)
        if judged(whole[: frame_at(number, PAGE_BYTES)], PAGE_BYTES).cut_frames == 0
    )
    assert 64 < last - 1 < frames
    for number in range(1, last):
        at = frame_at(number, PAGE_BYTES) + _system_chance.randrange(_FRAME_BYTES)
        log.write_bytes(flipped(whole, at, _system_chance.randrange(8)))
        with pytest.raises(Damaged, match=f"is damaged at frame {number} of {frames}"):
            asyncio.run(_open(data))
        for field_at in range(0, FRAME_HEAD_BYTES, 4):
            at = frame_at(number, PAGE_BYTES) + field_at + _system_chance.randrange(4)
            harmed = flipped(whole, at, _system_chance.randrange(8))
            assert judged(harmed, PAGE_BYTES).is_lost, (number, at)
    log.write_bytes(whole)
    asyncio.run(_open(data))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("leftovers", LEFTOVERS)
def test_of_2000_torn_commits_none_is_taken_for_damage(leftovers: str, tmp_path: Path) -> None:
    seed = _system_chance.getrandbits(32)
    print("seed", seed)
    assert tear(tmp_path, leftovers, random.Random(seed), rounds=CUTS) > CUTS


@pytest.mark.timeout(1800)
def test_no_start_is_refused_after_500_power_cuts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log begins again all the time, so that old frames lie under the new ones."""
    verdicts: list[LogVerdict] = []

    def noted(file: BinaryIO, page_bytes: int) -> LogVerdict:
        verdicts.append(examine_log(file, page_bytes))
        return verdicts[-1]

    monkeypatch.setattr(log_gate, "examine_log", noted)
    first = _system_chance.getrandbits(32)
    for seed in range(first, first + CUTS // 5):
        # Up to eight images of each round are opened, and one that is refused fails the round. A
        # few of them have no log.
        monkeypatch.setattr(checkpoints, "PASSIVE_PAGES", (2, 40)[seed % 2])
        directory = tmp_path / str(seed)
        directory.mkdir()
        assert run_round(directory, seed, rounds=25) > 0
        shutil.rmtree(directory)
    assert len(verdicts) >= CUTS
    assert not any(verdict.is_lost for verdict in verdicts)
    assert sum(verdict.cut_frames > 0 for verdict in verdicts) > CUTS // 20, "some were torn"


@pytest.mark.timeout(1800)
def test_no_start_is_refused_after_a_rollback_on_a_full_disk_and_500_power_cuts(
    tmp_path: Path,
) -> None:
    full = 0
    for number in range(42):
        first = _system_chance.getrandbits(32)
        directory = tmp_path / f"{number}-{first}"
        directory.mkdir()
        seeds = (0, 1, *range(first, first + 10))
        full += roll_back_and_cut_power(directory, number % 21, seeds)
        shutil.rmtree(directory)
    assert full > 20
