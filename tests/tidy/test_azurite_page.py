"""The table of Azurite's flags is the one that the declaration makes."""

from __future__ import annotations

from strongroom_azurite.flags import FLAGS
from tests.tidy import azurite_page


def test_the_table_is_the_one_that_the_declaration_makes() -> None:
    written = azurite_page.PAGE.read_text(encoding="utf-8")
    assert azurite_page.BEGIN in written and azurite_page.END in written
    assert written == azurite_page.page(written), "run: python -m tests.tidy.azurite_page"


def test_every_flag_has_a_row() -> None:
    rows = azurite_page.table().splitlines()[2:]
    assert len(rows) == len(FLAGS)
    for flag, row in zip(FLAGS, rows, strict=True):
        assert f"--{flag.name}" in row and flag.ours in row and flag.remark in row


def test_a_changed_table_is_noticed() -> None:
    written = azurite_page.PAGE.read_text(encoding="utf-8")
    assert azurite_page.page(written.replace("| flag |", "| flags |", 1)) == written
