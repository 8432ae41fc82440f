"""A task in every view without the mouse.

The focus is seen wherever it stops, and a dialog gives it back to where it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from uuid import uuid4

import pytest
from azure.data.tables import TableClient, UpdateMode
from playwright.sync_api import expect

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_NAME
from strongroom.coordination import connect
from tests.conformance.client import PUT_BLOB, Client
from tests.conformance.sas import account_sas
from tests.interop.console.browsers import Console
from tests.interop.console.conftest import KEY, Served
from tests.interop.console.keys import (
    activate,
    confirm_by_name,
    focused,
    must_be_on,
    press,
    press_until,
    type_into,
)
from tests.interop.console.table_windows import address, cell, editor, entity, field, new_table

pytestmark = pytest.mark.timeout(300)

_CONFIRM = "Type the name to confirm"


@pytest.fixture
def table(served: Served) -> Iterator[TableClient]:
    with new_table(served.server.connection_string) as client:
        yield client


def sign_in(console: Console, path: str, heading: str) -> None:
    """Sign in with keys alone."""
    console.open(path)
    console.button("Use the development account").wait_for()
    activate(console, "Use the development account")
    expect(console.heading(heading)).to_be_focused()


def must_be_at(console: Console, place: str) -> None:
    """Wait until the heading of a place has the focus: it takes it after the place is drawn."""
    expect(console.page.get_by_role("heading", name=place, level=2)).to_be_focused()


def must_be_somewhere(console: Console) -> None:
    """Assert that the focus did not fall to the beginning of the page."""
    console.page.wait_for_timeout(300)
    assert focused(console)["tag"] not in ("BODY", "HTML")


def test_overview(console: Console) -> None:
    sign_in(console, "/overview", "Overview")
    activate(console, "Show key")
    expect(console.page.get_by_text(f"AccountKey={KEY.key};")).to_be_visible()
    must_be_on(console, "Hide key")
    press(console, "Enter")
    must_be_on(console, "Show key")
    press_until(console, "Python")
    press(console, "ArrowRight")
    expect(console.page.get_by_role("tabpanel", name="JavaScript")).to_be_visible()
    must_be_on(console, "JavaScript")


def test_blobs(console: Console, served: Served) -> None:
    name = f"keys-{uuid4().hex[:8]}"
    sign_in(console, "/blobs", "Blobs")
    activate(console, "New container")
    must_be_on(console, "Container name")
    press(console, "Escape")
    must_be_on(console, "New container")
    press(console, "Enter")
    type_into(field(console, "Container name"), name)
    press(console, "Enter")
    must_be_on(console, "New container")
    console.page.get_by_role("link", name=name, exact=True).wait_for()
    assert served.client.put(f"/{name}/b.txt", PUT_BLOB, b"text").status == 201
    activate(console, name)
    must_be_at(console, name)
    console.page.get_by_role("link", name="b.txt", exact=True).wait_for()
    activate(console, "b.txt")
    must_be_at(console, "b.txt")
    console.button("Acquire lease").wait_for()
    activate(console, "Acquire lease")
    must_be_on(console, "Duration")
    press(console, "Escape")
    must_be_on(console, "Acquire lease")
    press(console, "Enter")
    must_be_on(console, "Duration")
    press(console, "Enter")
    console.button("Renew lease").wait_for()
    must_be_somewhere(console)
    activate(console, "Release lease")
    console.button("Acquire lease").wait_for()
    must_be_somewhere(console)
    activate(console, "Delete")
    confirm_by_name(field(console, _CONFIRM), "b.txt")
    expect(console.page.get_by_text("Nothing here yet.")).to_be_visible()
    must_be_somewhere(console)
    activate(console, "Delete")
    must_be_on(console, _CONFIRM)
    press(console, "Escape")
    must_be_on(console, "Delete")
    press(console, "Enter")
    confirm_by_name(field(console, _CONFIRM), name)
    console.page.get_by_role("heading", name="Containers").wait_for()
    must_be_somewhere(console)
    assert served.client.head(f"/{name}?restype=container").status == 404


def test_queues(console: Console, served: Served) -> None:
    client = Client(int(served.server.queue_url.rpartition(":")[2]), KEY)
    name = f"keys-{uuid4().hex[:8]}"
    sign_in(console, "/queues", "Queues")
    activate(console, "New queue")
    type_into(field(console, "Queue name"), name)
    press(console, "Enter")
    must_be_on(console, "New queue")
    console.page.get_by_role("link", name=name, exact=True).wait_for()
    activate(console, name)
    console.button("Put").wait_for()
    press_until(console, "Message")
    type_into(field(console, "Message"), "by keys")
    activate(console, "Put")
    expect(field(console, "Message")).to_have_value("")
    press_until(console, "Peek", "Shift+Tab")
    press(console, "Enter")
    message = console.page.get_by_role("listitem").filter(has_text="by keys")
    expect(message).to_be_visible()
    activate(console, "Get")
    expect(message.get_by_role("timer")).to_be_visible()
    activate(console, "Update")
    console.page.get_by_role("dialog").wait_for()
    press(console, "Escape")
    must_be_on(console, "Update")
    activate(console, "Delete")
    expect(message).to_have_count(0)
    must_be_somewhere(console)
    press_until(console, f"Delete {name}", "Shift+Tab")
    press(console, "Enter")
    confirm_by_name(field(console, _CONFIRM), name)
    console.button("New queue").wait_for()
    must_be_somewhere(console)
    assert client.get(f"/{name}?comp=metadata").status == 404
    client.close()


def test_tables(console: Console, table: TableClient) -> None:
    sign_in(console, address(table), "Tables")
    activate(console, "Add entity")
    type_into(field(console, "PartitionKey"), "p")
    press(console, "Tab")
    type_into(field(console, "RowKey"), "r")
    activate(console, "New property")
    press_until(console, "Property name")
    type_into(field(console, "Property name"), "State")
    press_until(console, "Value")
    type_into(console.page.get_by_role("dialog").get_by_label("Value", exact=True), "old")
    press(console, "Enter")
    must_be_on(console, "Add entity")
    cell(console, "old").wait_for()
    console.page.keyboard.press("Tab")
    while not console.page.evaluate("Boolean(document.activeElement.closest('[role=grid]'))"):
        console.page.keyboard.press("Tab")
    press(console, "ArrowRight", "ArrowRight", "ArrowRight")
    expect(cell(console, "old")).to_be_focused()
    assert focused(console)["isSeen"]
    press(console, "Enter")
    type_into(editor(console), "new")
    press(console, "Enter")
    expect(cell(console, "new")).to_be_focused()
    assert table.get_entity("p", "r")["State"] == "new"
    table.update_entity(entity("p", "r", State="theirs"), UpdateMode.MERGE)
    press(console, "Enter")
    type_into(editor(console), "mine")
    press(console, "Enter")
    dialog = console.page.get_by_role("dialog", name="Conflict")
    dialog.wait_for()
    activate(console, "Keep mine")
    expect(dialog).to_have_count(0)
    expect(cell(console, "mine")).to_be_focused()
    assert table.get_entity("p", "r")["State"] == "mine"
    press(console, "Delete")
    must_be_on(console, _CONFIRM)
    press(console, "Escape")
    expect(cell(console, "mine")).to_be_focused()
    press(console, "Delete")
    confirm_by_name(field(console, _CONFIRM), "r")
    expect(console.page.get_by_text("No entity yet.")).to_be_visible()
    must_be_somewhere(console)


def test_coordination(console: Console, served: Served) -> None:
    container = f"keys{uuid4().hex[:8]}"
    store = f"{served.server.url}/{DEVELOPMENT_ACCOUNT_NAME}/{container}"
    served.client.put(f"/{container}?restype=container")
    with connect(store, label="holder") as client:
        client.gate("go").open()
        held = client.lock("by-keys", ttl=60, alert=True).acquire()
        sign_in(console, f"/coordination/{container}", "Coordination")
        console.button("Break by-keys").wait_for()
        activate(console, "Break by-keys")
        must_be_on(console, _CONFIRM)
        press(console, "Escape")
        must_be_on(console, "Break by-keys")
        press(console, "Enter")
        confirm_by_name(field(console, _CONFIRM), "by-keys")
        assert held.lost.wait(60)
        expect(console.button("Break by-keys")).to_have_count(0)
        must_be_somewhere(console)
        press_until(console, "Re-arm go", "Shift+Tab")
        press(console, "Enter")
        expect(console.page.get_by_text("closed", exact=True)).to_be_visible()


def test_requests(console: Console, served: Served) -> None:
    served.client.get("/keys-alone/missing")
    sign_in(console, "/requests", "Requests")
    press_until(console, "Filter requests")
    type_into(field(console, "Filter requests"), "keys-alone")
    # The rows of before go when the filter is applied, a moment after the last key.
    expect(console.page).to_have_url(re.compile("filter=keys-alone"))
    table = console.page.get_by_role("table", name="Requests", exact=True)
    expect(table.get_by_role("row").filter(has_text="/keys-alone").first).to_be_visible()
    activate(console, "Get Blob")
    region = console.page.get_by_role("region", name="Request", exact=True)
    expect(region).to_be_focused()
    region.get_by_role("heading", name="Replay").wait_for()
    press_until(console, "curl")
    press_until(console, "Close", "Shift+Tab")
    press(console, "Enter")
    expect(region).to_be_hidden()
    must_be_somewhere(console)


def test_access(console: Console, served: Served) -> None:
    token = account_sas(KEY, ss="b", srt="o", sp="r")
    sign_in(console, "/access", "Access")
    press_until(console, "SAS")
    type_into(field(console, "SAS"), f"{served.server.url}/{KEY.account}/c/b?{token}")
    activate(console, "Explain")
    region = console.page.get_by_role("region", name="Explanation", exact=True)
    expect(region).to_be_focused()
    expect(region).to_contain_text("signature right")
    press_until(console, "Explain", "Shift+Tab")
    press_until(console, "SAS", "Shift+Tab")
    type_into(field(console, "SAS"), "neither sig nor sv")
    press(console, "Enter")
    expect(region).to_be_hidden()
    must_be_somewhere(console)
    press_until(console, "Policies of")
    press(console, "ArrowDown")
    expect(field(console, "Policies of")).to_have_value("queue")
    must_be_somewhere(console)
