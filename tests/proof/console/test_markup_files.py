"""Markup in what a client of files chooses, and in a signature that is explained, is text."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote
from uuid import uuid4

import pytest
from playwright.sync_api import FilePayload, expect

from tests.conformance.sas import account_sas
from tests.interop.console.browsers import Console
from tests.interop.console.conftest import KEY
from tests.interop.console.file_windows import (
    FilesServed,
    address,
    files_server,
    files_table,
    make_directory,
    put_file,
)
from tests.interop.console.keys import escape
from tests.interop.console.smb_opens import open_with_lease, smb_session
from tests.interop.console.table_windows import field
from tests.proof.console.test_markup import IMAGE, LINK, MARKUP, SCRIPT, must_be_text, tab

pytestmark = pytest.mark.timeout(600)

# Names of files have none of " * : < > ? |, by the rules of SMB.
FILE_NAME = "img class=evil src=x onerror=window.ran=1 '&lt;img class=evil&gt;&#60;%3Cimg%3E;.csv"
# The texts of a condition are the client's own.
PERMISSION = f'O:SYG:SYD:(XA;;FA;;;WD;(@User.Title == "{IMAGE}"))'


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FilesServed]:
    with files_server(tmp_path_factory.mktemp("markup") / "data") as running:
        yield running


@pytest.fixture
def share(served: FilesServed) -> str:
    name = f"markup-{uuid4().hex[:8]}"
    assert served.client.put(f"/{name}?restype=share", {"x-ms-meta-m": MARKUP}).status == 201
    return name


def test_files(console: Console, served: FilesServed, share: str) -> None:
    folder = f"/{share}/{quote(FILE_NAME)}"
    make_directory(served, folder)
    headers = {
        "x-ms-meta-m": MARKUP,
        "x-ms-content-type": f"text/html;{IMAGE}",
        "x-ms-content-language": MARKUP,
        "x-ms-content-disposition": SCRIPT,
        "x-ms-cache-control": LINK,
        "x-ms-file-permission": PERMISSION,
    }
    content = f"a,b\n{IMAGE},{SCRIPT}\n{LINK},{MARKUP}\n".encode()
    put_file(served, f"{folder}/{quote(FILE_NAME)}", content, **headers)
    console.sign_in(address(share))
    must_be_text(console, FILE_NAME)
    tab(console, "Quota and lease")
    form = console.page.get_by_role("form", name="Metadata", exact=True)
    expect(form.get_by_label("Value")).to_have_value(MARKUP)
    must_be_text(console)
    tab(console, "Files")
    files_table(console).get_by_role("link", name=f"{FILE_NAME}/", exact=True).click()
    files_table(console).get_by_role("link", name=FILE_NAME, exact=True).click()
    must_be_text(console, FILE_NAME, MARKUP, SCRIPT, LINK)
    console.button("Show permission").click()
    must_be_text(console, PERMISSION)
    tab(console, "Attributes and headers")
    expect(form.get_by_label("Value")).to_have_value(MARKUP)
    must_be_text(console)
    for button in ("Rename", "Delete"):
        console.button(button).click()
        console.page.get_by_role("dialog").wait_for()
        must_be_text(console, FILE_NAME)
        escape(console)
    console.button("Rename").click()
    field(console, "New path").fill(MARKUP)
    console.page.get_by_role("dialog").get_by_role("button", name="Rename").click()
    expect(console.page.get_by_role("dialog").get_by_role("alert")).not_to_be_empty()
    must_be_text(console)
    escape(console)


def test_opens(console: Console, served: FilesServed, share: str) -> None:
    put_file(served, f"/{share}/{quote(FILE_NAME)}", b"text")
    with smb_session(served.smb_port):
        held = open_with_lease(served.smb_port, share, FILE_NAME)
        console.sign_in(f"{address(share)}?tab=handles")
        console.button("Close handle").wait_for()
        must_be_text(console, FILE_NAME)
        console.page.get_by_role("link", name=FILE_NAME, exact=True).click()
        tab(console, "Opens and locks")
        console.button("Close handle").wait_for()
        must_be_text(console, FILE_NAME)
        held.close()


def test_uploads_and_names_that_are_refused(
    console: Console, served: FilesServed, share: str
) -> None:
    put_file(served, f"/{share}/{quote(FILE_NAME)}", b"before")
    console.sign_in(address(share))
    upload = FilePayload(name=FILE_NAME, mimeType="text/html", buffer=SCRIPT.encode())
    console.page.get_by_label("Files to upload").set_input_files([upload])
    console.page.get_by_role("dialog").wait_for()
    must_be_text(console, FILE_NAME)
    console.button("Replace").click()
    expect(console.page.get_by_text("uploaded")).to_be_visible()
    must_be_text(console, FILE_NAME)
    for button, name in (("New directory", "Directory name"),):
        console.button(button).click()
        field(console, name).fill(MARKUP)
        console.button("Create").click()
        expect(console.page.get_by_role("dialog").get_by_role("alert")).not_to_be_empty()
        must_be_text(console)
        escape(console)
    console.page.get_by_role("link", name=KEY.account, exact=True).click()
    console.button("New share").click()
    field(console, "Share name").fill(MARKUP)
    console.button("Create").click()
    expect(console.page.get_by_role("dialog").get_by_role("alert")).not_to_be_empty()
    must_be_text(console)
    escape(console)


def test_a_signature_that_is_explained(console: Console, served: FilesServed) -> None:
    token = account_sas(KEY, ss="b", srt="o", sp="r")
    path = f"{served.server.url}/{KEY.account}/{quote(IMAGE, safe='')}/{quote(MARKUP, safe='')}"
    more = "&".join(f"{name}={quote(MARKUP, safe='')}" for name in ("si", "skoid", "ses", "sdd"))
    console.sign_in("/access")
    region = console.page.get_by_role("region", name="Explanation", exact=True)
    for text in (
        f"{path}?{token}&{more}",
        f"{path}?sv={quote(IMAGE)}&sr=b&sp={quote(IMAGE)}&se={quote(MARKUP)}&sig=a&{more}",
        f"{path}?sv=2025-11-05&sr=b&sp=r&st={quote(SCRIPT)}&sip={quote(LINK)}&sig=a%3D",
    ):
        field(console, "SAS").fill(text)
        console.button("Explain").click()
        region.wait_for()
        must_be_text(console, IMAGE)
    field(console, "SAS").fill(MARKUP)
    console.button("Explain").click()
    expect(console.page.get_by_role("alert").first).not_to_be_empty()
    must_be_text(console)
