"""Every page that is in use: zeroed, replaced by another one, and with a bit flipped."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.durability import page_sweep as sweep


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("harm", sweep.HARMS, ids=lambda harm: harm.__name__)
def test_no_request_shows_a_damaged_page(harm: sweep.Harm, tmp_path: Path) -> None:
    filled = sweep.filled(tmp_path)
    pages = sweep.pages_of(filled)
    refusing = 0
    for at, number in enumerate(pages.used):
        path = tmp_path / f"{number}"
        sweep.damaged(filled, path, number, harm, pages.used[at - 1])
        sweep.expect_found(path, tmp_path / "copy")
        refusing += bool(sweep.ask_everything(path).refused)
        shutil.rmtree(path)
    assert refusing > len(pages.used) // 2
