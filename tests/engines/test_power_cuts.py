"""A power cut loses and tears nothing that was shown. More in tests/proof."""

from __future__ import annotations

from pathlib import Path

import pytest

from strongroom.engines.embedded.commit import commit_thread
from strongroom.engines.embedded.log import checkpoints
from strongroom.engines.embedded.log.checkpoints import Checkpointer
from tests.effort import scaled
from tests.engines import power_cut_rounds
from tests.engines.disks.disk import Disk, DiskFiles
from tests.engines.power_cut_rounds import run_round


@pytest.mark.parametrize("quick_s", [60.0, commit_thread.QUICK_S])
@pytest.mark.parametrize("seed", range(scaled(18)))
def test_nothing_shown_is_lost_or_torn(
    seed: int, quick_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_thread, "QUICK_S", quick_s)
    assert run_round(tmp_path, seed, rounds=25) > 0


def test_nor_where_the_log_is_written_over_all_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun_again: list[bool] = []
    restart = Checkpointer._restart

    def noted(checkpointer: Checkpointer) -> None:
        restart(checkpointer)
        begun_again.append(True)

    monkeypatch.setattr(checkpoints, "PASSIVE_PAGES", 2)
    monkeypatch.setattr(Checkpointer, "_restart", noted)
    for seed in range(12):
        directory = tmp_path / str(seed)
        directory.mkdir()
        assert run_round(directory, seed, rounds=25) > 0
    # Some lives end too early for a restart of the log; most of many do not.
    assert len(begun_again) > 12


class _LyingFiles(DiskFiles):
    """Files whose syncs do nothing."""

    def sync(self, descriptor: int) -> None:
        return


class _LyingDisk(Disk):
    """A disk on which SQLite's syncs do nothing."""

    def synced(self, path: str) -> None:
        if path.endswith(".seg"):
            super().synced(path)


@pytest.mark.parametrize("lie", ["segments", "records"])
def test_the_judge_notices_what_was_not_synced(
    lie: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if lie == "segments":
        monkeypatch.setattr(power_cut_rounds, "DiskFiles", _LyingFiles)
    else:
        monkeypatch.setattr(power_cut_rounds, "Disk", _LyingDisk)
    caught = 0
    for seed in range(8):
        directory = tmp_path / str(seed)
        directory.mkdir()
        try:
            run_round(directory, seed, rounds=25)
        except Exception:
            caught += 1
    assert caught >= 4
