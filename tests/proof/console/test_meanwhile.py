"""What a person has begun stays theirs while others write: previews, rows, choices, downloads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from azure.data.tables import TableClient, UpdateMode
from playwright.sync_api import Download, Locator, expect

from tests.conformance.client import PUT_BLOB, Client
from tests.interop.console import file_windows
from tests.interop.console.blob_windows import address, blobs_table
from tests.interop.console.browsers import Console
from tests.interop.console.conftest import KEY, Served
from tests.interop.console.table_windows import address as table_address
from tests.interop.console.table_windows import cell, edit, editor, entity, new_table
from tests.interop.console.test_blobs import hold

pytestmark = pytest.mark.timeout(300)

MIB = 1024 * 1024


@pytest.fixture
def container(served: Served) -> str:
    name = f"meanwhile-{uuid4().hex[:8]}"
    assert served.client.put(f"/{name}?restype=container").status == 201
    return name


@pytest.fixture
def table(served: Served) -> Iterator[TableClient]:
    with new_table(served.server.connection_string) as client:
        yield client


def put(served: Served, path: str, content: bytes, **headers: str) -> None:
    assert served.client.put(path, {**PUT_BLOB, **headers}, content).status == 201


def must_be_polled(console: Console, part: str) -> None:
    """Wait until the page has asked twice more for what is shown, and drawn the first answer."""
    for _ in range(2):
        with console.page.expect_response(lambda one: part in one.url):
            pass


def test_a_preview_offers_what_others_wrote(
    console: Console, served: Served, container: str
) -> None:
    put(served, f"/{container}/b.txt", b"as it was")
    console.sign_in(address(container, "b.txt"))
    preview = console.page.get_by_role("region", name="Preview", exact=True)
    expect(preview).to_contain_text("as it was")
    put(served, f"/{container}/b.txt", b"as others wrote it")
    expect(preview.get_by_role("button", name="Reload")).to_be_visible()
    expect(preview).to_contain_text("as it was")
    expect(preview).not_to_contain_text("as others wrote it")
    preview.get_by_role("button", name="Reload").click()
    expect(preview).to_contain_text("as others wrote it")
    expect(preview.get_by_role("button", name="Reload")).to_have_count(0)


def test_typed_rows_of_metadata_stay(console: Console, served: Served, container: str) -> None:
    put(served, f"/{container}/b.txt", b"text", **{"x-ms-meta-owner": "vault"})
    console.sign_in(f"{address(container, 'b.txt')}?tab=metadata")
    form = console.page.get_by_role("form", name="Metadata", exact=True)
    value = form.get_by_label("Value", exact=True)
    expect(value).to_have_value("vault")
    value.fill("mine")
    must_be_polled(console, f"{container}/b.txt")
    expect(value).to_have_value("mine")
    metadata = f"/{container}/b.txt?comp=metadata"
    assert served.client.put(metadata, {"x-ms-meta-owner": "theirs"}).status == 200
    expect(form).to_contain_text("owner: theirs")
    expect(value).to_have_value("mine")
    expect(form.get_by_role("button", name="Save")).to_be_disabled()
    form.get_by_role("button", name="Keep mine").click()
    must_be_polled(console, f"{container}/b.txt")
    expect(value).to_have_value("mine")
    assert served.client.head(f"/{container}/b.txt").get("x-ms-meta-owner") == "theirs"
    form.get_by_role("button", name="Save").click()
    expect(console.page.get_by_text("The metadata was saved.")).to_be_visible()
    assert served.client.head(f"/{container}/b.txt").get("x-ms-meta-owner") == "mine"


def test_who_cancels_a_conflict_goes_on_with_the_edit(console: Console, table: TableClient) -> None:
    table.create_entity(entity("p", "r", State="old"))
    console.sign_in(table_address(table))
    cell(console, "old").wait_for()
    table.update_entity(entity("p", "r", State="theirs"), UpdateMode.MERGE)
    edit(console, "old", "mine")
    dialog = console.page.get_by_role("dialog", name="Conflict")
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_have_count(0)
    expect(editor(console)).to_be_focused()
    expect(editor(console)).to_have_value("mine")
    assert table.get_entity("p", "r")["State"] == "theirs"
    console.page.keyboard.press("Escape")
    expect(editor(console)).to_have_count(0)
    expect(cell(console, "old")).to_be_focused()
    assert table.get_entity("p", "r")["State"] == "theirs"


def drop(console: Console, *names: str) -> None:
    """Drop files that hold their own name."""
    files = console.page.evaluate_handle(
        """(names) => {
          const data = new DataTransfer();
          for (const name of names) data.items.add(new File([`new ${name}`], name));
          return data;
        }""",
        list(names),
    )
    console.page.locator(".drop-area").dispatch_event("drop", {"dataTransfer": files})


def test_two_drops_that_overlap_are_two_questions(console: Console, served: Served) -> None:
    client = Client(int(served.server.file_url.rpartition(":")[2]), KEY)
    share = f"drops-{uuid4().hex[:8]}"
    assert client.put(f"/{share}?restype=share").status == 201
    for name in ("a", "b"):
        made = {**file_windows.FILE, "x-ms-content-length": "0"}
        assert client.put(f"/{share}/{name}", made).status == 201
    console.sign_in(file_windows.address(share))
    table = file_windows.files_table(console)
    table.get_by_role("link", name="a", exact=True).wait_for()
    let_go = hold(console, f"/{share}/a")  # the first drop is still looked up
    drop(console, "a", "new-1")
    drop(console, "b", "new-2")
    dialog = console.page.get_by_role("dialog")
    expect(dialog.get_by_role("listitem")).to_have_text(["b"])
    let_go()
    dialog.get_by_role("button", name="Upload the others only").click()
    expect(dialog.get_by_role("listitem")).to_have_text(["a"])
    dialog.get_by_role("button", name="Replace", exact=True).click()
    expect(dialog).to_have_count(0)
    expect(console.page.get_by_text("uploaded")).to_have_count(3)
    found = {name: client.get(f"/{share}/{name}").body for name in ("a", "b", "new-1", "new-2")}
    assert found == {"a": b"new a", "b": b"", "new-1": b"new new-1", "new-2": b"new new-2"}
    client.close()


def test_a_cancelled_download_saves_nothing_and_can_begin_again(
    console: Console, served: Served, container: str
) -> None:
    content = os.urandom(9 * MIB)
    put(served, f"/{container}/large.bin", content)
    console.sign_in(address(container))
    blobs_table(console).get_by_role("link", name="large.bin", exact=True).click()
    console.page.get_by_role("region", name="Preview", exact=True).get_by_text(
        "00000000"
    ).wait_for()
    saved: list[Download] = []
    console.page.on("download", lambda one: saved.append(one))
    let_go = hold(console, f"{container}/large.bin")
    console.button("Download").click()
    cancel: Locator = console.button("Cancel")
    cancel.click()
    expect(cancel).to_have_count(0)
    expect(console.button("Download")).to_be_enabled()
    let_go()
    must_be_polled(console, f"{container}/large.bin")
    assert saved == []
    expect(console.page.get_by_role("alert").filter(has_text="request")).to_have_count(0)
    with console.page.expect_download() as download:
        console.button("Download").click()
    assert Path(download.value.path()).read_bytes() == content
    assert len(saved) == 1
