"""The page of errors is up to date, and its advice is about errors that there are."""

from __future__ import annotations

from strongroom.errors import core as errors
from tests.tidy import errors_page


def test_the_page_is_the_one_that_the_table_makes() -> None:
    written = errors_page.PAGE.read_text(encoding="utf-8")
    assert written == errors_page.page(), "run: python -m tests.tidy.errors_page"


def test_every_error_is_on_the_page_by_its_text() -> None:
    page = errors_page.page()
    assert len(errors.table()) > 200
    for row in errors.table():
        assert f"| `{row.code}` | {row.status} | {' '.join(row.message.split())} |" in page


def test_advice_is_given_for_errors_of_the_table_only() -> None:
    assert {*errors_page.ADVICE} - {row.code for row in errors.table()} == set()
