"""Pages that a disk lost, misplaced or changed: no request is answered wrongly, and all is found.

The long sweep, over every page, is in tests/proof.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from strongroom.engines.embedded.upkeep.backup import backup
from strongroom.engines.embedded.upkeep.check import check
from tests.durability import page_sweep as sweep
from tests.effort import stride


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stopped directory with long values, which a server has filled."""
    return sweep.filled(tmp_path_factory.mktemp("pages"))


@pytest.fixture(scope="module")
def backed_up(filled: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup of it."""
    target = tmp_path_factory.mktemp("backup") / "backup"
    backup(filled, target)
    return target


def test_no_request_shows_a_damaged_page(filled: Path, tmp_path: Path) -> None:
    """Each page of a sample is zeroed, replaced or changed, in turn."""
    pages = sweep.pages_of(filled)
    assert len(pages.used) > 60
    refused = 0
    harms = itertools.cycle(sweep.HARMS)
    for at in range(0, len(pages.used), 2 * stride() + 1):
        number, other = pages.used[at], pages.used[at - 1]
        path = sweep.damaged(filled, tmp_path / f"{number}", number, next(harms), other)
        refused += bool(sweep.ask_everything(path).refused)
    assert refused, "no damage was met by a request"


def test_doctor_and_backup_find_every_damaged_page(filled: Path, tmp_path: Path) -> None:
    pages = sweep.pages_of(filled)
    for at, harm in _trials(len(pages.used)):
        number, other = pages.used[at], pages.used[at - 1]
        path = sweep.damaged(filled, tmp_path / f"{number}-{harm.__name__}", number, harm, other)
        sweep.expect_found(path, tmp_path / "copy")


def test_doctor_and_restore_find_every_damaged_page_of_a_backup(
    backed_up: Path, tmp_path: Path
) -> None:
    pages = sweep.pages_of(backed_up)
    assert not pages.free
    for at, harm in _trials(len(pages.used)):
        number, other = pages.used[at], pages.used[at - 1]
        name = f"{number}-{harm.__name__}"
        path = sweep.damaged(backed_up, tmp_path / name, number, harm, other)
        sweep.expect_backup_refused(path, tmp_path / "copy")


def _trials(pages: int) -> list[tuple[int, sweep.Harm]]:
    return list(itertools.product(range(pages), sweep.HARMS))[:: stride()]


def test_a_free_page_is_no_damage_whatever_it_reads(filled: Path, tmp_path: Path) -> None:
    pages = sweep.pages_of(filled)
    assert len(pages.free) > 10
    for number in pages.free[:: stride()]:
        path = tmp_path / f"{number}"
        sweep.damaged(filled, path, number, sweep.replace, pages.used[number % len(pages.used)])
        assert list(check(path)) == []
        backup(path, tmp_path / f"{number}-backup")
        assert list(check(tmp_path / f"{number}-backup")) == []
