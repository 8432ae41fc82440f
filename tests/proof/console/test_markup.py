"""Markup in every text that a client can choose is shown as text, in every view."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from urllib.parse import quote
from uuid import uuid4

import pytest
from azure.data.tables import TableClient, UpdateMode
from playwright.sync_api import expect

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_NAME
from strongroom.coordination import connect
from strongroom.testing.ports import HOST
from tests.conformance.client import PUT_BLOB, Client, Credential
from tests.interop.console.browsers import Console
from tests.interop.console.conftest import KEY, NewConsole, Served
from tests.interop.console.keys import escape
from tests.interop.console.table_windows import address, cell, edit, entity, field, new_table

pytestmark = pytest.mark.timeout(600)

IMAGE = "<img class=evil src=x onerror=window.ran=1>"
MARKUP = f"\"'>{IMAGE}"
SCRIPT = "<script class=evil>window.ran=1</script><svg class=evil onload=window.ran=1>"
LINK = "<a class=evil href=javascript:window.ran=1>a</a>"


def must_be_text(console: Console, *texts: str) -> None:
    """Assert that texts are shown, and that no element was made of any."""
    for text in texts:
        expect(console.page.locator("body")).to_contain_text(text)
    found = console.page.evaluate(
        """() => ({
          made: document.querySelectorAll(".evil, iframe, main script, [onerror], [onload]").length,
          links: [...document.links].map((one) => one.href).filter((one) => !/^https?:/.test(one)),
          ran: window.ran ?? null,
        })"""
    )
    assert found == {"made": 0, "links": [], "ran": None}


def tab(console: Console, name: str) -> None:
    console.page.get_by_role("tab", name=name, exact=True).click()


@pytest.fixture
def container(served: Served) -> str:
    name = f"markup-{uuid4().hex[:8]}"
    assert served.client.put(f"/{name}?restype=container").status == 201
    return name


def test_blobs(console: Console, served: Served, container: str) -> None:
    policy = (
        f"<SignedIdentifiers><SignedIdentifier><Id>{escaped(IMAGE)}</Id><AccessPolicy>"
        "<Expiry>2099-01-01T00:00:00Z</Expiry><Permission>r</Permission></AccessPolicy>"
        "</SignedIdentifier></SignedIdentifiers>"
    )
    acl = served.client.put(f"/{container}?restype=container&comp=acl", {}, policy.encode())
    assert acl.status == 200, acl.body
    served.client.put(f"/{container}?restype=container&comp=metadata", {"x-ms-meta-m": MARKUP})
    name = f"{MARKUP}/{MARKUP}.csv"
    path = f"/{container}/{quote(name, safe='')}"
    headers = {
        **PUT_BLOB,
        "x-ms-meta-m": MARKUP,
        "x-ms-blob-content-type": f"text/html;{IMAGE}",
        "x-ms-blob-content-language": MARKUP,
        "x-ms-blob-content-disposition": MARKUP,
        "x-ms-blob-cache-control": MARKUP,
    }
    assert served.client.put(path, headers, f"a,b\n{IMAGE},{SCRIPT}\n".encode()).status == 201
    served.client.put(f"{path}?comp=snapshot", {"x-ms-meta-m": SCRIPT})
    assert served.client.put(path, headers, f"a,b\n{SCRIPT},{LINK}\n".encode()).status == 201
    console.sign_in(f"/blobs/{KEY.account}/{container}?flat=1")
    must_be_text(console, name)
    tab(console, "Access and lease")
    must_be_text(console, IMAGE)
    console.sign_in(f"/blobs/{KEY.account}/{container}")
    console.page.get_by_role("link", name=f"{MARKUP}/", exact=True).click()
    console.page.get_by_role("link", name=f"{MARKUP}.csv", exact=True).click()
    must_be_text(console, MARKUP, SCRIPT, LINK)
    tab(console, "Metadata and tags")
    expect(console.page.get_by_role("form", name="Metadata").get_by_label("Value")).to_have_value(
        MARKUP
    )
    must_be_text(console)
    tab(console, "Versions")
    console.page.get_by_role("button", name="Compare").first.click()
    console.page.get_by_role("dialog").wait_for()
    must_be_text(console)
    escape(console)
    tab(console, "Blocks")
    must_be_text(console)
    console.button("Delete").click()
    console.page.get_by_role("dialog").wait_for()
    must_be_text(console, name)
    escape(console)
    console.page.get_by_role("link", name=KEY.account).click()
    console.button("New container").click()
    field(console, "Container name").fill(MARKUP)
    console.button("Create").click()
    expect(console.page.get_by_role("dialog").get_by_role("alert")).not_to_be_empty()
    must_be_text(console)


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("a.json", f'{{"{IMAGE}": "{LINK}"}}'.encode()),
        ("a.html", SCRIPT.encode()),
        ("a.svg", f"<svg xmlns='http://www.w3.org/2000/svg'>{SCRIPT}</svg>".encode()),
        ("a.png", b"\x89PNG\r\n\x1a\n" + SCRIPT.encode()),
        ("a.gif", b"GIF89a/*" + SCRIPT.encode()),
        ("a.bin", b"\0" + SCRIPT.encode()),
    ],
)
def test_previews(console: Console, served: Served, container: str, name: str, body: bytes) -> None:
    headers = {**PUT_BLOB, "x-ms-blob-content-type": "text/html"}
    served.client.put(f"/{container}/{name}", headers, body)
    console.sign_in(f"/blobs/{KEY.account}/{container}/{name}")
    region = console.page.get_by_role("region", name="Preview", exact=True)
    region.locator("pre, img").first.wait_for()
    must_be_text(console)


def test_queues(console: Console, served: Served) -> None:
    client = Client(int(served.server.queue_url.rpartition(":")[2]), KEY)
    client.put("/markup", {"x-ms-meta-m": MARKUP})
    for text in (MARKUP, SCRIPT, LINK):
        document = f"<QueueMessage><MessageText>{escaped(text)}</MessageText></QueueMessage>"
        assert client.send("POST", "/markup/messages", {}, document.encode()).status == 201
    console.sign_in(f"/queues/{KEY.account}/markup")
    console.button("Peek").click()
    must_be_text(console, MARKUP, SCRIPT, LINK)
    field(console, "How many").fill("3")
    console.button("Get").click()
    console.button("Update").first.click()
    console.page.get_by_role("dialog").wait_for()
    must_be_text(console, MARKUP)
    escape(console)
    field(console, "Message").fill(SCRIPT)
    console.button("Put").click()
    must_be_text(console)
    client.delete("/markup")
    client.close()


@pytest.fixture
def table(served: Served) -> Iterator[TableClient]:
    with new_table(served.server.connection_string) as client:
        yield client


def test_tables(console: Console, table: TableClient) -> None:
    # Neither of the keys may have a slash, and the names of properties are identifiers.
    table.create_entity(entity(MARKUP, IMAGE, Text=SCRIPT, Other=LINK, State="old"))
    console.sign_in(address(table))
    must_be_text(console, MARKUP, IMAGE, SCRIPT, LINK)
    table.update_entity(entity(MARKUP, IMAGE, Text=LINK, State="theirs"), UpdateMode.MERGE)
    edit(console, "old", SCRIPT)
    console.page.get_by_role("dialog", name="Conflict").wait_for()
    must_be_text(console, MARKUP, SCRIPT, LINK)
    console.button("Keep mine").click()
    cell(console, SCRIPT).first.wait_for()
    console.button(f"Delete {IMAGE}").click()
    console.page.get_by_role("dialog").wait_for()
    must_be_text(console, IMAGE)
    escape(console)
    for filter_ in (f"Text eq '{SCRIPT}'", f"Text eq {MARKUP}"):
        field(console, "Filter").fill(filter_)
        console.button("Apply").click()
        must_be_text(console)
    expect(console.page.get_by_role("alert").filter(has_text="request").first).to_be_visible()
    console.button("Add entity").click()
    for name in ("PartitionKey", "RowKey"):
        field(console, name).fill("/#?\\" + MARKUP)
    console.button("Add").click()
    expect(console.page.get_by_role("dialog").get_by_role("alert")).not_to_be_empty()
    must_be_text(console)


def test_coordination(console: Console, served: Served) -> None:
    container = f"locks{uuid4().hex[:8]}"
    store = f"{served.server.url}/{DEVELOPMENT_ACCOUNT_NAME}/{container}"
    served.client.put(f"/{container}?restype=container")
    with connect(store, label=MARKUP) as client:
        client.gate(IMAGE).open({SCRIPT: LINK})
        with client.lock(IMAGE, ttl=60), client.semaphore(f"s{IMAGE}", 2, ttl=60):
            served.client.put(f"/{container}/{quote(IMAGE, safe='')}", PUT_BLOB, SCRIPT.encode())
            console.sign_in(f"/coordination/{container}")
            must_be_text(console, MARKUP, IMAGE, f"s{IMAGE}")
            console.button(f"Break {IMAGE}").click()
            console.page.get_by_role("dialog").wait_for()
            must_be_text(console, IMAGE)
            field(console, "Type the name to confirm").fill(IMAGE)
            console.button("Confirm").click()
            must_be_text(console, f"Break s{IMAGE}"[6:])


def test_requests(console: Console, served: Served) -> None:
    mark = uuid4().hex
    evil = {
        "User-Agent": f"{mark} {MARKUP}",
        "x-ms-client-request-id": MARKUP,
        "Referer": f"javascript:{IMAGE}",
        "If-Match": MARKUP,
        f"x-{mark}": SCRIPT,
        "x-ms-lease-id": MARKUP,
    }
    path = quote(f"/{mark}/{MARKUP}", safe="/")
    anonymous, wrong = (
        served.client.anonymous,
        Client(served.server.port, Credential(KEY.account, f"AAAA{KEY.key[4:]}")),
    )
    served.client.get(path, evil)
    anonymous.get(
        f"{path}?{quote(MARKUP)}=1&sv={quote(MARKUP)}&si={quote(MARKUP)}&sig=a&sp=r", evil
    )
    anonymous.get(f"{path}?sv=2025-11-05&se={quote(MARKUP)}&sr=b&sp={quote(IMAGE)}&sig=a%3D", evil)
    wrong.get(path, evil)
    anonymous.get(path, {**evil, "Authorization": f"SharedKey {quote(IMAGE, safe='<>=')}:{IMAGE}"})
    served.client.get(f"/{mark}?comp={quote(MARKUP)}", evil)
    Client(served.server.port, Credential(f"no{mark[:8]}", KEY.key)).get(path, evil)
    for sent in (
        f"GET /{mark}<img/src=x/class=evil> HTTP/1.1\r\nHost: a\r\n\r\n",
        f"<IMG> /{mark} HTTP/1.1\r\nHost: <img class=evil>\r\n\r\n",
        f"GET /{mark} HTTP/1.1\r\nHost: <img/class=evil>\r\nUser-Agent: {MARKUP}\r\n\r\n",
    ):
        with socket.create_connection((HOST, served.server.port), timeout=30) as connection:
            connection.sendall(sent.encode())
            connection.recv(4096)
    console.sign_in(f"/requests?filter={mark[:20]}")
    rows = console.page.get_by_role("table", name="Requests", exact=True).get_by_role("row")
    expect(rows.nth(6)).to_be_visible()
    must_be_text(console)
    region = console.page.get_by_role("region", name="Request", exact=True)
    for number in range(1, rows.count()):
        rows.nth(number).get_by_role("link").click()
        region.get_by_role("heading", name="Replay").wait_for()
        must_be_text(console)
        for language in ("Python", "JavaScript", ".NET"):
            snippet = region.get_by_role("tab", name=language, exact=True)
            if snippet.count():
                snippet.click()
                must_be_text(console)
    assert IMAGE in (region.text_content() or "")
    anonymous.close()
    wrong.close()


def test_the_overview_and_the_sign_in(new_console: NewConsole) -> None:
    console = new_console()
    console.open(f"/blobs/{quote(MARKUP, safe='')}?{quote(MARKUP)}#{quote(MARKUP)}")
    console.page.get_by_label("Account", exact=True).fill(MARKUP)
    console.page.get_by_label("Key", exact=True).fill(KEY.key)
    console.page.get_by_label("Key", exact=True).press("Enter")
    expect(console.page.get_by_role("alert").first).not_to_be_empty()
    must_be_text(console)
    for url in (f"javascript:{IMAGE}?sig=a", f"http://{HOST}/{IMAGE}?sig={IMAGE}"):
        console.page.get_by_label("SAS URL").fill(url)
        console.page.get_by_label("SAS URL").press("Enter")
        expect(console.page.get_by_role("alert").nth(1)).not_to_be_empty()
        must_be_text(console)
    # What an issuer might answer, though nobody asked it.
    console.open(f"/?state=a&error={quote(IMAGE)}&error_description={quote(SCRIPT)}")
    console.button("Use the development account").wait_for()
    must_be_text(console)
    console.button("Use the development account").click()
    console.heading("Overview").wait_for()
    must_be_text(console)


def escaped(text: str) -> str:
    """A text as XML has it."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
