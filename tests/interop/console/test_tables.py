"""Tables in the console: made, filled and edited by two people at once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from azure.data.tables import EdmType, EntityProperty, TableClient, UpdateMode
from playwright.sync_api import expect

from tests.interop.console.browsers import Console, schemes
from tests.interop.console.conftest import NewConsole, Served
from tests.interop.console.keys import type_into
from tests.interop.console.table_windows import (
    address,
    cell,
    edit,
    editor,
    entity,
    field,
    new_table,
)

_BIG = 9007199254740993
_MARKUP = "<img src=x onerror=alert(1)>'\"&"


@pytest.fixture
def table(served: Served) -> Iterator[TableClient]:
    with new_table(served.server.connection_string) as client:
        yield client


def test_a_table_is_made_filled_and_deleted(console: Console, served: Served) -> None:
    name = f"Made{uuid4().hex[:12]}"
    console.sign_in("/tables")
    expect(console.heading("Tables")).to_be_visible()
    console.button("New table").click()
    field(console, "Table name").fill(name)
    console.button("Create").click()
    console.page.get_by_role("link", name=name).click()
    console.button("Add entity").click()
    field(console, "PartitionKey").fill("it's")
    field(console, "RowKey").fill("50% & +")
    console.button("New property").click()
    field(console, "Property name").fill("Big")
    dialog = console.page.get_by_role("dialog")
    dialog.get_by_label("Value").fill(str(_BIG))
    dialog.get_by_label("Type").select_option("Int64")
    console.button("Add").click()
    expect(cell(console, str(_BIG))).to_be_visible()
    with TableClient.from_connection_string(served.server.connection_string, name) as client:
        assert client.get_entity("it's", "50% & +")["Big"] == (_BIG, EdmType.INT64)
    console.button("Delete 50% & +").click()
    expect(console.button("Confirm")).to_be_disabled()
    field(console, "Type the name to confirm").fill("50% & +")
    console.button("Confirm").click()
    expect(console.page.get_by_text("No entity yet.")).to_be_visible()
    console.page.get_by_role("link", name="All tables").click()
    row = console.page.get_by_role("row").filter(has_text=name)
    row.get_by_role("button", name="Delete").click()
    field(console, "Type the name to confirm").fill(name)
    console.button("Confirm").click()
    expect(row).to_have_count(0)


def test_an_edit_changes_one_value_and_no_type(console: Console, table: TableClient) -> None:
    properties = {
        "Text": _MARKUP,
        "Whole": 3.0,
        "Small": 5,
        "Big": EntityProperty(_BIG, EdmType.INT64),
        "Yes": True,
        "Raw": b"\x00\xff",
        "When": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    }
    table.create_entity(entity("it's", "a'b", **properties))
    console.sign_in(address(table))
    edit(console, _MARKUP, "plain")
    expect(cell(console, "plain")).to_be_focused()
    expect(console.page.get_by_text("The change was saved.")).to_be_visible()
    edit(console, str(_BIG), str(_BIG + 2))
    expect(console.page.get_by_text("The change was saved.")).to_have_count(2)
    edit(console, "3.0", "4")
    expect(cell(console, "4.0")).to_be_visible()
    found = table.get_entity("it's", "a'b")
    big = EntityProperty(_BIG + 2, EdmType.INT64)
    assert dict(found) == entity(
        "it's", "a'b", **{**properties, "Text": "plain", "Whole": 4.0, "Big": big}
    )
    assert isinstance(found["Whole"], float)


def test_escape_leaves_a_cell_as_it_was_and_a_refused_value_is_said(
    console: Console, table: TableClient
) -> None:
    table.create_entity(entity("p", "r", Count=1))
    console.sign_in(address(table))
    cell(console, "1").click()
    console.page.keyboard.press("Enter")
    type_into(editor(console), "99")
    console.page.keyboard.press("Escape")
    expect(cell(console, "1")).to_be_focused()
    edit(console, "1", "many")
    expect(console.page.get_by_role("alert").filter(has_text="InvalidInput")).to_contain_text(
        "request "
    )
    assert table.get_entity("p", "r")["Count"] == 1


def test_a_value_gets_another_type_and_is_removed(console: Console, table: TableClient) -> None:
    table.create_entity(entity("p", "r", Count=1, Note="two\nlines"))
    console.sign_in(address(table))
    cell(console, "1").dblclick()
    field(console, "Type of Count").select_option("Int64")
    field(console, "Type of Count").press("Enter")
    expect(console.page.get_by_text("The change was saved.")).to_be_visible()
    assert table.get_entity("p", "r")["Count"] == (1, EdmType.INT64)
    cell(console, "two lines").dblclick()
    expect(field(console, "Value of Note")).to_have_value("two\nlines")
    field(console, "Type of Note").select_option("no value")
    field(console, "Type of Note").press("Enter")
    expect(console.page.get_by_role("columnheader", name="Note")).to_have_count(0)
    assert "Note" not in table.get_entity("p", "r")


def test_two_people_edit_one_cell_and_the_second_chooses(
    new_console: NewConsole, table: TableClient
) -> None:
    table.create_entity(entity("p", "r", State="old", Other="same"))
    first, second = new_console(), new_console()
    for console in (first, second):
        console.sign_in(address(table))
        cell(console, "old").wait_for()
    edit(first, "old", "first")
    expect(first.page.get_by_text("The change was saved.")).to_be_visible()
    edit(second, "old", "second")
    dialog = second.page.get_by_role("dialog", name="Conflict")
    versions = dialog.get_by_role("row").filter(has_text="State").get_by_role("cell")
    expect(versions.nth(0)).to_contain_text("second")
    expect(versions.nth(1)).to_contain_text("first")
    assert table.get_entity("p", "r")["State"] == "first"
    # Others write once more while the person chooses: the newest version is shown, none is lost.
    table.update_entity(entity("p", "r", State="third", Other="new"), UpdateMode.MERGE)
    dialog.get_by_role("button", name="Keep mine").click()
    expect(versions.nth(1)).to_contain_text("third")
    assert table.get_entity("p", "r")["State"] == "third"
    dialog.get_by_role("button", name="Keep mine").click()
    expect(dialog).to_have_count(0)
    assert dict(table.get_entity("p", "r")) == entity("p", "r", State="second", Other="new")


def test_their_version_is_taken(console: Console, table: TableClient) -> None:
    table.create_entity(entity("p", "r", State="old"))
    console.sign_in(address(table))
    cell(console, "old").wait_for()
    table.update_entity(entity("p", "r", State="theirs"), UpdateMode.REPLACE)
    edit(console, "old", "mine")
    console.button("Take theirs").click()
    expect(cell(console, "theirs")).to_be_visible()
    assert table.get_entity("p", "r")["State"] == "theirs"


def test_an_entity_that_was_deleted_meanwhile_is_kept_or_left(
    console: Console, table: TableClient
) -> None:
    for row_key in ("kept", "left"):
        table.create_entity(entity("p", row_key, State=f"old {row_key}", Other=7))
    console.sign_in(address(table))
    cell(console, "old kept").wait_for()
    for row_key in ("kept", "left"):
        table.delete_entity("p", row_key)
    edit(console, "old kept", "mine")
    console.button("Keep mine").click()
    expect(cell(console, "mine")).to_be_visible()
    edit(console, "old left", "mine too")
    console.button("Take theirs").click()
    expect(cell(console, "left")).to_have_count(0)
    assert [dict(one) for one in table.list_entities()] == [
        entity("p", "kept", State="mine", Other=7)
    ]


def test_nothing_is_deleted_that_changed_meanwhile(console: Console, table: TableClient) -> None:
    table.create_entity(entity("p", "r", State="old"))
    console.sign_in(address(table))
    cell(console, "old").wait_for()
    table.update_entity(entity("p", "r", State="new"), UpdateMode.REPLACE)
    cell(console, "old").press("Delete")
    field(console, "Type the name to confirm").fill("r")
    console.button("Confirm").click()
    expect(console.page.get_by_role("dialog").get_by_role("alert")).to_contain_text(
        "was not deleted"
    )
    assert table.get_entity("p", "r")["State"] == "new"


@pytest.mark.parametrize("scheme", schemes("dark"))
def test_axe_finds_nothing_serious_and_nothing_is_wider_than_a_phone(
    new_console: NewConsole, table: TableClient, scheme: str
) -> None:
    table.create_entity(entity("p", "r", State="old", Long="x" * 500, Count=1))
    console = new_console(color_scheme=scheme, viewport={"width": 360, "height": 740})
    console.sign_in("/tables")
    console.page.get_by_role("link", name=table.table_name).wait_for()
    assert console.serious_findings() == []
    console.page.get_by_role("link", name=table.table_name).click()
    cell(console, "old").wait_for()
    assert console.serious_findings() == []
    main = "document.querySelector('main')"
    assert console.page.evaluate(f"{main}.scrollWidth <= {main}.clientWidth")
    table.update_entity(entity("p", "r", State="theirs"), UpdateMode.MERGE)
    cell(console, "old").dblclick()
    assert console.serious_findings() == []
    type_into(editor(console), "mine")
    console.page.keyboard.press("Enter")
    console.page.get_by_role("dialog", name="Conflict").wait_for()
    assert console.serious_findings() == []
