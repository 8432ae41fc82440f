"""A directory with more names than a page has, in the view of files."""

from __future__ import annotations

from urllib.parse import urlsplit
from uuid import uuid4

from playwright.sync_api import expect

from tests.conformance.client import Client
from tests.interop.console.browsers import Console
from tests.interop.console.conftest import KEY, Served
from tests.interop.console.file_windows import address, files_table

_PAGE = 1000


def test_directories_are_listed_by_pages(console: Console, served: Served) -> None:
    client, share = Client(urlsplit(served.server.file_url).port or 0, KEY), f"many-{uuid4()}"
    assert client.put(f"/{share}?restype=share").status == 201
    for number in range(_PAGE + 2):
        client.put(f"/{share}/{number:04}?restype=directory")
    client.close()
    console.sign_in(address(share))
    table = files_table(console)
    expect(table.get_by_role("link", name="0000/", exact=True)).to_be_visible()
    assert table.get_by_role("row").count() < 100  # those in sight
    console.button("Next page").click()
    expect(table.get_by_role("link", name="1001/", exact=True)).to_be_visible()
    console.page.reload()
    console.button("Use the development account").click()
    expect(table.get_by_role("link", name="1001/", exact=True)).to_be_visible()
    console.page.get_by_label("Prefix").fill("050")
    expect(table.get_by_role("link", name="0505/", exact=True)).to_be_visible()
    expect(console.page.get_by_text("10 rows", exact=True)).to_be_visible()
