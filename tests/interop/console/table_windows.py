"""What tests of tables do in a window of the console, and the table beside it.

Lives here: finding cells and fields, an edit as a person makes it. Must not live here: what is
expected (test_tables.py, test_table_grid.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from azure.data.tables import TableClient, TableServiceClient
from playwright.sync_api import Locator, expect

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_NAME
from tests.interop.console.browsers import Console
from tests.interop.console.keys import type_into


@contextmanager
def new_table(connection_string: str) -> Iterator[TableClient]:
    """Provide a table with a name of its own, as a program beside the browser sees it."""
    service = TableServiceClient.from_connection_string(connection_string)
    with service, service.create_table(f"t{uuid4().hex[:12]}") as client:
        yield client


def address(table: TableClient) -> str:
    return f"/tables/{DEVELOPMENT_ACCOUNT_NAME}/{table.table_name}"


def cell(console: Console, text: str) -> Locator:
    return console.page.get_by_role("gridcell", name=text, exact=True)


def field(console: Console, name: str) -> Locator:
    return console.page.get_by_label(name, exact=True)


def editor(console: Console) -> Locator:
    """The field of the cell that is edited."""
    return console.page.get_by_role("grid").get_by_role("textbox")


def edit(console: Console, before: str, after: str) -> None:
    """Change a cell's text as a person does: choose it, press Enter, type, press Enter."""
    cell(console, before).click()
    expect(cell(console, before)).to_be_focused()
    console.page.keyboard.press("Enter")
    type_into(editor(console), after)
    console.page.keyboard.press("Enter")


def entity(partition_key: str, row_key: str, **properties: Any) -> dict[str, Any]:
    return {"PartitionKey": partition_key, "RowKey": row_key, **properties}
