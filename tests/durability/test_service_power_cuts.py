"""A power cut loses no state that an answer has shown; the long version is in tests/proof."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from strongroom.engines.embedded.commit.serial_point import SerialPoint
from strongroom.engines.embedded.disk.directory import Damaged
from tests.durability import power_cuts
from tests.durability.power_cut_kept import KeptPlay
from tests.durability.power_cut_queues import QueuePlay
from tests.durability.power_cut_tables import TablePlay
from tests.durability.power_cuts import Play, run_round
from tests.engines.disks.disk import Disk

PLAYS = [TablePlay, QueuePlay]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("play", PLAYS)
def test_what_answers_have_shown_is_kept(
    play: Callable[[], Play], seed: int, tmp_path: Path
) -> None:
    """T-WRI-07, T-WRI-09, T-BAT-02, Q-GET-07, Q-POP-05: acknowledged, refused, or read."""
    assert run_round(tmp_path, seed, 25, play) > 0


def test_what_soft_delete_keeps_is_kept(tmp_path: Path) -> None:
    """B-SFT-01 to B-SFT-08: displaced states come back until their retention ends, no longer."""
    assert run_round(tmp_path, 4, 25, KeptPlay) > 0


class _LyingDisk(Disk):
    """A disk on which syncs of the log do nothing."""

    def synced(self, path: str) -> None:
        if not path.endswith("-wal"):
            super().synced(path)


def _is_caught(directory: Path, play: Callable[[], Play]) -> bool:
    """Whether the judges find something in a few rounds: not every cut comes at a bad time."""
    for seed in range(50):
        place = directory / str(seed)
        place.mkdir()
        try:
            run_round(place, seed, 25, play)
        except (AssertionError, Damaged):  # the store may notice by itself that its log is damaged
            return True
    return False


@pytest.mark.parametrize("play", [*PLAYS, KeptPlay])
def test_the_judges_notice_what_was_not_synced(
    play: Callable[[], Play], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(power_cuts, "Disk", _LyingDisk)
    assert _is_caught(tmp_path, play)


@pytest.mark.parametrize("play", PLAYS)
def test_the_judges_notice_refusals_that_do_not_wait_for_the_sync(
    play: Callable[[], Play], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = SerialPoint._decide

    def at_once(self: SerialPoint, item: Any, decide: Any, group: Any) -> None:
        whole(self, item, decide, group)
        if group.answers and group.answers[-1][2] is not None:
            future, _, refusal = group.answers.pop()
            future.set_exception(refusal)

    monkeypatch.setattr(SerialPoint, "_decide", at_once)
    assert _is_caught(tmp_path, play)
