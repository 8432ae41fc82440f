"""Attacks on the console, each beside a control that shows that it works without protection.

The whole matrix is in tests/proof/console/test_attacks.py. docs/console-threats.md says what these
tests show.
"""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from urllib.parse import unquote

import pytest
from azure.storage.queue import QueueSasPermissions, generate_queue_sas
from playwright.sync_api import Browser, BrowserContext, Route, expect

from strongroom.servers.console.api.table import NUMBER, PREFIX, TABLE, UNSIGNED
from strongroom.testing.ports import HOST
from tests.conformance.client import Client
from tests.interop.console.attack_scenes import (
    CONTAINER,
    CRAFTED,
    POLICY,
    QUIET_MS,
    STORED,
    Scene,
    close_but,
    scene,
)
from tests.interop.console.attackers import (
    DOCUMENTS,
    OWN_ORIGIN_WAYS,
    SCRIPT,
    SECRET,
    STYLE,
    HostileFile,
    attack,
)
from tests.interop.console.browsers import REBOUND, Console
from tests.interop.console.conftest import KEY, NewConsole, Served

_HTML, _SVG, _XSLT = DOCUMENTS[0], DOCUMENTS[2], DOCUMENTS[5]
# Of each kind of way, those that browsers treat differently. The others are in the long tests.
_CASES: tuple[tuple[str, HostileFile], ...] = (
    *((way, SCRIPT) for way in ("script", "module", "worker", "service worker")),
    ("stylesheet", STYLE),
    *((way, _HTML) for way in ("iframe", "object", "window", "form")),
)
# What the read API tells to signed requests only; coordination is mounted beside the table.
_SIGNED = (
    *((row.method, row.path.replace(NUMBER, "1")) for row in TABLE if row.path not in UNSIGNED),
    ("GET", "coordination"),
)
_ASK = """async ([url, options]) => {
  try {
    const answer = await fetch(url, options);
    return [answer.type, answer.status, await answer.text()];
  } catch (error) {
    return String(error);
  }
}"""
_POST = """([url, text]) => new Promise((end) => {
  const frame = Object.assign(document.createElement("iframe"), { name: "answers" });
  const form = Object.assign(document.createElement("form"), {
    method: "POST", action: url, enctype: "text/plain", target: "answers",
  });
  const [name, value] = text.split("=");
  form.append(Object.assign(document.createElement("input"), { name, value }));
  document.body.append(frame, form);
  setTimeout(() => {
    frame.addEventListener("load", end);
    form.submit();
  }, 50);
  setTimeout(end, 1500);
})"""
_SOCKET = """(url) => new Promise((end) => {
  const one = new WebSocket(url);
  for (const event of ["open", "error"]) one.addEventListener(event, () => { end(event); });
})"""
_KEPT = """async () => JSON.stringify([
  { ...localStorage }, { ...sessionStorage }, document.cookie, history.state, window.name,
  await indexedDB.databases(), await caches.keys(), location.href,
  performance.getEntries().map((one) => one.name), document.documentElement.outerHTML,
])"""


@pytest.fixture(scope="module")
def at(served: Served, browser: Browser) -> Iterator[Scene]:
    with scene(served, browser) as found:
        yield found


@pytest.fixture
def context(at: Scene) -> Iterator[BrowserContext]:
    """A browser's context that obeys the policies of pages."""
    made = at.context()
    yield made
    made.close()


@pytest.fixture
def lenient(at: Scene) -> Iterator[BrowserContext]:
    """A context that ignores the policies of pages: only the server's answers protect."""
    made = at.context(bypass_csp=True)
    yield made
    made.close()


def test_the_servers_answers_alone_let_nothing_stored_run(
    at: Scene, lenient: BrowserContext
) -> None:
    page, control = at.signed_in(lenient), at.enemy_page(lenient)
    for way, file in _CASES:
        at.must_run(control, way, file)
        page.evaluate(attack(way), at.address(file))
        close_but(page, control)
    at.must_not_run(page, "in the page's own origin")


def test_the_pages_policy_alone_lets_nothing_stored_run(
    at: Scene, context: BrowserContext, lenient: BrowserContext
) -> None:
    cases = [
        *((way, SCRIPT) for way in ("script", "module", "worker")),
        ("stylesheet", STYLE),
        *((way, _HTML) for way in ("iframe", "form")),
    ]
    at.must_hold_by_policy(at.signed_in(context), at.signed_in(lenient), cases)


def test_the_sandbox_alone_lets_no_document_run(at: Scene, context: BrowserContext) -> None:
    for file in (_HTML, _XSLT):
        at.must_hold_by_sandbox(context, file)


def test_a_stored_file_is_saved_and_not_shown(at: Scene, context: BrowserContext) -> None:
    page = at.signed_in(context)
    before = page.url
    with page.expect_download() as download:
        page.evaluate("(url) => { location.href = url; }", at.address(_SVG))
    assert download.value.suggested_filename.startswith(_SVG.name)
    assert page.url == before
    at.must_not_run(page, "opened by the page itself")


def test_another_page_brings_in_nothing(at: Scene, context: BrowserContext) -> None:
    page = at.page_of_the_blob_port(context)
    control = at.enemy_page(context, at.enemy.other_site)
    for way, file in _CASES:
        if way not in OWN_ORIGIN_WAYS:
            at.must_run(control, way, file)
            close_but(page, control)
            page.evaluate(attack(way), at.address(file))
            close_but(page, control)
    at.must_not_run(page, "in a page of the blob port")


def test_no_window_has_a_reference_to_the_consoles(at: Scene, context: BrowserContext) -> None:
    opens = "(url) => { window.opened = window.open(url); }"
    foreign = at.page_of_the_blob_port(context)
    with context.expect_page() as opened:
        foreign.evaluate(opens, f"{at.enemy.url}/page")
    opened.value.get_by_role("heading", name="Sign in").wait_for()
    assert foreign.evaluate("window.opened.closed") is False
    close_but(foreign)
    with context.expect_page() as opened:
        foreign.evaluate(opens, f"{at.url}/overview")
    opened.value.get_by_role("heading", name="Sign in").wait_for()
    assert foreign.evaluate("window.opened.closed") is True
    close_but(foreign)
    # The other way round: what the console opens cannot reach the console.
    page = at.signed_in(context)
    hostile = f"{at.served.server.url}/{KEY.account}/{CONTAINER}/{_HTML.name}"
    for opener, reaches in ((at.enemy_page(context), "true"), (page, "false")):
        opener.evaluate("(url) => { window.open(url); }", hostile)
        mark = at.await_mark(page, "a window", f"{STORED}{_HTML.name}")
        assert (mark["origin"], mark["opener"]) == (at.served.server.url, reaches)


def test_the_page_is_in_no_frame(at: Scene, context: BrowserContext) -> None:
    page, address = at.enemy_page(context), re.compile(f"{re.escape(at.url)}/(\\?.*)?$")

    def unprotected(route: Route) -> None:
        # Neither told that it is for a frame, nor with the headers that forbid it.
        answer = route.fetch(headers={"accept": "text/html"})
        forbid = (POLICY, "x-frame-options")
        headers = {name: value for name, value in answer.headers.items() if name not in forbid}
        route.fulfill(response=answer, headers=headers)

    context.route(address, unprotected)
    began = time.monotonic()
    page.evaluate(attack("iframe"), f"{at.url}/")
    heading = page.frame_locator("iframe.attack").get_by_role("heading", name="Sign in")
    expect(heading).to_be_visible()
    needed_ms = (time.monotonic() - began) * 1000
    context.unroute(address)
    page.evaluate(attack("iframe"), f"{at.url}/")
    page.wait_for_timeout(max(QUIET_MS, needed_ms))
    assert heading.count() == 0


def test_other_pages_read_and_write_nothing(at: Scene, context: BrowserContext) -> None:
    api, secret = "/.strongroom/console/v1/who", f"{at.enemy.url}/secret"
    port = int(at.url.rpartition(":")[2])
    signed = dict(Client(port, KEY, prefix="").fields("GET", api, (), b"", "SharedKey"))
    signed.pop("Host")
    for kind, frame in at.foreign_frames(context).items():
        assert frame.evaluate(_ASK, [secret, {}])[2] == SECRET, kind
        for target, options in (
            ("/", {}),
            ("/.strongroom/console/v1/session", {}),
            (api, {"headers": signed}),
            (api, {"mode": "no-cors"}),
            (at.address(_HTML).removeprefix(at.url), {}),
            (at.address(_HTML).removeprefix(at.url), {"mode": "no-cors"}),
            ("/.strongroom/metrics", {}),
        ):
            told = frame.evaluate(_ASK, [f"{at.url}{target}", options])
            assert isinstance(told, str) or told == ["opaque", 0, ""], (kind, target)
        for url, event in ((at.enemy.url, "open"), (at.url, "error")):
            assert frame.evaluate(_SOCKET, url.replace("http", "ws") + api) == event, kind


def test_a_name_that_points_here_is_no_name_of_the_console(
    at: Scene, context: BrowserContext
) -> None:
    origin = f"http://{REBOUND}:{at.url.rpartition(':')[2]}"
    page = context.new_page()
    answer = page.goto(f"{origin}/overview")
    assert answer is not None
    assert answer.status == 421
    # The attacker's page was loaded while the name still pointed elsewhere.
    page.route(
        f"{origin}/attack", lambda route: route.fulfill(body="<p>", content_type="text/html")
    )
    page.goto(f"{origin}/attack")
    for path in ("/.strongroom/console/v1/session", at.address(_HTML).removeprefix(at.url), "/"):
        told = page.evaluate(_ASK, [path, {}])
        assert (told[0], told[1]) == ("basic", 421)
        assert "development_account" not in told[2]


def test_no_form_of_another_page_writes(at: Scene, context: BrowserContext) -> None:
    own = Client(int(at.served.server.queue_url.rpartition(":")[2]), KEY)
    own.put("/forged")
    own.delete("/forged/messages")
    message = "<QueueMessage><MessageText>a=b</MessageText></QueueMessage>"
    path, token = f"/{KEY.account}/forged/messages", queue_sas()
    page = at.enemy_page(context)
    for kind, frame in {"other port": page.main_frame, **at.foreign_frames(context)}.items():
        frame.evaluate(_POST, [f"{at.url}/queue{path}?{token}", message])
        frame.evaluate(
            "([url, text]) => navigator.sendBeacon(url, text)",
            [f"{at.url}/queue{path}?{token}", message],
        )
        told = own.get("/forged?comp=metadata").get("x-ms-approximate-messages-count")
        assert told == "0", kind
    # The queue's own port takes it: whoever has a SAS may write there from any page.
    page.evaluate(_POST, [f"{at.served.server.queue_url}{path}?{token}", message])
    assert own.get("/forged?comp=metadata").get("x-ms-approximate-messages-count") == "1"
    own.close()


def queue_sas() -> str:
    """A SAS that adds messages to the queue `forged`."""
    expiry = datetime.now(UTC) + timedelta(hours=1)
    return generate_queue_sas(KEY.account, "forged", KEY.key, QueueSasPermissions(add=True), expiry)


@pytest.mark.parametrize("path", CRAFTED[:2])
def test_a_crafted_address_asks_for_nothing_else(at: Scene, console: Console, path: str) -> None:
    at.must_ask_for_its_own_only(console, path)


def test_a_link_with_markup_is_text(at: Scene, console: Console) -> None:
    markup = "%3Cimg%20src%3Dx%20class%3Devil%20onerror%3Dwindow.ran%3D1%3E"
    for path in (
        f"/blobs/{KEY.account}/{markup}?prefix={markup}&tags={markup}",
        f"/requests/{markup}?filter={markup}",
        f"/coordination/{markup}?after={markup}",
    ):
        console.sign_in(path)
        must_be_text(console)
    for path in (f"/{markup}", "/javascript:window.ran=1"):  # no views: there is no sign-in
        console.open(path)
        must_be_text(console)


def must_be_text(console: Console) -> None:
    """Assert that no element was made of the markup, and that nothing ran."""
    assert console.page.locator(".evil").count() == 0
    assert console.page.evaluate("window.ran") is None


def test_a_user_agent_of_10_mb_is_refused_and_the_console_lives(
    console: Console, served: Served
) -> None:
    console.sign_in("/requests")
    port = int(served.url.rpartition(":")[2])
    head = b"GET /overview HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: " + b"<b>x" * 2_621_440
    for target in (port, served.server.port):
        with socket.create_connection((HOST, target), timeout=30) as connection:
            try:
                connection.sendall(head + b"\r\n\r\n")
            except OSError:
                pass  # the server answered, and closed before it was all sent
            answer = b""
            try:
                answer = connection.recv(1024)
            except OSError:
                pass
        assert answer == b"" or answer.startswith(b"HTTP/1.1 4"), answer
    served.client.put("/agents?restype=container")
    table = console.page.get_by_role("table", name="Requests", exact=True)
    expect(table.get_by_role("row").filter(has_text="/agents").first).to_be_visible()


@pytest.mark.parametrize("kind", ["key", "sas"])
def test_nothing_is_kept_of_a_credential_after_the_sign_out(
    at: Scene, new_console: NewConsole, kind: str
) -> None:
    console = new_console()
    link = at.address(_HTML).replace(f"{at.url}/blob", at.served.server.url)
    secret = KEY.key if kind == "key" else link.partition("sig=")[2].partition("&")[0]
    addresses: list[str] = []
    console.page.on("framenavigated", lambda frame: addresses.append(frame.url))
    console.open("/blobs")
    if kind == "key":
        console.page.get_by_label("Account", exact=True).fill(KEY.account)
        console.page.get_by_label("Key", exact=True).fill(KEY.key)
        console.page.get_by_label("Key", exact=True).press("Enter")
    else:
        console.page.get_by_label("SAS URL").fill(link)
        console.page.get_by_label("SAS URL").press("Enter")
    for name in ("Overview", "Blobs", "Requests", "Tables"):
        console.link(name).click()
        console.heading(name).wait_for()
    assert secret not in console.page.content()
    console.button("Sign out").click()
    console.heading("Sign in").wait_for()
    kept = str(console.page.evaluate(_KEPT))
    for text in (secret, unquote(secret)):
        assert text not in kept
    assert console.page.context.cookies() == []
    console.page.go_back()
    console.heading("Sign in").wait_for()
    assert not [one for one in addresses if secret in one or "sig=" in one]


def test_the_read_api_answers_no_wrong_signature(console: Console) -> None:
    console.sign_in()
    wrong = f"SharedKey {KEY.account}:{'A' * 43}="
    for headers, status in (({}, 401), ({"authorization": wrong}, 403)):
        for method, path in _SIGNED:
            options = {"method": method, "headers": headers}
            told = console.page.evaluate(_ASK, [f"{PREFIX}{path}", options])
            assert told[1] == status, path
            assert set(json.loads(told[2])) == {"error"}


def test_cookies_count_for_nothing(at: Scene, context: BrowserContext) -> None:
    # Cookies know no ports: those of any program on this machine are sent here too.
    context.add_cookies([{"name": "session", "value": "of-another-port", "url": at.url}])
    console = Console(context.new_page(), at.url)
    console.sign_in("/blobs")
    console.page.get_by_role("link", name=CONTAINER, exact=True).wait_for()
    for request in console.sent:
        answer = request.response()
        assert answer is not None
        assert answer.header_value("set-cookie") is None
        if request.resource_type == "fetch":
            assert request.header_value("cookie") is None
    for path in ("/.strongroom/console/v1/who", f"/blob/{KEY.account}/?comp=list"):
        told = console.page.evaluate(_ASK, [path, {"credentials": "include"}])
        assert told[1] == 401
