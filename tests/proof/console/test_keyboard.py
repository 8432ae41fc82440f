"""A task in every view without the mouse.

The focus is seen wherever it stops, and a dialog gives it back to where it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest
from azure.data.tables import TableClient, UpdateMode
from playwright.sync_api import expect

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_NAME
from strongroom.coordination import connect
from tests.conformance.client import PUT_BLOB, Client
from tests.interop.console.browsers import Console
from tests.interop.console.conftest import KEY, Served
from tests.interop.console.keys import activate, focused, press, press_until, type_text
from tests.interop.console.table_windows import address, cell, entity, new_table

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def table(served: Served) -> Iterator[TableClient]:
    with new_table(served.server.connection_string) as client:
        yield client


def sign_in(console: Console, path: str, heading: str) -> None:
    """Sign in with keys alone."""
    console.open(path)
    console.button("Use the development account").wait_for()
    activate(console, "Use the development account")
    console.heading(heading).wait_for()


def must_be_on(console: Console, name: str) -> None:
    """Wait until the focus is on what is named so."""
    for _ in range(200):
        if focused(console)["name"] == name:
            return
        console.page.wait_for_timeout(25)
    raise AssertionError(f"the focus is on {focused(console)['name'][:80]!r}, not on {name!r}")


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
    must_be_on(console, "Container name")
    type_text(console, name)
    press(console, "Enter")
    must_be_on(console, "New container")
    console.page.get_by_role("link", name=name, exact=True).wait_for()
    assert served.client.put(f"/{name}/b.txt", PUT_BLOB, b"text").status == 201
    activate(console, name)
    console.page.get_by_role("link", name="b.txt", exact=True).wait_for()
    activate(console, "b.txt")
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
    must_be_on(console, "Type the name to confirm")
    type_text(console, "b.txt")
    press(console, "Enter")
    expect(console.page.get_by_text("Nothing here yet.")).to_be_visible()
    must_be_somewhere(console)
    activate(console, "Delete")
    must_be_on(console, "Type the name to confirm")
    press(console, "Escape")
    must_be_on(console, "Delete")
    press(console, "Enter")
    must_be_on(console, "Type the name to confirm")
    type_text(console, name)
    press(console, "Enter")
    console.page.get_by_role("heading", name="Containers").wait_for()
    must_be_somewhere(console)
    assert served.client.head(f"/{name}?restype=container").status == 404


def test_queues(console: Console, served: Served) -> None:
    client = Client(int(served.server.queue_url.rpartition(":")[2]), KEY)
    name = f"keys-{uuid4().hex[:8]}"
    sign_in(console, "/queues", "Queues")
    activate(console, "New queue")
    must_be_on(console, "Queue name")
    type_text(console, name)
    press(console, "Enter")
    must_be_on(console, "New queue")
    console.page.get_by_role("link", name=name, exact=True).wait_for()
    activate(console, name)
    console.button("Put").wait_for()
    press_until(console, "Message")
    type_text(console, "by keys")
    activate(console, "Put")
    console.heading("Queues").wait_for()
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
    type_text(console, name)
    press(console, "Enter")
    console.button("New queue").wait_for()
    must_be_somewhere(console)
    assert client.get(f"/{name}?comp=metadata").status == 404
    client.close()


def test_tables(console: Console, table: TableClient) -> None:
    sign_in(console, address(table), "Tables")
    activate(console, "Add entity")
    must_be_on(console, "PartitionKey")
    type_text(console, "p")
    press(console, "Tab")
    type_text(console, "r")
    activate(console, "New property")
    press_until(console, "Property name")
    type_text(console, "State")
    press_until(console, "Value")
    type_text(console, "old")
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
    type_text(console, "new")
    press(console, "Enter")
    expect(cell(console, "new")).to_be_focused()
    assert table.get_entity("p", "r")["State"] == "new"
    table.update_entity(entity("p", "r", State="theirs"), UpdateMode.MERGE)
    press(console, "Enter")
    type_text(console, "mine")
    press(console, "Enter")
    dialog = console.page.get_by_role("dialog", name="Conflict")
    dialog.wait_for()
    activate(console, "Keep mine")
    expect(dialog).to_have_count(0)
    expect(cell(console, "mine")).to_be_focused()
    assert table.get_entity("p", "r")["State"] == "mine"
    press(console, "Delete")
    must_be_on(console, "Type the name to confirm")
    press(console, "Escape")
    expect(cell(console, "mine")).to_be_focused()
    press(console, "Delete")
    type_text(console, "r")
    press(console, "Enter")
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
        must_be_on(console, "Type the name to confirm")
        press(console, "Escape")
        must_be_on(console, "Break by-keys")
        press(console, "Enter")
        must_be_on(console, "Type the name to confirm")
        type_text(console, "by-keys")
        press(console, "Enter")
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
    type_text(console, "keys-alone")
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
