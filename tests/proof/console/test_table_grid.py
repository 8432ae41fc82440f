"""The grid of a table: filters, columns, keys, files, and what a signature permits."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import (
    EdmType,
    EntityProperty,
    TableClient,
    TableSasPermissions,
    generate_table_sas,
)
from playwright.sync_api import expect

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME
from tests.interop.console.browsers import Console
from tests.interop.console.conftest import Served
from tests.interop.console.table_windows import address, cell, entity, field, new_table

_BIG = 9007199254740993
_MARKUP = "<img src=x onerror=alert(1)>'\"&"
_CREDENTIAL = AzureNamedKeyCredential(DEVELOPMENT_ACCOUNT_NAME, DEVELOPMENT_ACCOUNT_KEY)


@pytest.fixture
def table(served: Served) -> Iterator[TableClient]:
    with new_table(served.server.connection_string) as client:
        yield client


def test_the_filter_is_text_or_a_form_and_stays_in_the_address(
    console: Console, table: TableClient
) -> None:
    for number, name in enumerate(("O'Hara", "M\u00fcller & S\u00f6hne", "+1 100%")):
        table.create_entity(
            entity("p", str(number), Name=name, Big=EntityProperty(_BIG + number, EdmType.INT64))
        )
    console.sign_in(address(table))
    for text, found in (("Name eq 'O''Hara'", "O'Hara"), ("Name eq '+1 100%'", "+1 100%")):
        field(console, "Filter").fill(text)
        console.button("Apply").click()
        expect(console.page.get_by_role("grid").get_by_role("row")).to_have_count(2)
        expect(cell(console, found)).to_be_visible()
    field(console, "Filter").fill("")
    console.button("Apply").click()
    expect(console.page.get_by_role("grid").get_by_role("row")).to_have_count(4)
    console.page.get_by_text("Build a condition").click()
    field(console, "Property").select_option("Big")
    field(console, "Value").fill(str(_BIG + 1))
    console.button("Append condition").click()
    expect(console.page.get_by_role("grid").get_by_role("row")).to_have_count(2)
    console.page.reload()
    console.button("Use the development account").click()
    expect(cell(console, "M\u00fcller & S\u00f6hne")).to_be_visible()
    expect(field(console, "Filter")).to_have_value(f"Big eq {_BIG + 1}L")
    field(console, "Filter").fill("Big eq")
    console.button("Apply").click()
    expect(console.page.get_by_role("alert").filter(has_text="InvalidInput")).to_contain_text(
        "request "
    )


def test_columns_are_chosen(console: Console, table: TableClient) -> None:
    table.create_entity(entity("p", "r", First=1, Second=2))
    console.sign_in(address(table))
    console.page.get_by_text("Columns (2 of 2)").click()
    console.page.get_by_role("checkbox", name="First").uncheck()
    expect(console.page.get_by_role("columnheader", name="First")).to_have_count(0)
    expect(console.page.get_by_role("columnheader", name="Second")).to_be_visible()


def test_the_keyboard_does_all_that_the_grid_can(console: Console, table: TableClient) -> None:
    rows = 600
    for start in range(0, rows, 100):
        operations = [
            ("upsert", entity("p", f"{number:04}", Count=number))
            for number in range(start, start + 100)
        ]
        table.submit_transaction(operations)
    console.sign_in(address(table))
    grid = console.page.get_by_role("grid")
    expect(grid).to_have_attribute("aria-rowcount", "501")
    press = console.page.keyboard.press
    cell(console, "0000").click()
    press("Control+End")
    expect(console.button("Delete 0499")).to_be_focused()
    press("ArrowLeft")
    expect(cell(console, "499")).to_be_focused()
    assert grid.get_by_role("row").count() < 60
    press("Home")
    expect(cell(console, "p").last).to_be_focused()
    press("ArrowRight")
    press("ArrowUp")
    expect(cell(console, "0498")).to_be_focused()
    press("Enter")  # a key is never edited
    expect(grid.get_by_role("textbox")).to_have_count(0)
    press("Control+ArrowUp")
    expect(cell(console, "0000")).to_be_focused()
    press("PageDown")
    expect(cell(console, "0000")).not_to_be_focused()
    press("Tab")
    assert console.page.evaluate("document.activeElement.closest('[role=grid]')") is None
    console.button("Next page").click()
    expect(cell(console, "0500")).to_be_attached()
    expect(grid).to_have_attribute("aria-rowcount", "101")
    console.button("Previous page").click()
    expect(grid).to_have_attribute("aria-rowcount", "501")


def test_an_export_is_whole_and_comes_back_unchanged(
    console: Console, table: TableClient, tmp_path: Path
) -> None:
    text = 'a,"b"\r\n\n ' + _MARKUP
    for start in range(0, 1300, 100):
        operations = [
            ("upsert", entity("p", f"{number:04}", Count=number))
            for number in range(start, start + 100)
        ]
        table.submit_transaction(operations)
    table.upsert_entity(
        entity(
            "q'",
            "r",
            Text=text,
            Empty="",
            Big=EntityProperty(_BIG, EdmType.INT64),
            Whole=2.0,
            Raw=b"\xff",
        )
    )
    before = [dict(one) for one in table.list_entities()]
    console.sign_in(address(table))
    for format_ in ("CSV", "JSON"):
        path = exported(console, format_, tmp_path)
        for one in before:
            table.delete_entity(one["PartitionKey"], one["RowKey"])
        imported(console, path)
        expect(console.page.get_by_text(f"{len(before):,} entities were imported.")).to_have_count(
            1
        )
        assert [dict(one) for one in table.list_entities()] == before
        console.page.get_by_role("button", name="Dismiss").last.click()
    assert isinstance(table.get_entity("q'", "r")["Whole"], float)


def exported(console: Console, format_: str, folder: Path) -> Path:
    console.button("Export").click()
    field(console, "Format").select_option(format_)
    with console.page.expect_download() as download:
        console.page.get_by_role("dialog").get_by_role("button", name="Export").click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    expect(console.page.get_by_role("dialog")).to_have_count(0)
    with path.open(encoding="utf-8", newline="") as file:
        count = len(json.load(file)) if format_ == "JSON" else len(list(csv.DictReader(file)))
    assert count == 1301
    return path


def imported(console: Console, path: Path) -> None:
    console.button("Import").click()
    field(console, "CSV or JSON file").set_input_files(path)
    console.page.get_by_role("dialog").get_by_role("button", name="Import").click()


def test_an_import_stops_at_what_is_refused_and_says_where(
    console: Console, table: TableClient, tmp_path: Path
) -> None:
    table.create_entity(entity("p", "2", State="there"))
    path = tmp_path / "some.csv"
    path.write_text("PartitionKey,RowKey,State\np,1,new\np,2,new\n", encoding="utf-8")
    console.sign_in(address(table))
    imported(console, path)
    alert = console.page.get_by_role("dialog").get_by_role("alert")
    expect(alert).to_contain_text('PartitionKey "p", RowKey "2"')
    expect(alert).to_contain_text("EntityAlreadyExists")
    assert table.get_entity("p", "2")["State"] == "there"
    field(console, "Where an entity is there already").select_option("replace")
    console.page.get_by_role("dialog").get_by_role("button", name="Import").click()
    expect(console.page.get_by_role("dialog")).to_have_count(0)
    assert [one["State"] for one in table.list_entities()] == ["new", "new"]


def test_a_signature_for_one_table_opens_it(console: Console, table: TableClient) -> None:
    table.create_entity(entity("p", "r", State="by signature"))
    expiry = datetime.now(UTC) + timedelta(hours=1)
    permissions = TableSasPermissions(read=True)
    sas = generate_table_sas(_CREDENTIAL, table.table_name, permission=permissions, expiry=expiry)
    console.open("/tables")
    field(console, "SAS URL").fill(f"{table.url}/{table.table_name}?{sas}")
    field(console, "SAS URL").press("Enter")
    expect(cell(console, "by signature")).to_be_visible()
    cell(console, "by signature").click()
    expect(cell(console, "by signature")).to_be_focused()
    console.page.keyboard.press("Enter")
    expect(console.page.get_by_role("grid").get_by_role("textbox")).to_have_count(0)
    expect(console.button("Add entity")).to_be_disabled()
    expect(console.button("Import")).to_be_disabled()
    console.link("Queues").click()
    expect(console.page.get_by_text("needs a sign-in for the Queue service")).to_be_visible()
