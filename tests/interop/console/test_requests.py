"""The live tail of requests, its filter, and one request in full."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Route, expect

from tests.conformance.client import PUT_BLOB, Client, Credential
from tests.interop.console.browsers import Console
from tests.interop.console.conftest import KEY, Served

_HOSTILE = "%3Cimg%20src=x%20onerror=window.ran=1%3E"


def row(console: Console, text: str) -> Locator:
    table = console.page.get_by_role("table", name="Requests", exact=True)
    return table.get_by_role("row").filter(has_text=text)


def test_requests_appear_as_they_come(console: Console, served: Served) -> None:
    console.sign_in("/requests")
    served.client.put("/tail?restype=container")
    served.client.put("/tail/first", PUT_BLOB, b"text")
    first = row(console, "/tail/first")
    expect(first).to_be_visible()
    expect(first.get_by_role("cell", name="201", exact=True)).to_be_visible()
    served.client.get("/tail/missing")
    missing = row(console, "/tail/missing")
    expect(missing.get_by_role("cell", name="404", exact=True)).to_be_visible()
    expect(missing.get_by_role("cell", name="BlobNotFound", exact=True)).to_be_visible()


def test_the_filter_finds_by_status_code_and_path(console: Console, served: Served) -> None:
    served.client.put("/filtered?restype=container")
    served.client.get("/filtered/nothing-here")
    console.sign_in("/requests")
    field = console.page.get_by_label("Filter requests")
    # Paths of other tests may have a word in them; that of the container has none.
    created = console.page.get_by_role("cell", name="/filtered", exact=True)
    expect(created).to_be_visible()
    for text in ("404", "BlobNotFound", "nothing-here"):
        field.fill(text)
        expect(row(console, "/filtered/nothing-here")).to_be_visible()
        expect(created).to_have_count(0)
    field.fill("no-such-request-anywhere")
    expect(console.page.get_by_text("No request matches the filter.")).to_be_visible()


def test_a_filter_with_a_signature_in_it_is_in_no_address(console: Console) -> None:
    console.sign_in("/requests")
    console.page.get_by_label("Filter requests").fill("sig=abcdef")
    expect(console.page.get_by_text("No request matches the filter.")).to_be_visible()
    assert "abcdef" not in console.page.url


def test_a_paused_tail_stands_still_and_goes_on(console: Console, served: Served) -> None:
    console.sign_in("/requests")
    served.client.put("/paused?restype=container")
    expect(row(console, "/paused")).to_be_visible()
    console.button("Pause").click()
    expect(console.button("Resume")).to_be_visible()
    served.client.put("/paused/while", PUT_BLOB, b"")
    console.page.get_by_role("link", name=re.compile("Create Container")).first.click()
    expect(console.page.get_by_role("region", name="Request", exact=True)).to_be_visible()
    expect(row(console, "/paused/while")).to_have_count(0)
    console.button("Resume").click()
    expect(row(console, "/paused/while")).to_be_visible()


def test_a_tail_that_is_paused_before_its_first_rows_says_so(
    console: Console, served: Served
) -> None:
    served.client.put("/paused-early?restype=container")
    held: list[Route] = []
    console.page.route("**/console/v1/requests?*", lambda route: held.append(route))
    console.sign_in("/requests")
    console.button("Pause").click()
    expect(console.page.get_by_text("Paused before any request was read.")).to_be_visible()
    expect(console.page.get_by_role("table")).to_have_count(0)
    console.page.unroute_all()
    console.button("Resume").click()
    expect(row(console, "/paused-early").first).to_be_visible()


def test_a_refused_request_is_explained(console: Console, served: Served) -> None:
    wrong = Client(served.server.port, Credential(KEY.account, f"AAAA{KEY.key[4:]}"))
    assert wrong.put("/explained?restype=container").status == 403
    wrong.close()
    console.sign_in("/requests")
    row(console, "/explained").click()
    region = console.page.get_by_role("region", name="Request", exact=True)
    for heading in ("Why", "Headers", "Replay"):
        expect(region.get_by_role("heading", name=heading, exact=True)).to_be_visible()
    expect(region).to_contain_text("restype:container")  # of the string to sign
    expect(
        region.get_by_role("cell", name=re.compile("^x-ms-date$", re.IGNORECASE))
    ).to_be_visible()
    expect(region).to_contain_text("curl")
    assert re.search(r"/requests/\d+$", console.page.url)
    text = region.text_content() or ""
    assert KEY.key not in text
    region.get_by_role("link", name="Close").click()
    expect(region).to_be_hidden()


def test_the_address_of_a_request_can_be_sent(console: Console, served: Served) -> None:
    served.client.get("/sent-to/somebody")
    console.sign_in("/requests")
    row(console, "/sent-to/somebody").click()
    region = console.page.get_by_role("region", name="Request", exact=True)
    expect(region).to_be_visible()
    console.page.reload()
    console.button("Use the development account").click()
    expect(region).to_contain_text("/sent-to/somebody")


def test_names_with_markup_are_text(console: Console, served: Served) -> None:
    served.client.get(f"/markup/{_HOSTILE}", {"User-Agent": "<script>window.ran=1</script>"})
    console.sign_in("/requests")
    row(console, "/markup/").click()
    region = console.page.get_by_role("region", name="Request", exact=True)
    expect(region).to_contain_text("<script>window.ran=1</script>")
    assert console.page.evaluate("window.ran") is None
    assert console.page.locator("main img, main script").count() == 0
