"""Containers and blobs: lists, uploads, downloads, previews, leases, snapshots, links."""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Route, expect

from tests.conformance.client import PUT_BLOB
from tests.interop.console.blob_windows import address, blobs_table, new_container
from tests.interop.console.browsers import Console, schemes
from tests.interop.console.conftest import KEY, NewConsole, Served

MIB = 1024 * 1024
_BLOCK = 4 * MIB
_MARKUP = "<img src=x onerror=window.ran=1>'&#%?.txt"
_MARKUP_PATH = "%3Cimg%20src%3Dx%20onerror%3Dwindow.ran%3D1%3E%27%26%23%25%3F.txt"
# Chromium's own dialog cannot be driven: this file is chosen at once, and keeps the sizes only.
_PICKER = """
window.pieces = [];
window.showSaveFilePicker = async () => ({ createWritable: async () => ({
  write: async (data) => { window.pieces.push(data.byteLength); },
  close: async () => { window.isClosed = true; },
  abort: async () => {},
}) });
"""


@pytest.fixture
def container(served: Served) -> str:
    return new_container(served)


def upload(console: Console, file: Path) -> Locator:
    """Choose a file. Return its progress bar."""
    console.page.get_by_label("Files to upload").set_input_files(file)
    return console.page.get_by_role("progressbar", name=file.name, exact=True)


def hold(console: Console, query: str) -> Callable[[], None]:
    """Let requests with this in their URL wait. Return what lets them go on."""
    held: list[Route] = []
    is_open = False

    def wait(route: Route) -> None:
        if is_open:
            route.continue_()
        else:
            held.append(route)

    def let_go() -> None:
        nonlocal is_open
        is_open = True
        for route in held:
            route.continue_()

    console.page.route(lambda url: query in url, wait)
    return let_go


def stored(served: Served, path: str) -> bytes:
    return served.client.get(path).body


def test_a_container_and_a_blob_are_made_looked_at_and_deleted(
    console: Console, tmp_path: Path
) -> None:
    file = tmp_path / "greeting.txt"
    file.write_text("hello, vault\n", encoding="utf-8")
    console.sign_in("/blobs")
    console.button("New container").click()
    console.page.get_by_label("Container name").fill("made-by-hand")
    console.button("Create").click()
    console.page.get_by_role("link", name="made-by-hand", exact=True).click()
    upload(console, file)
    console.page.get_by_role("link", name="greeting.txt", exact=True).click()
    assert console.page.url.endswith(address("made-by-hand", "greeting.txt"))
    preview = console.page.get_by_role("region", name="Preview", exact=True)
    expect(preview).to_contain_text("hello, vault")
    with console.page.expect_download() as download:
        console.button("Download").click()
    assert download.value.suggested_filename == "greeting.txt"
    assert Path(download.value.path()).read_text(encoding="utf-8") == "hello, vault\n"
    console.button("Delete").click()
    expect(console.button("Confirm")).to_be_disabled()
    console.page.get_by_label("Type the name to confirm").fill("greeting.txt")
    console.button("Confirm").click()
    expect(console.page.get_by_text("Nothing here yet.")).to_be_visible()
    console.button("Delete").click()
    console.page.get_by_label("Type the name to confirm").fill("made-by-hand")
    console.button("Confirm").click()
    expect(console.page.get_by_role("heading", name="Containers")).to_be_visible()
    expect(console.page.get_by_role("link", name="made-by-hand", exact=True)).to_have_count(0)


def test_a_lease_of_one_browser_is_seen_in_another(
    new_console: NewConsole, served: Served, container: str
) -> None:
    served.client.put(f"/{container}/b", PUT_BLOB, b"text")
    mine, other = new_console(), new_console()
    for console in (mine, other):
        console.sign_in(address(container, "b"))
        expect(console.page.get_by_text("available", exact=True)).to_be_visible()
    mine.button("Acquire lease").click()
    mine.page.get_by_label("Duration").fill("61")
    mine.button("Acquire").click()
    expect(mine.page.get_by_role("dialog").get_by_role("alert")).to_contain_text("15 to 60")
    mine.page.get_by_label("Duration").fill("60")
    mine.button("Acquire").click()
    expect(other.page.get_by_text("leased", exact=True)).to_be_visible()
    expect(mine.page.get_by_role("timer")).to_contain_text("s left")
    # The read API tells others the time.
    expect(other.page.get_by_role("timer")).to_contain_text("s left")
    expect(other.page.get_by_text("held by somebody else")).to_be_visible()
    mine.button("Renew lease").click()
    expect(mine.page.get_by_text("The lease was renewed.")).to_be_visible()
    other.button("Break lease").click()
    expect(mine.page.get_by_text("broken", exact=True)).to_be_visible()
    mine.button("Acquire lease").click()
    mine.button("Acquire").click()
    mine.button("Release lease").click()
    expect(other.page.get_by_text("available", exact=True)).to_be_visible()


def test_a_write_sends_the_lease_that_this_page_holds(
    console: Console, served: Served, container: str
) -> None:
    served.client.put(f"/{container}/b", PUT_BLOB, b"text")
    console.sign_in(address(container, "b"))
    console.button("Acquire lease").click()
    console.button("Acquire").click()
    expect(console.page.get_by_text("held by this page")).to_be_visible()
    console.page.get_by_role("tab", name="Metadata and tags").click()
    form = console.page.get_by_role("form", name="Metadata", exact=True)
    form.get_by_role("button", name="Add row").click()
    form.get_by_label("Name", exact=True).fill("owner")
    form.get_by_label("Value", exact=True).fill("vault")
    form.get_by_role("button", name="Save").click()
    expect(console.page.get_by_text("The metadata was saved.")).to_be_visible()
    assert served.client.head(f"/{container}/b").get("x-ms-meta-owner") == "vault"


def test_a_cancelled_upload_leaves_the_blob_as_it_was(
    console: Console, served: Served, container: str, tmp_path: Path
) -> None:
    file = tmp_path / "b"
    file.write_bytes(os.urandom(2 * _BLOCK))
    served.client.put(f"/{container}/b", PUT_BLOB, b"before")
    console.sign_in(address(container))
    hold(console, "comp=block&")
    expect(upload(console, file)).to_be_visible()
    console.button("Cancel").click()
    expect(console.page.get_by_text("cancelled; the blob is as it was before")).to_be_visible()
    assert stored(served, f"/{container}/b") == b"before"


def test_a_resumed_upload_of_a_changed_file_is_the_new_file_whole(
    console: Console, served: Served, container: str, tmp_path: Path
) -> None:
    file = tmp_path / "big"
    old = os.urandom(3 * _BLOCK)
    new = old[:_BLOCK] + os.urandom(2 * _BLOCK)
    file.write_bytes(old)
    console.sign_in(address(container))
    # All blocks arrive, and the commit does not.
    console.page.route(
        lambda url: "comp=blocklist" in url,
        lambda route: route.abort() if route.request.method == "PUT" else route.continue_(),
    )
    upload(console, file)
    expect(console.page.get_by_text("does not answer")).to_be_visible()
    console.page.unroute_all()
    console.button("Hide finished").click()
    console.sent.clear()
    file.write_bytes(new)
    upload(console, file)
    expect(console.page.get_by_text("uploaded, 4 MiB was there already")).to_be_visible()
    assert sum("comp=block&" in one.url for one in console.sent) == 2
    assert stored(served, f"/{container}/big") == new


def test_equal_blocks_of_a_file_do_not_count_as_being_there_before(
    console: Console, served: Served, container: str, tmp_path: Path
) -> None:
    file = tmp_path / "zeros"
    file.write_bytes(bytes(6 * _BLOCK))  # more than are sent at once
    console.sign_in(address(container))
    upload(console, file)
    expect(console.page.get_by_text("uploaded", exact=True)).to_be_visible()
    assert stored(served, f"/{container}/zeros") == bytes(6 * _BLOCK)


def test_a_blob_that_changed_during_the_upload_is_not_replaced(
    console: Console, served: Served, container: str, tmp_path: Path
) -> None:
    file = tmp_path / "b"
    file.write_bytes(b"mine")
    served.client.put(f"/{container}/b", PUT_BLOB, b"before")
    console.sign_in(address(container))
    let_go = hold(console, "comp=block&")
    with console.page.expect_request(lambda one: "comp=block&" in one.url):
        upload(console, file)
    served.client.put(f"/{container}/b", PUT_BLOB, b"theirs")
    let_go()
    expect(console.page.get_by_text("412 ConditionNotMet")).to_be_visible()
    assert stored(served, f"/{container}/b") == b"theirs"


def test_an_upload_stores_the_type_and_no_header_of_the_browser(
    console: Console, served: Served, container: str, tmp_path: Path
) -> None:
    file = tmp_path / "page.html"
    file.write_bytes(b"")
    console.sign_in(address(container))
    upload(console, file)
    blobs_table(console).get_by_role("link", name="page.html", exact=True).wait_for()
    found = served.client.head(f"/{container}/page.html")
    assert found.get("Content-Type") == "text/html"
    assert found.get("Cache-Control") is None


def test_folders_prefixes_and_pages(console: Console, served: Served, container: str) -> None:
    for number in range(1002):
        served.client.put(f"/{container}/many/{number:04}", PUT_BLOB, b"")
    served.client.put(f"/{container}/alone", PUT_BLOB, b"")
    console.sign_in(address(container))
    expect(console.button("Next page")).to_be_disabled()
    table = blobs_table(console)
    expect(table.get_by_role("link", name="alone", exact=True)).to_be_visible()
    table.get_by_role("link", name="many/", exact=True).click()
    expect(table.get_by_role("link", name="0000", exact=True)).to_be_visible()
    assert table.get_by_role("row").count() < 100  # those in sight
    console.button("Next page").click()
    expect(table.get_by_role("link", name="1001", exact=True)).to_be_visible()
    console.page.reload()
    console.use_development_account()
    expect(table.get_by_role("link", name="1001", exact=True)).to_be_visible()
    console.page.get_by_label("Prefix").fill("many/050")
    expect(table.get_by_role("link", name="0505", exact=True)).to_be_visible()
    expect(console.page.get_by_text("10 rows", exact=True)).to_be_visible()


def test_blobs_are_found_by_their_tags(console: Console, served: Served, container: str) -> None:
    served.client.put(f"/{container}/a", {**PUT_BLOB, "x-ms-tags": "status=done"}, b"")
    served.client.put(f"/{container}/b", {**PUT_BLOB, "x-ms-tags": "status=open"}, b"")
    console.sign_in(address(container))
    blobs_table(console).get_by_role("link", name="b", exact=True).wait_for()
    console.page.get_by_label("Tags").fill("\"status\" = 'done'")
    console.button("Search").click()
    expect(blobs_table(console).get_by_role("link", name="b", exact=True)).to_have_count(0)
    expect(blobs_table(console).get_by_role("link", name="a", exact=True)).to_be_visible()


def test_a_snapshot_is_promoted(console: Console, served: Served, container: str) -> None:
    served.client.put(f"/{container}/b", PUT_BLOB, b"first text")
    console.sign_in(address(container, "b"))
    console.button("Take snapshot").click()
    expect(console.page.get_by_text("was taken.")).to_be_visible()
    served.client.put(f"/{container}/b", PUT_BLOB, b"second text")
    console.page.get_by_role("tab", name="Versions").click()
    console.page.get_by_role("button", name="Promote").click()
    console.page.get_by_role("dialog").get_by_role("button", name="Promote").click()
    expect(console.page.get_by_text("The blob has that content again.")).to_be_visible()
    assert stored(served, f"/{container}/b") == b"first text"


def test_a_copied_link_reads_one_blob_at_the_services_own_port(
    new_console: NewConsole, served: Served, container: str
) -> None:
    served.client.put(f"/{container}/a%20b", PUT_BLOB, b"linked")
    console = new_console(permissions=["clipboard-read", "clipboard-write"])
    console.sign_in(address(container, "a%20b"))
    console.button("Copy SAS link").click()
    console.page.get_by_label("Valid for").fill("soon")
    console.button("Copy").click()
    expect(console.page.get_by_role("dialog").get_by_role("alert")).to_contain_text("no time")
    console.page.get_by_label("Valid for").fill("30 min")
    console.button("Copy").click()
    expect(console.page.get_by_text("The link was copied.")).to_be_visible()
    link = console.page.evaluate("navigator.clipboard.readText()")
    assert link.startswith(
        f"http://127.0.0.1:{served.server.port}/{KEY.account}/{container}/a%20b?"
    )
    with urllib.request.urlopen(link) as answer:
        assert answer.read() == b"linked"
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(urllib.request.Request(link, method="DELETE"))


def test_a_sas_sees_what_it_permits_and_is_told_what_it_lacks(
    new_console: NewConsole, served: Served, container: str
) -> None:
    served.client.put(f"/{container}/a", PUT_BLOB, b"linked")
    owner = new_console(permissions=["clipboard-read", "clipboard-write"])
    owner.sign_in(address(container))
    owner.button("Copy SAS link").click()
    owner.page.get_by_label("list (l)").uncheck()
    owner.button("Copy").click()
    expect(owner.page.get_by_text("The link was copied.")).to_be_visible()
    link = owner.page.evaluate("navigator.clipboard.readText()")
    guest = new_console()
    guest.open(address(container))
    guest.page.get_by_label("SAS URL").fill(link)
    guest.page.get_by_label("SAS URL").press("Enter")
    expect(guest.page.get_by_text("This sign-in lacks a right: list (l).")).to_be_visible()
    expect(guest.button("Upload")).to_be_disabled()
    guest.button("Copy SAS link").click()
    expect(guest.page.get_by_role("dialog")).to_contain_text("needs an account's key, or a token")


def test_markup_in_names_metadata_and_contents_is_text(
    console: Console, served: Served, container: str
) -> None:
    headers = {**PUT_BLOB, "x-ms-meta-m": "<script>window.ran=1</script>"}
    body = b"<script>window.ran=1</script><svg onload=window.ran=1>"
    served.client.put(
        f"/{container}/{_MARKUP_PATH}", {**headers, "x-ms-blob-content-type": "image/svg+xml"}, body
    )
    console.sign_in(address(container))
    blobs_table(console).get_by_role("link", name=_MARKUP, exact=True).click()
    preview = console.page.get_by_role("region", name="Preview", exact=True)
    expect(preview).to_contain_text("<svg onload=window.ran=1>")
    console.page.get_by_role("tab", name="Metadata and tags").click()
    form = console.page.get_by_role("form", name="Metadata", exact=True)
    expect(form.get_by_label("Value", exact=True)).to_have_value("<script>window.ran=1</script>")
    assert console.page.evaluate("window.ran") is None
    assert console.page.locator("main img, main script, main svg[onload]").count() == 0


@pytest.mark.parametrize("scheme", schemes("light"))
def test_axe_finds_nothing_serious_and_nothing_is_too_wide(
    new_console: NewConsole, served: Served, container: str, scheme: str
) -> None:
    served.client.put(f"/{container}/b.csv", PUT_BLOB, b"a,b\n1,2\n")
    console = new_console(color_scheme=scheme)
    console.sign_in("/blobs")
    console.page.get_by_role("link", name=container, exact=True).wait_for()
    must_suit_everyone(console)
    console.page.get_by_role("link", name=container, exact=True).click()
    blobs_table(console).get_by_role("link", name="b.csv", exact=True).wait_for()
    must_suit_everyone(console)
    console.page.get_by_role("tab", name="Access and lease").click()
    console.button("Acquire lease").wait_for()
    must_suit_everyone(console)
    console.page.get_by_role("tab", name="Blobs", exact=True).click()
    blobs_table(console).get_by_role("link", name="b.csv", exact=True).click()
    console.page.get_by_role("table", name="The beginning of the table").wait_for()
    console.button("Take snapshot").click()
    console.page.get_by_text("was taken.").wait_for()
    must_suit_everyone(console)
    for tab in ("Metadata and tags", "Versions", "Blocks"):
        console.page.get_by_role("tab", name=tab, exact=True).click()
        must_suit_everyone(console)
    console.button("Copy SAS link").click()
    must_suit_everyone(console)


def must_suit_everyone(console: Console) -> None:
    """Assert that axe finds nothing serious, and that all fits into a phone's width."""
    assert console.serious_findings() == []
    console.page.set_viewport_size({"width": 360, "height": 740})
    main = "document.querySelector('main')"
    assert console.page.evaluate(f"{main}.scrollWidth <= {main}.clientWidth")
    console.page.set_viewport_size({"width": 1280, "height": 860})


@pytest.fixture
def large(served: Served, container: str) -> str:
    """The address of a blob that is too large to be downloaded through memory."""
    for number in range(2):
        query = f"comp=block&blockid=AAA{number}"
        served.client.put(f"/{container}/large?{query}", {}, bytes([number]) * (33 * MIB))
    blocks = "<BlockList><Latest>AAA0</Latest><Latest>AAA1</Latest></BlockList>"
    made = served.client.put(f"/{container}/large?comp=blocklist", {}, blocks.encode())
    assert made.status == 201
    return address(container, "large")


def test_a_large_blob_is_downloaded_by_a_short_link_for_it_alone(
    console: Console, large: str
) -> None:
    console.page.add_init_script("delete window.showSaveFilePicker")
    console.sign_in(large)
    with console.page.expect_download() as download:
        console.button("Download").click()
    assert Path(download.value.path()).stat().st_size == 66 * MIB
    query = parse_qs(urlsplit(download.value.url).query)
    assert (query["sp"], query["sr"]) == (["r"], ["b"])
    end = datetime.fromisoformat(query["se"][0])
    assert end - datetime.now(UTC) <= timedelta(minutes=5)


def test_a_large_blob_is_written_by_ranges_into_a_chosen_file(console: Console, large: str) -> None:
    console.page.add_init_script(_PICKER)
    console.sign_in(large)
    console.button("Download").click()
    expect(console.page.get_by_text("The download is complete.")).to_be_visible()
    pieces = console.page.evaluate("window.pieces")
    assert sum(pieces) == 66 * MIB
    assert max(pieces) == 8 * MIB
    assert console.page.evaluate("window.isClosed") is True


def test_what_was_deleted_is_restored(console: Console, served: Served, container: str) -> None:
    kept = "<Enabled>true</Enabled><Days>1</Days>"
    body = (
        f"<StorageServiceProperties><DeleteRetentionPolicy>{kept}</DeleteRetentionPolicy>"
        "</StorageServiceProperties>"
    )
    query = "/?restype=service&comp=properties"
    assert served.client.put(query, {}, body.encode()).status == 202
    served.client.put(f"/{container}/b", PUT_BLOB, b"text")
    assert served.client.delete(f"/{container}/b").status == 202
    console.sign_in(address(container))
    console.page.get_by_label("Show deleted").check()
    console.button("Restore b").click()
    expect(blobs_table(console).get_by_role("link", name="b", exact=True)).to_be_visible()
    assert stored(served, f"/{container}/b") == b"text"
    served.client.put(
        query, {}, body.replace("true", "false").replace("<Days>1</Days>", "").encode()
    )


def test_dropped_files_are_uploaded_into_the_folder_that_is_shown(
    console: Console, served: Served, container: str
) -> None:
    served.client.put(f"/{container}/a/b/first", PUT_BLOB, b"")
    console.sign_in(address(container) + "?prefix=a%2Fb%2F")
    expect(blobs_table(console).get_by_role("link", name="first", exact=True)).to_be_visible()
    dropped = console.page.evaluate_handle(
        """() => {
          const data = new DataTransfer();
          data.items.add(new File(["dropped"], "second.txt"));
          return data;
        }"""
    )
    console.page.locator(".drop-area").dispatch_event("drop", {"dataTransfer": dropped})
    expect(blobs_table(console).get_by_role("link", name="second.txt", exact=True)).to_be_visible()
    assert stored(served, f"/{container}/a/b/second.txt") == b"dropped"
