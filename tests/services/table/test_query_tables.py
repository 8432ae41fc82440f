"""Query Tables on a store in memory: pages, filters, and the number of records read."""

from __future__ import annotations

from typing import Any

import pytest

from strongroom.auth.request import Service
from strongroom.engines.base import Page
from strongroom.semantics.table import table_filter
from strongroom.services.core.runner import Services
from strongroom.services.table import tables
from strongroom.services.table.tables import CreateTable, QueryTables
from tests.services import container_calls as given

EVERY = [f"{letter}{number:03}" for letter in "aBc" for number in range(300)]


async def filled() -> Services:
    on = given.services()
    for name in EVERY:
        asked = given.call(CreateTable(name), container=name, service=Service.TABLE)
        await tables.create_table(on, asked)
    return on


async def pages(on: Services, text: str, top: int) -> list[list[str]]:
    """Return the pages of a query, as a client follows them."""
    found: list[list[str]] = []
    first: str | None = ""
    while first is not None:
        asked: Any = QueryTables(table_filter.parse(text) if text else None, top, first)
        page = await tables.query_tables(on, given.call(asked, service=Service.TABLE))
        found.append(page.names)
        first = page.resume
    return found


@pytest.mark.parametrize("top", [1, 7, 299, 300, 301, 899, 900, 1000])
def test_pages_hold_every_table_once(top: int) -> None:
    async def scenario() -> None:
        on = await filled()
        found = await pages(on, "", top)
        assert [name for page in found for name in page] == EVERY
        assert all(len(page) <= top for page in found)

    given.run(scenario)


FILTERS = {
    "TableName eq 'B007'": ["B007"],
    "TableName ge 'c298'": ["c298", "c299"],
    "TableName eq 'a000' or TableName eq 'B150' or TableName eq 'c299'": ["a000", "B150", "c299"],
    "TableName lt 'a003' and TableName ge 'a'": ["a000", "a001", "a002"],
    "TableName eq 'none'": [],
}


@pytest.mark.parametrize("text", FILTERS)
@pytest.mark.parametrize("top", [1, 2, 3, 1000])
def test_filtered_pages_hold_every_match_once(text: str, top: int) -> None:
    async def scenario() -> None:
        found = await pages(await filled(), text, top)
        assert [name for page in found for name in page] == FILTERS[text]
        assert all(len(page) <= top for page in found)

    given.run(scenario)


def test_a_filter_that_matches_little_reads_in_large_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        on = await filled()
        scan, wanted = on.store.scan, []

        async def counted(*arguments: Any) -> Page:
            wanted.append(arguments[3])
            return await scan(*arguments)

        monkeypatch.setattr(on.store, "scan", counted)
        assert await pages(on, "TableName eq 'c299'", 1) == [["c299"]]
        assert len(wanted) <= 3

    given.run(scenario)
