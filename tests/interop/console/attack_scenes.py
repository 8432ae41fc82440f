"""Where attacks take place: hostile files in a public container, pages of several origins, marks.

Lives here: storing the files, their addresses on the console's port, the pages from which one
attacks, and what must hold of each. Must not live here: the files and the ways to bring them in
(attackers.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from azure.storage.blob import BlobSasPermissions, generate_blob_sas
from playwright.sync_api import Browser, BrowserContext, Frame, Page, Route

from tests.conformance.client import PUT_BLOB, Client
from tests.interop.console.attackers import FILES, Attackers, HostileFile, attack, attackers
from tests.interop.console.browsers import EVENT_TIMEOUT_MS, REBOUND, Console
from tests.interop.console.conftest import KEY, Served

CONTAINER = "hostile"
STORED = "stored-"
DISPOSITION, POLICY = "content-disposition", "content-security-policy"
Cases = Sequence[tuple[str, HostileFile]]
# Addresses that would ask for something else, if their names were put into a URL as they are.
CRAFTED = (
    "/queues/{account}%2Fcrafted%2Fmessages%23",
    "/blobs/..%2Fqueue%2F{account}%2Fcrafted%2Fmessages%3Fnumofmessages%3D32%26a%3D",
    "/blobs/..%2Fqueue%2F{account}%2Fcrafted%2Fmessages%23",
    "/blobs/..%2Fqueue%2F{account}%2Fcrafted%2Fmessages%23/c/b",
    "/tables/..%2Fqueue%2F{account}%2Fcrafted%2Fmessages%23",
    "/queues/..%2F{account}%2Fcrafted%2Fmessages%23/q",
)
# Time for a mark that should not come: those that come take a few milliseconds.
QUIET_MS = 400
_HARMLESS = "harmless.html"


@dataclass
class Scene:
    """A console with hostile files beneath it, and the attackers' server.

    Attributes:
        served: the server that has the console.
        enemy: the attackers' server, where everything works.
    """

    served: Served
    enemy: Attackers
    browser: Browser

    @property
    def url(self) -> str:
        """The console's origin."""
        return self.served.url

    def address(self, file: HostileFile, *, by_sas: bool = True) -> str:
        """Return where a file is on the console's port: as public, or by a SAS that wants it to be
        shown."""
        path = f"{self.url}/blob/{KEY.account}/{CONTAINER}/{file.name}"
        return f"{path}?{sas(file)}" if by_sas else path

    def context(self, **options: object) -> BrowserContext:
        """Return a new context, with Playwright's options."""
        made = self.browser.new_context(**options)  # type: ignore[arg-type]
        made.set_default_timeout(EVENT_TIMEOUT_MS)
        return made

    def signed_in(self, context: BrowserContext, path: str = "/overview") -> Page:
        """Return a page of the console, in which somebody has signed in."""
        console = Console(context.new_page(), self.url)
        console.sign_in(path)
        return console.page

    def page_of_the_blob_port(self, context: BrowserContext) -> Page:
        """Return a page that somebody stored, at the Blob service's own port."""
        page = context.new_page()
        page.goto(f"{self.served.server.url}/{KEY.account}/{CONTAINER}/{_HARMLESS}")
        return page

    def enemy_page(self, context: BrowserContext, origin: str = "") -> Page:
        """Return a page of the attackers' server, by default of the console's own site."""
        page = context.new_page()
        page.goto(f"{origin or self.enemy.url}/page")
        return page

    def foreign_frames(self, context: BrowserContext) -> dict[str, Frame]:
        """Return pages of every kind of origin that is not the console's, by the kind."""
        same_site = self.enemy_page(context)
        same_site.evaluate(
            """() => new Promise((end) => {
              const frame = document.createElement("iframe");
              Object.assign(frame, { sandbox: "allow-scripts allow-forms", srcdoc: "<p>x</p>" });
              frame.addEventListener("load", end);
              document.body.append(frame);
            })"""
        )
        rebound = f"http://{REBOUND}:{self.enemy.port}"
        return {
            "blob port": self.page_of_the_blob_port(context).main_frame,
            "other port": same_site.main_frame,
            "null": same_site.frames[1],
            "other site": self.enemy_page(context, self.enemy.other_site).main_frame,
            "rebound": self.enemy_page(context, rebound).main_frame,
        }

    def must_run(self, page: Page, way: str, file: HostileFile) -> dict[str, str]:
        """Assert that an attack works at the attackers' server. Return its mark."""
        page.evaluate(attack(way), self.enemy.file_url(file))
        return self.await_mark(page, f"{way} of {file.name}", file.name)

    def await_mark(self, page: Page, what: str, name: str) -> dict[str, str]:
        """Wait for the mark of a file. The browser goes on meanwhile."""
        ends = time.monotonic() + EVENT_TIMEOUT_MS / 1000
        while time.monotonic() < ends:
            for mark in self.enemy.take():
                if mark["file"] == name:
                    return mark
            page.wait_for_timeout(20)
        raise AssertionError(f"this attack never works: {what}")

    def must_not_run(self, page: Page, what: str) -> None:
        """Assert that no stored file left a mark, after a quiet moment."""
        page.wait_for_timeout(QUIET_MS)
        marks = [one for one in self.enemy.take() if one["file"].startswith(STORED)]
        assert marks == [], what

    def must_hold_by_policy(self, page: Page, control: Page, cases: Cases) -> None:
        """Assert that the page's policy alone keeps files out, whatever the server answers.

        Arguments:
            page: of the console.
            control: the same, in a context that ignores policies.
        """
        for one in (page, control):
            one.context.route("**/blob/**", self._answer_unprotected)
        for way, file in cases:
            control.evaluate(attack(way), self.address(file))
            mark = self.await_mark(control, way, f"{STORED}{file.name}")
            assert mark.get("origin", self.url) == self.url
            close_but(control)
            page.evaluate("window.violations = []")
            page.evaluate(attack(way), self.address(file))
            page.wait_for_function("window.violations.length > 0")  # else nothing was refused
        self.must_not_run(page, "against the page's policy")
        assert page.evaluate("[window.ran, localStorage.getItem('ran')]") == [None, None]

    def must_hold_by_sandbox(self, context: BrowserContext, file: HostileFile) -> None:
        """Assert that nothing runs in a document that is shown after all, because of its policy."""
        control, page = context.new_page(), context.new_page()
        control.route("**/blob/**", without(DISPOSITION, POLICY))
        control.goto(self.address(file))
        mark = self.await_mark(control, file.name, f"{STORED}{file.name}")
        assert mark["origin"] == self.url
        page.route("**/blob/**", without(DISPOSITION))
        page.goto(self.address(file))
        self.must_not_run(page, file.name)

    def must_ask_for_its_own_only(self, console: Console, crafted: str) -> None:
        """Assert that a crafted address lets the page ask for data of its own service only, and
        take no message."""
        own = Client(int(self.served.server.queue_url.rpartition(":")[2]), KEY)
        own.put("/crafted")
        own.delete("/crafted/messages")
        body = b"<QueueMessage><MessageText>stays</MessageText></QueueMessage>"
        assert own.send("POST", "/crafted/messages", {}, body).status == 201
        path = crafted.format(account=KEY.account)
        console.sign_in(path)
        while not self._data_paths(console):
            console.page.wait_for_timeout(50)
        console.page.wait_for_timeout(QUIET_MS)
        service = path.split("/")[1].removesuffix("s")
        foreign = [one for one in self._data_paths(console) if not one.startswith(f"/{service}/")]
        assert foreign == []
        peeked = own.get("/crafted/messages?peekonly=true").body
        assert b"<DequeueCount>0</DequeueCount>" in peeked
        own.close()

    def _answer_unprotected(self, route: Route) -> None:
        name = route.request.url.partition("?")[0].rpartition("/")[2]
        (file,) = (one for one in FILES if one.name == name)
        body = file.body(self.enemy.url, f"{STORED}{file.name}")
        route.fulfill(status=200, content_type=file.media_type, body=body)

    def _data_paths(self, console: Console) -> list[str]:
        """Return the paths of all requests for data that a page has sent."""
        paths = [one.url.removeprefix(self.url) for one in console.sent]
        return [one for one in paths if one.startswith(("/blob/", "/queue/", "/table/", "/file/"))]


def sas(file: HostileFile) -> str:
    """Return a SAS that reads a file, and asks for its answer to be shown as what it is."""
    return generate_blob_sas(
        KEY.account,
        CONTAINER,
        file.name,
        account_key=KEY.key,
        permission=BlobSasPermissions(read=True),
        expiry=datetime.now(UTC) + timedelta(hours=1),
        content_type=file.media_type,
        content_disposition="inline",
        cache_control="public, max-age=31536000",
    )


@contextmanager
def scene(served: Served, browser: Browser) -> Iterator[Scene]:
    """Store the hostile files, and run the attackers' server."""
    with attackers() as enemy:
        client = served.client
        # It may be there already, of another file of tests.
        client.put(f"/{CONTAINER}?restype=container", {"x-ms-blob-public-access": "blob"})
        for file in FILES:
            body = file.body(enemy.url, f"{STORED}{file.name}")
            made = client.put(f"/{CONTAINER}/{file.name}", file.stored_headers, body)
            assert made.status == 201, made.body
        page = {**PUT_BLOB, "x-ms-blob-content-type": "text/html"}
        client.put(f"/{CONTAINER}/{_HARMLESS}", page, b"<!DOCTYPE html><title>t</title><p>x</p>")
        yield Scene(served, enemy, browser)


def close_but(*kept: Page) -> None:
    """Close what these pages of one context opened."""
    for one in kept[0].context.pages:
        if one not in kept:
            one.close()


def without(*names: str) -> Callable[[Route], None]:
    """Return a handler of routes that takes headers out of the server's answer."""

    def handle(route: Route) -> None:
        answer = route.fetch()
        headers = {name: value for name, value in answer.headers.items() if name not in names}
        route.fulfill(response=answer, headers=headers)

    return handle
