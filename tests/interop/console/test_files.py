"""Shares, directories and files in the page, and the opens of SMB clients beside them."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect
from smbprotocol.exceptions import SMBResponseException

from strongroom.servers.console.pages import BuiltPage
from tests.conformance.sas import account_sas
from tests.interop.console.browsers import Console
from tests.interop.console.conftest import KEY, NewConsole
from tests.interop.console.file_windows import (
    FILE,
    FilesServed,
    address,
    files_server,
    files_table,
    make_directory,
    names_in,
    put_file,
    stored,
    upload,
)
from tests.interop.console.keys import confirm_by_name
from tests.interop.console.smb_opens import open_with_lease, smb_session
from tests.interop.console.test_blobs import hold, must_suit_everyone

MIB = 1024 * 1024
_NUMBERS = itertools.count(1)
_PIECE = 4 * MIB
_MARKUP = "img src=x onerror=window.ran=1 '&#%;.txt"
_MARKUP_PATH = "img%20src%3Dx%20onerror%3Dwindow.ran%3D1%20%27%26%23%25%3B.txt"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FilesServed]:
    if not BuiltPage().is_built:
        pytest.fail("The console's page is not built: run 'make console'.", pytrace=False)
    with files_server(tmp_path_factory.mktemp("files") / "data") as running:
        yield running


@pytest.fixture
def share(served: FilesServed) -> str:
    name = f"files-{next(_NUMBERS)}"
    assert served.client.put(f"/{name}?restype=share").status == 201
    return name


def test_a_share_a_directory_and_a_file_are_made_looked_at_and_deleted(
    console: Console, served: FilesServed, tmp_path: Path
) -> None:
    file = tmp_path / "greeting.txt"
    file.write_text("hello, vault\n", encoding="utf-8")
    console.sign_in("/files")
    console.button("New share").click()
    console.page.get_by_label("Share name").fill("made-by-hand")
    console.page.get_by_label("Quota (GiB)").fill("7")
    console.button("Create").click()
    row = console.page.get_by_role("row").filter(has_text="made-by-hand")
    expect(row).to_contain_text("7 GiB")
    console.page.get_by_role("link", name="made-by-hand", exact=True).click()
    console.button("New directory").click()
    console.page.get_by_label("Directory name").fill("Letters")
    console.button("Create").click()
    files_table(console).get_by_role("link", name="Letters/", exact=True).click()
    expect(console.page.get_by_role("heading", name="Letters/", level=2)).to_be_focused()
    assert console.page.url.endswith(address("made-by-hand", "Letters"))
    upload(console, file)
    expect(console.page.get_by_text("uploaded")).to_be_visible()
    files_table(console).get_by_role("link", name="greeting.txt", exact=True).click()
    assert urlsplit(console.page.url).path == address("made-by-hand", "Letters/greeting.txt")
    preview = console.page.get_by_role("region", name="Preview", exact=True)
    expect(preview).to_contain_text("hello, vault")
    with console.page.expect_download() as download:
        console.button("Download").click()
    assert download.value.suggested_filename == "greeting.txt"
    assert Path(download.value.path()).read_text(encoding="utf-8") == "hello, vault\n"
    console.button("Rename").click()
    console.page.get_by_label("New path").fill("moved.txt")
    console.page.get_by_role("dialog").get_by_role("button", name="Rename").click()
    expect(console.page.get_by_role("heading", name="moved.txt", level=2)).to_be_visible()
    console.button("Delete").click()
    expect(console.button("Confirm")).to_be_disabled()
    console.page.get_by_label("Type the name to confirm").fill("moved.txt")
    console.button("Confirm").click()
    files_table(console).get_by_role("link", name="Letters/", exact=True).click()
    console.button("Delete").click()
    console.page.get_by_label("Type the name to confirm").fill("Letters")
    console.button("Confirm").click()
    expect(console.page.get_by_text("Nothing here yet.")).to_be_visible()
    console.button("Delete made-by-hand").click()
    console.page.get_by_label("Type the name to confirm").fill("made-by-hand")
    console.button("Confirm").click()
    expect(console.button("New share")).to_be_visible()
    expect(console.page.get_by_role("link", name="made-by-hand", exact=True)).to_have_count(0)
    console.page.get_by_label("Show deleted").check()
    console.button("Restore made-by-hand").click()
    expect(console.page.get_by_role("link", name="made-by-hand", exact=True)).to_be_visible()
    assert served.client.head("/made-by-hand?restype=share").get("x-ms-share-quota") == "7"


def test_a_bookmark_of_a_path_finds_out_what_it_leads_to(
    console: Console, served: FilesServed, share: str
) -> None:
    make_directory(served, f"/{share}/d")
    put_file(served, f"/{share}/d/f", b"text")
    console.sign_in(address(share, "d/f"))
    expect(console.page.get_by_role("region", name="Preview", exact=True)).to_contain_text("text")
    console.page.get_by_role("link", name="d/", exact=True).click()
    expect(files_table(console).get_by_role("link", name="f", exact=True)).to_be_visible()
    console.page.get_by_role("link", name=share, exact=True).click()
    expect(files_table(console).get_by_role("link", name="d/", exact=True)).to_be_visible()


def test_a_file_that_is_there_is_asked_about_before_it_is_replaced(
    console: Console, served: FilesServed, share: str, tmp_path: Path
) -> None:
    put_file(served, f"/{share}/old.txt", b"before", **{"x-ms-meta-owner": "vault"})
    old, new = tmp_path / "old.txt", tmp_path / "new.txt"
    old.write_bytes(b"after")
    new.write_bytes(b"new")
    console.sign_in(address(share))
    upload(console, old, new)
    dialog = console.page.get_by_role("dialog")
    expect(dialog).to_contain_text("old.txt")
    expect(dialog).not_to_contain_text("new.txt")
    dialog.get_by_role("button", name="Upload the others only").click()
    expect(files_table(console).get_by_role("link", name="new.txt", exact=True)).to_be_visible()
    assert stored(served, f"/{share}/old.txt") == b"before"
    upload(console, old)
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_have_count(0)
    assert stored(served, f"/{share}/old.txt") == b"before"
    before = served.client.head(f"/{share}/old.txt")
    permission = before.get("x-ms-file-permission-key")
    assert before.get("x-ms-meta-owner") == "vault"
    upload(console, old)
    with console.page.expect_response(lambda one: "comp=rename" in one.url):
        dialog.get_by_role("button", name="Replace", exact=True).click()
    expect(console.page.get_by_text("uploaded").first).to_be_visible()
    assert stored(served, f"/{share}/old.txt") == b"after"
    found = served.client.head(f"/{share}/old.txt")
    assert found.get("x-ms-file-permission-key") == permission
    assert found.get("x-ms-meta-owner") is None
    assert "~upload" not in names_in(served, share)


def test_a_cancelled_upload_leaves_the_file_as_it_was(
    console: Console, served: FilesServed, share: str, tmp_path: Path
) -> None:
    file = tmp_path / "f"
    file.write_bytes(os.urandom(2 * _PIECE + 5))
    put_file(served, f"/{share}/f", b"before")
    console.sign_in(address(share))
    let_go = hold(console, "comp=range")
    upload(console, file)
    console.page.get_by_role("dialog").get_by_role("button", name="Replace", exact=True).click()
    expect(console.page.get_by_role("progressbar", name="f", exact=True)).to_be_visible()
    with console.page.expect_response(lambda one: one.request.method == "DELETE"):
        console.button("Cancel").click()
    text = "cancelled; a file that had this name is as it was before"
    expect(console.page.get_by_text(text)).to_be_visible()
    let_go()
    assert stored(served, f"/{share}/f") == b"before"
    assert "~upload" not in names_in(served, share)


def test_a_large_file_arrives_whole(
    console: Console, served: FilesServed, share: str, tmp_path: Path
) -> None:
    file = tmp_path / "large.bin"
    content = os.urandom(5 * _PIECE + 3)
    file.write_bytes(content)
    console.sign_in(address(share))
    upload(console, file)
    expect(console.page.get_by_text("uploaded")).to_be_visible()
    assert stored(served, f"/{share}/large.bin") == content
    assert sum("comp=range" in one.url for one in console.sent) == 6


def test_a_file_too_large_for_memory_is_downloaded_by_a_link_that_reads_it_alone(
    new_console: NewConsole, served: FilesServed, share: str
) -> None:
    size = 65 * MIB
    made = {**FILE, "x-ms-content-length": str(size)}
    assert served.client.put(f"/{share}/zeros%20%25.bin", made).status == 201
    console = new_console()
    # A browser that lets no page write into a file.
    console.page.add_init_script("delete window.showSaveFilePicker")
    console.sign_in(address(share, "zeros%20%25.bin") + "?kind=file")
    with console.page.expect_download() as download:
        console.button("Download").click()
    assert download.value.suggested_filename == "zeros %.bin"
    query = parse_qs(urlsplit(download.value.url).query)
    assert (query["sr"], query["sp"]) == (["f"], ["r"])
    assert Path(download.value.path()).stat().st_size == size


def test_dropped_files_are_uploaded_into_the_directory(
    console: Console, served: FilesServed, share: str
) -> None:
    make_directory(served, f"/{share}/in")
    console.sign_in(address(share, "in"))
    expect(console.page.get_by_text("Nothing here yet.")).to_be_visible()
    dropped = console.page.evaluate_handle(
        """() => {
          const data = new DataTransfer();
          data.items.add(new File(["dropped"], "second.txt"));
          return data;
        }"""
    )
    console.page.locator(".drop-area").dispatch_event("drop", {"dataTransfer": dropped})
    expect(files_table(console).get_by_role("link", name="second.txt", exact=True)).to_be_visible()
    assert stored(served, f"/{share}/in/second.txt") == b"dropped"


def test_a_lease_of_one_browser_is_seen_in_another(
    new_console: NewConsole, served: FilesServed, share: str
) -> None:
    put_file(served, f"/{share}/f", b"text")
    mine, other = new_console(), new_console()
    for console in (mine, other):
        console.sign_in(address(share, "f"))
        expect(console.page.get_by_text("available", exact=True)).to_be_visible()
    mine.button("Acquire lease").click()
    mine.button("Acquire").click()
    expect(other.page.get_by_text("leased", exact=True)).to_be_visible()
    expect(mine.page.get_by_text("held by this page")).to_be_visible()
    expect(mine.button("Renew lease")).to_have_count(0)
    mine.page.get_by_role("tab", name="Attributes and headers").click()
    mine.page.get_by_label("Hidden").check()
    mine.button("Save attributes and times").click()
    expect(mine.page.get_by_text("The properties were saved.")).to_be_visible()
    other.page.get_by_role("tab", name="Attributes and headers").click()
    other.page.get_by_label("Language").fill("de")
    other.button("Save headers").click()
    expect(other.page.get_by_text("412 LeaseIdMissing")).to_be_visible()
    other.button("Break lease").click()
    mine.page.get_by_role("tab", name="Properties").click()
    expect(mine.page.get_by_text("broken", exact=True)).to_be_visible()
    expect(mine.page.get_by_text("Hidden | Archive")).to_be_visible()


def test_a_lease_of_a_share_counts_down(console: Console, share: str) -> None:
    console.sign_in(address(share) + "?tab=settings")
    console.button("Acquire lease").click()
    console.page.get_by_label("Duration").fill("60")
    console.button("Acquire").click()
    expect(console.page.get_by_role("timer")).to_contain_text("s left")
    console.page.get_by_label("Quota (GiB)").fill("9")
    console.button("Set quota").click()
    expect(console.page.get_by_text("9 GiB", exact=True)).to_be_visible()
    console.button("Release lease").click()
    expect(console.page.get_by_text("available", exact=True)).to_be_visible()


def test_attributes_times_headers_and_metadata_are_changed(
    console: Console, served: FilesServed, share: str
) -> None:
    put_file(served, f"/{share}/f", b"text")
    console.sign_in(address(share, "f") + "?kind=file&tab=metadata")
    console.page.get_by_label("Last write").fill("2001-02-03T04:05:06Z")
    console.button("Save attributes and times").click()
    expect(console.page.get_by_label("Last write")).to_have_value("2001-02-03T04:05:06.0000000Z")
    console.page.get_by_label("Content type").fill("text/plain")
    console.button("Save headers").click()
    expect(console.page.get_by_text("The properties were saved.").first).to_be_visible()
    form = console.page.get_by_role("form", name="Metadata", exact=True)
    form.get_by_role("button", name="Add row").click()
    form.get_by_label("Name", exact=True).fill("owner")
    form.get_by_label("Value", exact=True).fill("vault")
    form.get_by_role("button", name="Save").click()
    expect(console.page.get_by_text("The metadata was saved.")).to_be_visible()
    found = served.client.head(f"/{share}/f")
    assert found.get("x-ms-file-last-write-time") == "2001-02-03T04:05:06.0000000Z"
    assert found.get("Content-Type") == "text/plain"
    assert found.get("x-ms-meta-owner") == "vault"
    console.page.get_by_role("tab", name="Properties").click()
    console.button("Show permission").click()
    expect(console.page.get_by_text("D:")).to_be_visible()


def test_a_snapshot_of_a_share_is_taken_opened_and_deleted(
    console: Console, served: FilesServed, share: str
) -> None:
    put_file(served, f"/{share}/f", b"then")
    console.sign_in(address(share))
    console.button("Take snapshot").click()
    expect(console.page.get_by_text("was taken.")).to_be_visible()
    put_file(served, f"/{share}/f", b"now!")
    console.page.get_by_role("tab", name="Snapshots").click()
    table = console.page.get_by_role("table", name="Snapshots")
    taken = table.get_by_role("link").inner_text()
    table.get_by_role("link").click()
    files_table(console).get_by_role("link", name="f", exact=True).click()
    expect(console.page.get_by_role("region", name="Preview", exact=True)).to_contain_text("then")
    expect(console.button("Delete")).to_have_count(0)
    console.sign_in(f"{address(share)}?tab=snapshots")
    console.button(f"Delete {taken}").click()
    console.page.get_by_label("Type the name to confirm").fill(taken)
    console.button("Confirm").click()
    expect(console.page.get_by_text("No snapshots.")).to_be_visible()


def test_a_handle_of_smb_is_seen_with_its_locks_and_lease_and_closed(
    console: Console, served: FilesServed, share: str
) -> None:
    make_directory(served, f"/{share}/d")
    put_file(served, f"/{share}/d/f.txt", b"text of a file")
    console.sign_in(address(share, "d/f.txt") + "?kind=file&tab=opens")
    expect(console.page.get_by_text("Nobody has this file open.")).to_be_visible()
    expect(console.page.get_by_text("No bytes are locked.")).to_be_visible()
    with smb_session(served.smb_port):
        held = open_with_lease(served.smb_port, share, r"d\f.txt")
        opens = console.page.get_by_role("list", name="Opens", exact=True)
        expect(opens.get_by_role("listitem")).to_have_count(1)
        expect(opens).to_contain_text("SMB 3.1.1")
        expect(opens).to_contain_text("127.0.0.1:")
        expect(opens).to_contain_text("Read, Write")
        expect(opens).to_contain_text("Read, Handle (lease)")
        held.lock(2, 10, is_exclusive=True)
        locks = console.page.get_by_role("table", name="Byte-range locks")
        expect(locks.get_by_role("row").filter(has_text="exclusive")).to_contain_text("11")
        expect(locks).to_contain_text("127.0.0.1:")
        console.sign_in(f"{address(share)}?tab=handles")
        row = console.page.get_by_role("listitem").filter(has_text="d/f.txt")
        expect(row).to_contain_text("127.0.0.1:")
        row.get_by_role("link", name="d/f.txt").click()
        console.page.get_by_role("tab", name="Opens and locks").click()
        console.button("Close handle").click()
        expect(console.page.get_by_text("The handle was closed.")).to_be_visible()
        expect(console.page.get_by_text("Nobody has this file open.")).to_be_visible()
        expect(console.page.get_by_text("No bytes are locked.")).to_be_visible()
        with pytest.raises(SMBResponseException, match="STATUS_FILE_CLOSED"):
            held.lock(0, 1, is_exclusive=True)


def test_looking_at_a_file_does_not_break_the_lease_of_its_client(
    console: Console, served: FilesServed, share: str
) -> None:
    put_file(served, f"/{share}/f.txt", b"text")
    console.sign_in(address(share, "f.txt") + "?kind=file&tab=opens")
    expect(console.page.get_by_text("Nobody has this file open.")).to_be_visible()
    console.sent.clear()
    with smb_session(served.smb_port):
        held = open_with_lease(served.smb_port, share, "f.txt", caches_writes=True)
        opens = console.page.get_by_role("list", name="Opens", exact=True)
        expect(opens).to_contain_text("Read, Write, Handle (lease)")
        for _ in range(2):
            with console.page.expect_response(lambda one: "files/opens" in one.url):
                pass
        expect(opens).to_contain_text("Read, Write, Handle (lease)")
        assert not any("/file/" in one.url for one in console.sent)
        held.close()


def test_a_sas_sees_what_it_permits_and_is_told_what_it_lacks(
    console: Console, served: FilesServed, share: str
) -> None:
    put_file(served, f"/{share}/f", b"linked")
    token = account_sas(KEY, ss="f", srt="co", sp="rl")
    console.open(address(share, "f"))
    link = f"{served.server.file_url}/{KEY.account}/{share}?{token}"
    console.page.get_by_label("SAS URL").fill(link)
    console.page.get_by_label("SAS URL").press("Enter")
    expect(console.page.get_by_role("region", name="Preview", exact=True)).to_contain_text("linked")
    for name in ("Rename", "Delete", "Acquire lease"):
        expect(console.button(name)).to_be_disabled()
    console.page.get_by_role("tab", name="Opens and locks").click()
    expect(console.page.get_by_text("the account's key")).to_be_visible()
    expect(console.page.get_by_text("Nobody has this file open.")).to_be_visible()
    console.link("Files").click()
    expect(console.page.get_by_text("This sign-in lacks a right: list (l).")).to_be_visible()
    console.link("Blobs").click()
    expect(console.page.get_by_text("SAS of the Blob service")).to_be_visible()


def test_markup_in_names_and_metadata_is_text(
    console: Console, served: FilesServed, share: str
) -> None:
    text = "<script>window.ran=1</script>"
    put_file(served, f"/{share}/{_MARKUP_PATH}", text.encode(), **{"x-ms-meta-m": text})
    console.sign_in(address(share))
    files_table(console).get_by_role("link", name=_MARKUP, exact=True).click()
    expect(console.page.get_by_role("region", name="Preview", exact=True)).to_contain_text(text)
    expect(console.page.get_by_role("region", name="Properties")).to_contain_text(text)
    assert console.page.evaluate("window.ran") is None
    assert console.page.locator("main img, main script").count() == 0


def test_the_keyboard_is_enough(console: Console, served: FilesServed, share: str) -> None:
    put_file(served, f"/{share}/f", b"text")
    console.sign_in(address(share))
    link = files_table(console).get_by_role("link", name="f", exact=True)
    link.press("Enter")
    expect(console.page.get_by_role("heading", name="f", level=2, exact=True)).to_be_focused()
    console.page.get_by_role("tab", name="Properties").press("ArrowLeft")
    expect(console.page.get_by_role("tab", name="Opens and locks")).to_be_focused()
    expect(console.page.get_by_text("Nobody has this file open.")).to_be_visible()
    console.button("Delete").press("Enter")
    confirm_by_name(console.page.get_by_label("Type the name to confirm"), "f")
    expect(console.page.get_by_text("Nothing here yet.")).to_be_visible()


def test_the_view_of_a_share_suits_everyone(
    console: Console, served: FilesServed, share: str
) -> None:
    make_directory(served, f"/{share}/d")
    put_file(served, f"/{share}/f.csv", b"a,b\n1,2\n")
    console.sign_in("/files")
    console.page.get_by_role("link", name=share, exact=True).wait_for()
    must_suit_everyone(console)
    console.page.get_by_role("link", name=share, exact=True).click()
    files_table(console).get_by_role("link", name="f.csv", exact=True).wait_for()
    console.button("Take snapshot").click()
    console.page.get_by_text("was taken.").wait_for()
    must_suit_everyone(console)
    for tab, shown in (
        ("Quota and lease", console.button("Acquire lease")),
        ("Snapshots", console.page.get_by_role("table", name="Snapshots")),
    ):
        console.page.get_by_role("tab", name=tab, exact=True).click()
        shown.wait_for()
        must_suit_everyone(console)


def test_the_view_of_a_file_suits_everyone(
    new_console: NewConsole, served: FilesServed, share: str
) -> None:
    put_file(served, f"/{share}/f.csv", b"a,b\n1,2\n", **{"x-ms-meta-long": "a" * 200})
    console = new_console(color_scheme="dark")
    console.sign_in(address(share) + "?tab=handles")
    with smb_session(served.smb_port):
        held = open_with_lease(served.smb_port, share, "f.csv")
        held.lock(0, 4, is_exclusive=False)
        console.button("Close handle").wait_for()
        must_suit_everyone(console)
        console.page.get_by_role("tab", name="Files", exact=True).click()
        files_table(console).get_by_role("link", name="f.csv", exact=True).click()
        console.page.get_by_role("table", name="The beginning of the table").wait_for()
        must_suit_everyone(console)
        for tab, shown in (
            ("Attributes and headers", console.button("Save headers")),
            ("Opens and locks", console.button("Close handle")),
        ):
            console.page.get_by_role("tab", name=tab, exact=True).click()
            shown.wait_for()
            must_suit_everyone(console)
        held.close()
    console.button("Rename").click()
    must_suit_everyone(console)
