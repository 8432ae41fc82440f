"""Shares, directories, files and their opens without the mouse."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from playwright.sync_api import expect

from tests.interop.console.browsers import Console
from tests.interop.console.file_windows import (
    FilesServed,
    address,
    files_server,
    make_directory,
    put_file,
    stored,
)
from tests.interop.console.keys import (
    activate,
    confirm_by_name,
    must_be_on,
    press,
    press_until,
    type_into,
)
from tests.interop.console.smb_opens import open_with_lease, smb_session
from tests.interop.console.table_windows import field
from tests.proof.console.test_keyboard import must_be_at, must_be_somewhere, sign_in

pytestmark = pytest.mark.timeout(300)

_CONFIRM = "Type the name to confirm"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FilesServed]:
    with files_server(tmp_path_factory.mktemp("keys") / "data") as running:
        yield running


@pytest.fixture
def share(served: FilesServed) -> str:
    name = f"keys-{uuid4().hex[:8]}"
    assert served.client.put(f"/{name}?restype=share").status == 201
    return name


def delete(console: Console, button: str, name: str) -> None:
    """Ask for a deletion, think better of it, and ask again."""
    press_until(console, button, "Shift+Tab")
    press(console, "Enter")
    must_be_on(console, _CONFIRM)
    press(console, "Escape")
    must_be_on(console, button)
    press(console, "Enter")
    confirm_by_name(field(console, _CONFIRM), name)


def test_a_share_and_a_directory(console: Console, served: FilesServed, tmp_path: Path) -> None:
    name, file = f"keys-{uuid4().hex[:8]}", tmp_path / "up.txt"
    file.write_bytes(b"by keys")
    sign_in(console, "/files", "Files")
    activate(console, "New share")
    must_be_on(console, "Share name")
    press(console, "Escape")
    must_be_on(console, "New share")
    press(console, "Enter")
    type_into(field(console, "Share name"), name)
    press(console, "Enter")
    must_be_on(console, "New share")
    console.page.get_by_role("link", name=name, exact=True).wait_for()
    activate(console, name)
    must_be_at(console, name)
    activate(console, "New directory")
    type_into(field(console, "Directory name"), "d")
    press(console, "Enter")
    must_be_on(console, "New directory")
    console.page.get_by_role("link", name="d/", exact=True).wait_for()
    activate(console, "d/")
    must_be_at(console, "d/")
    with console.page.expect_file_chooser() as chooser:
        activate(console, "Upload")
    chooser.value.set_files(file)
    console.page.get_by_role("link", name="up.txt", exact=True).wait_for()
    must_be_somewhere(console)
    assert stored(served, f"/{name}/d/up.txt") == b"by keys"
    with console.page.expect_file_chooser() as chooser:
        press_until(console, "Upload", "Shift+Tab")
        press(console, "Enter")
    file.write_bytes(b"again")
    chooser.value.set_files(file)
    console.page.get_by_role("dialog").wait_for()
    activate(console, "Replace")
    expect(console.page.get_by_text("uploaded")).to_have_count(2)
    must_be_somewhere(console)
    assert stored(served, f"/{name}/d/up.txt") == b"again"
    activate(console, "up.txt")
    must_be_at(console, "up.txt")
    delete(console, "Delete", "up.txt")
    expect(console.page.get_by_text("Nothing here yet.")).to_be_visible()
    must_be_somewhere(console)
    delete(console, "Delete", "d")
    console.button(f"Delete {name}").wait_for()
    must_be_somewhere(console)
    delete(console, f"Delete {name}", name)
    console.button("New share").wait_for()
    must_be_somewhere(console)
    assert served.client.head(f"/{name}?restype=share").status == 404


def test_the_properties_of_a_file(console: Console, served: FilesServed, share: str) -> None:
    put_file(served, f"/{share}/f.txt", b"text")
    sign_in(console, address(share, "f.txt") + "?kind=file", "Files")
    console.button("Acquire lease").wait_for()
    press_until(console, "Properties")
    press(console, "ArrowRight")
    must_be_on(console, "Attributes and headers")
    press_until(console, "Hidden")
    press(console, "Space")
    activate(console, "Save attributes and times")
    expect(console.page.get_by_text("The properties were saved.")).to_be_visible()
    must_be_somewhere(console)
    press_until(console, "Add row")
    press(console, "Enter")
    press_until(console, "Name", "Shift+Tab")
    type_into(field(console, "Name"), "owner")
    press(console, "Tab")
    type_into(field(console, "Value"), "vault")
    press(console, "Enter")
    expect(console.page.get_by_text("The metadata was saved.")).to_be_visible()
    must_be_somewhere(console)
    found = served.client.head(f"/{share}/f.txt")
    assert found.get("x-ms-file-attributes") == "Hidden | Archive"
    assert found.get("x-ms-meta-owner") == "vault"
    press_until(console, "Rename", "Shift+Tab")
    press(console, "Enter")
    type_into(field(console, "New path"), "g.txt")
    press(console, "Enter")
    console.page.get_by_role("heading", name="g.txt", level=2, exact=True).wait_for()
    must_be_somewhere(console)
    assert stored(served, f"/{share}/g.txt") == b"text"


def test_a_handle_is_closed(console: Console, served: FilesServed, share: str) -> None:
    make_directory(served, f"/{share}/d")
    put_file(served, f"/{share}/d/f.txt", b"text of a file")
    with smb_session(served.smb_port):
        open_with_lease(served.smb_port, share, r"d\f.txt")
        sign_in(console, address(share), "Files")
        press_until(console, "Files")  # the tab: the links of the navigation come before the focus
        press(console, "ArrowLeft")
        must_be_on(console, "Open handles")
        console.button("Close handle").wait_for()
        activate(console, "d/f.txt")
        # Until the page knows that it is a file, it is shown as "f.txt/".
        heading = console.page.get_by_role("heading", name="f.txt", level=2, exact=True)
        expect(heading).to_be_focused()
        press_until(console, "Properties")
        press(console, "ArrowLeft")
        must_be_on(console, "Opens and locks")
        console.button("Close handle").wait_for()
        activate(console, "Close handle")
        expect(console.page.get_by_text("The handle was closed.")).to_be_visible()
        expect(console.page.get_by_text("Nobody has this file open.")).to_be_visible()
        must_be_somewhere(console)
