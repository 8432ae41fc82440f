"""The view of files for who signed in at an issuer: what the data role permits, and what not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from playwright.sync_api import Browser, expect
from smbprotocol.exceptions import SMBResponseException

from strongroom.testing.ports import free_port
from tests.interop.console.browsers import Console
from tests.interop.console.file_windows import (
    FilesServed,
    address,
    files_table,
    make_directory,
    put_file,
    stored,
    upload,
)
from tests.interop.console.keys import confirm_by_name
from tests.interop.console.smb_opens import open_with_lease, smb_session
from tests.proof.console.issuer_windows import (
    SignedInAt,
    issuer_and_server,
    issuer_window,
    sign_in,
)

pytestmark = pytest.mark.timeout(300)

WRITER, READER = "alice", "rita"
_ROLES = {
    WRITER: "Storage File Data Privileged Contributor",
    READER: "Storage File Data Privileged Reader",
}
_PIECE = 4 * 1024 * 1024


@pytest.fixture(scope="module")
def smb_port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, smb_port: int) -> Iterator[SignedInAt]:
    folder = tmp_path_factory.mktemp("file-tokens")
    smb = ("--smb", "--smb-port", str(smb_port))
    with issuer_and_server(folder, _ROLES, *smb) as running:
        yield running


@pytest.fixture(scope="module")
def served(place: SignedInAt, smb_port: int) -> Iterator[FilesServed]:
    client = place.client(place.server.file_url)
    yield FilesServed(place.server, place.url, client, smb_port)
    client.close()


@pytest.fixture
def share(served: FilesServed) -> str:
    name = f"tokens-{uuid4().hex[:8]}"
    assert served.client.put(f"/{name}?restype=share").status == 201
    return name


@pytest.fixture
def window(browser: Browser, place: SignedInAt) -> Iterator[Console]:
    with issuer_window(browser, place) as console:
        yield console


def test_files_are_listed_uploaded_downloaded_and_deleted(
    window: Console, place: SignedInAt, served: FilesServed, share: str, tmp_path: Path
) -> None:
    content = os.urandom(_PIECE + 5)
    file = tmp_path / "large.bin"
    file.write_bytes(content)
    make_directory(served, f"/{share}/d")
    put_file(served, f"/{share}/d/f.txt", b"text of a file")
    token = place.issue_for(WRITER)
    sign_in(window, place, address(share))
    files_table(window).get_by_role("link", name="d/", exact=True).click()
    table = files_table(window)
    expect(table.get_by_role("link", name="f.txt", exact=True)).to_be_visible()
    upload(window, file)
    table.get_by_role("link", name="large.bin", exact=True).click()
    assert stored(served, f"/{share}/d/large.bin") == content
    with window.page.expect_download() as download:
        window.button("Download").click()
    assert Path(download.value.path()).read_bytes() == content
    window.button("Rename").click()
    window.page.get_by_label("New path").fill("moved.bin")
    window.page.get_by_role("dialog").get_by_role("button", name="Rename").click()
    expect(window.page.get_by_role("heading", name="moved.bin", level=2)).to_be_visible()
    window.button("Delete").click()
    confirm_by_name(window.page.get_by_label("Type the name to confirm"), "moved.bin")
    expect(table.get_by_role("link", name="d/", exact=True)).to_be_visible()
    assert served.client.head(f"/{share}/moved.bin").status == 404
    assert token not in window.page.content()


def test_properties_and_a_lease_of_a_file(
    window: Console, place: SignedInAt, served: FilesServed, share: str
) -> None:
    put_file(served, f"/{share}/f.txt", b"text of a file")
    place.issue_for(WRITER)
    sign_in(window, place, address(share, "f.txt") + "?kind=file")
    preview = window.page.get_by_role("region", name="Preview", exact=True)
    expect(preview).to_contain_text("text of a file")
    window.button("Show permission").click()
    expect(window.page.get_by_text("D:")).to_be_visible()
    window.button("Acquire lease").click()
    window.button("Acquire").click()
    expect(window.page.get_by_text("leased", exact=True)).to_be_visible()
    window.page.get_by_role("tab", name="Attributes and headers").click()
    window.page.get_by_label("Language").fill("de")
    window.button("Save headers").click()
    expect(window.page.get_by_text("The properties were saved.")).to_be_visible()
    form = window.page.get_by_role("form", name="Metadata", exact=True)
    form.get_by_role("button", name="Add row").click()
    form.get_by_label("Name", exact=True).fill("owner")
    form.get_by_label("Value", exact=True).fill("vault")
    form.get_by_role("button", name="Save").click()
    expect(window.page.get_by_text("The metadata was saved.")).to_be_visible()
    window.button("Release lease").click()
    window.page.get_by_role("tab", name="Properties").click()
    expect(window.page.get_by_text("available", exact=True)).to_be_visible()
    found = served.client.head(f"/{share}/f.txt")
    assert (found.get("Content-Language"), found.get("x-ms-meta-owner")) == ("de", "vault")


def test_opens_of_smb_are_seen_and_closed(
    window: Console, place: SignedInAt, served: FilesServed, share: str
) -> None:
    put_file(served, f"/{share}/f.txt", b"text of a file")
    place.issue_for(WRITER)
    sign_in(window, place, address(share, "f.txt") + "?kind=file&tab=opens")
    expect(window.page.get_by_text("Nobody has this file open.")).to_be_visible()
    with smb_session(served.smb_port):
        held = open_with_lease(served.smb_port, share, "f.txt")
        opens = window.page.get_by_role("list", name="Opens", exact=True)
        expect(opens).to_contain_text("127.0.0.1:")
        expect(opens).to_contain_text("Read, Write")
        window.page.get_by_role("link", name=share, exact=True).click()
        window.page.get_by_role("tab", name="Open handles").click()
        row = window.page.get_by_role("listitem").filter(has_text="f.txt")
        expect(row).to_contain_text("127.0.0.1:")
        row.get_by_role("button", name="Close handle").click()
        expect(window.page.get_by_text("The handle was closed.")).to_be_visible()
        expect(row).to_have_count(0)
        with pytest.raises(SMBResponseException, match="STATUS_FILE_CLOSED"):
            held.lock(0, 1, is_exclusive=True)


def test_who_may_only_read_is_refused_in_the_servers_words(
    window: Console, place: SignedInAt, served: FilesServed, share: str, tmp_path: Path
) -> None:
    put_file(served, f"/{share}/f.txt", b"before")
    file = tmp_path / "f2.txt"
    file.write_bytes(b"after")
    place.issue_for(READER)
    sign_in(window, place, address(share))
    files_table(window).get_by_role("link", name="f.txt", exact=True).wait_for()
    upload(window, file)
    expect(window.page.get_by_text("AuthorizationPermissionMismatch")).to_be_visible()
    files_table(window).get_by_role("link", name="f.txt", exact=True).click()
    preview = window.page.get_by_role("region", name="Preview", exact=True)
    expect(preview).to_contain_text("before")
    window.button("Delete").click()
    confirm_by_name(window.page.get_by_label("Type the name to confirm"), "f.txt")
    alert = window.page.get_by_role("dialog").get_by_role("alert")
    expect(alert).to_contain_text("AuthorizationPermissionMismatch")
    assert stored(served, f"/{share}/f.txt") == b"before"
    assert served.client.head(f"/{share}/f2.txt").status == 404


def test_what_needs_another_role_says_so(
    window: Console, place: SignedInAt, served: FilesServed, share: str
) -> None:
    put_file(served, f"/{share}/f.txt", b"text of a file")
    place.issue_for(WRITER)
    sign_in(window, place, "/files")
    needed = window.page.get_by_role("alert").filter(has_text="Storage Account Contributor")
    expect(needed).to_be_visible()
    expect(window.page.get_by_text("add its name to this page's address")).to_be_visible()
    sign_in(window, place, address(share) + "?tab=settings")
    expect(needed).to_be_visible()
    window.page.get_by_role("tab", name="Files", exact=True).click()
    expect(files_table(window).get_by_role("link", name="f.txt", exact=True)).to_be_visible()
