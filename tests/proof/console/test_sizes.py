"""What is large or must be quick: 100,000 blobs in pages, uploads of 1 GiB, resumed uploads, the
first view, a lease that another browser takes.

Times are compared with a reference that is measured beside them, so that a busy machine does not
fail them. They are printed (`pytest -s`).
"""

from __future__ import annotations

import hashlib
import os
import socket
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from azure.storage.blob import ContainerSasPermissions, generate_container_sas
from playwright.sync_api import Browser, Locator, Page, Request, Route, expect

from strongroom.testing.ports import HOST
from tests.conformance.client import PUT_BLOB
from tests.interop.console.browsers import EVENT_TIMEOUT_MS, Console
from tests.interop.console.conftest import KEY, NewConsole, Served

pytestmark = pytest.mark.timeout(3600)

MIB = 1024 * 1024
_BLOCK = 4 * MIB
_BLOBS = 100_000
_PAGE = 1000
_PIPELINED = 100
_WAIT_MS = 600_000
# A page of the list may use some more memory than the first ones, and must not keep them all.
_HEAP_GROWTH_MAX = 1.5


@pytest.fixture
def container(served: Served) -> str:
    name = f"sizes-{uuid4().hex[:8]}"
    assert served.client.put(f"/{name}?restype=container").status == 201
    return name


def fill(served: Served, container: str, count: int) -> None:
    """Put empty blobs, many at a time over each connection."""
    token = generate_container_sas(
        KEY.account,
        container,
        account_key=KEY.key,
        permission=ContainerSasPermissions(write=True, create=True),
        expiry=datetime.now(UTC) + timedelta(hours=2),
    )

    def put(start: int) -> int:
        sent = "".join(
            f"PUT /{KEY.account}/{container}/b{number:06}?{token} HTTP/1.1\r\nHost: {HOST}\r\n"
            "x-ms-blob-type: BlockBlob\r\nContent-Length: 0\r\n\r\n"
            for number in range(start, start + _PIPELINED)
        )
        answers = b""
        with socket.create_connection((HOST, served.server.port), timeout=120) as connection:
            connection.sendall(sent.encode())
            while answers.count(b"HTTP/1.1 201 ") < _PIPELINED:
                piece = connection.recv(65536)
                assert piece, answers[-400:]
                answers += piece
        return _PIPELINED

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(put, range(0, count, _PIPELINED))) == count


def heap_bytes(page: Page) -> int:
    """Return the bytes of the page's objects, after what is not used was collected."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    used: int = session.send("Runtime.getHeapUsage")["usedSize"]
    session.detach()
    return used


def test_100_000_blobs_are_listed_by_pages(
    new_console: NewConsole, served: Served, container: str
) -> None:
    fill(served, container, _BLOBS)
    console = new_console()
    console.sign_in(f"/blobs/{KEY.account}/{container}?flat=1")
    table = console.page.get_by_role("table", name="Blobs", exact=True)
    link = ""
    early = 0
    for page in range(_BLOBS // _PAGE):
        first = f"b{page * _PAGE:06}"
        expect(table.get_by_role("link", name=first, exact=True)).to_be_visible()
        expect(console.page.get_by_text(f"{_PAGE:,} rows")).to_be_visible()
        assert table.get_by_role("row").count() < 100  # those in sight
        if page == 5:
            early = heap_bytes(console.page)
        if page == 57:
            link = console.page.url
        if page < _BLOBS // _PAGE - 1:
            console.button("Next page").click()
    expect(console.button("Next page")).to_be_disabled()
    late = heap_bytes(console.page)
    print(f"\nmemory after 5 pages {early / MIB:.1f} MiB, after 100 pages {late / MIB:.1f} MiB")
    assert late <= early * _HEAP_GROWTH_MAX
    console.page.get_by_role("group", name="Blobs").or_(table).first.evaluate(
        "(one) => { const box = one.closest('.table-box'); box.scrollTop = box.scrollHeight; }"
    )
    expect(table.get_by_role("link", name=f"b{_BLOBS - 1:06}", exact=True)).to_be_visible()
    # The address of a page in the middle, sent to somebody else.
    other = new_console()
    other.sign_in(link.removeprefix(served.url))
    table = other.page.get_by_role("table", name="Blobs", exact=True)
    expect(table.get_by_role("link", name="b057000", exact=True)).to_be_visible()
    other.page.get_by_label("Prefix").fill("b09999")
    expect(other.page.get_by_text("10 rows", exact=True)).to_be_visible()


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A file of 1 GiB, each block of which is another."""
    path = tmp_path_factory.mktemp("large") / "large.bin"
    with path.open("wb") as file:
        for _ in range(256):
            file.write(os.urandom(64) + bytes(_BLOCK - 64))
    yield path
    path.unlink()


class InFlight:
    """The blocks that a page is sending.

    Attributes:
        most: the largest number of them at one time.
        sent: how many were sent.
    """

    def __init__(self, page: Page) -> None:
        self.most = self.sent = 0
        self._now: set[Request] = set()
        page.on("request", self._began)
        page.on("requestfinished", self._ended)
        page.on("requestfailed", self._ended)

    def _began(self, request: Request) -> None:
        if request.method == "PUT" and "comp=block&" in request.url:
            self._now.add(request)
            self.sent += 1
            self.most = max(self.most, len(self._now))

    def _ended(self, request: Request) -> None:
        self._now.discard(request)


def upload(console: Console, file: Path) -> Locator:
    """Choose a file by its path. Return its progress bar."""
    console.page.get_by_label("Files to upload").set_input_files(file)
    return console.page.get_by_role("progressbar", name=file.name, exact=True)


def digest_of(served: Served, path: str, size_bytes: int) -> str:
    """Return the SHA-256 of a blob, read by ranges."""
    found = hashlib.sha256()
    for start in range(0, size_bytes, 32 * MIB):
        end = min(start + 32 * MIB, size_bytes) - 1
        found.update(served.client.get(path, {"x-ms-range": f"bytes={start}-{end}"}).body)
    return found.hexdigest()


def test_an_upload_of_1_gib_is_cancelled(
    console: Console, served: Served, container: str, large: Path
) -> None:
    served.client.put(f"/{container}/{large.name}", PUT_BLOB, b"before")
    console.sign_in(f"/blobs/{KEY.account}/{container}")
    bar = upload(console, large)
    seen: list[float] = []
    while not seen or seen[-1] < 0.1:
        seen.append(float(bar.evaluate("(one) => one.value / one.max")))
        console.page.wait_for_timeout(50)
    assert seen == sorted(seen)
    assert len({round(one, 4) for one in seen}) > 3
    console.button("Cancel").click()
    expect(console.page.get_by_text("cancelled; the blob is as it was before")).to_be_visible()
    assert served.client.get(f"/{container}/{large.name}").body == b"before"


def test_an_upload_of_1_gib_arrives_whole_with_4_blocks_in_memory(
    console: Console, served: Served, container: str, large: Path
) -> None:
    console.sign_in(f"/blobs/{KEY.account}/{container}")
    blocks = InFlight(console.page)
    session = console.page.context.new_cdp_session(console.page)
    before = session.send("Runtime.getHeapUsage")
    upload(console, large)
    held = 0
    done = console.page.get_by_text("uploaded", exact=True)
    while not done.count():
        console.page.wait_for_timeout(200)
        now = session.send("Runtime.getHeapUsage")
        name = "backingStorageSize"
        held = max(held, now.get(name, 0) - before.get(name, 0))
    print(f"\nblocks in flight {blocks.most}, buffers at most {held / MIB:.0f} MiB")
    assert (blocks.most, blocks.sent) == (4, 256)
    size_bytes = large.stat().st_size
    with large.open("rb") as file:
        expected = hashlib.file_digest(file, "sha256").hexdigest()
    path = f"/{container}/{large.name}"
    assert served.client.head(path).get("Content-Length") == str(size_bytes)
    assert digest_of(served, path, size_bytes) == expected


def stop_after(page: Page, count: int) -> Callable[[], int]:
    """Let some blocks through, and hold the others. Return what tells how many are held."""
    seen = {"passed": 0, "held": 0}

    def handle(route: Route) -> None:
        if seen["passed"] < count:
            seen["passed"] += 1
            route.continue_()
        else:
            seen["held"] += 1  # it is neither answered nor refused

    page.route(lambda url: "comp=block&" in url, handle)
    return lambda: seen["held"]


def blocks_there(served: Served, path: str) -> int:
    """Return how many uncommitted blocks a blob has."""
    answer = served.client.get(f"{path}?comp=blocklist&blocklisttype=uncommitted")
    return answer.body.count(b"<Name>")


def wait_until(page: Page, condition: Callable[[], bool]) -> None:
    """Wait; the browser goes on meanwhile."""
    ends = time.monotonic() + _WAIT_MS / 1000
    while not condition():
        assert time.monotonic() < ends
        page.wait_for_timeout(50)


def window(browser: Browser, served: Served) -> Console:
    """A window that its test closes."""
    context = browser.new_context()
    context.set_default_timeout(EVENT_TIMEOUT_MS)
    return Console(context.new_page(), served.url)


def test_a_closed_browser_resumes_with_the_missing_blocks_only(
    browser: Browser, new_console: NewConsole, served: Served, container: str, tmp_path: Path
) -> None:
    file, path = tmp_path / "resumed.bin", f"/{container}/resumed.bin"
    content = os.urandom(24 * _BLOCK)
    file.write_bytes(content)
    first = window(browser, served)
    first.sign_in(f"/blobs/{KEY.account}/{container}")
    held = stop_after(first.page, 9)
    upload(first, file)
    wait_until(first.page, lambda: held() == 4 and blocks_there(served, path) == 9)
    first.must_be_clean()
    first.page.context.close()  # nothing is asked: the window is gone, as in a crash
    second = new_console()
    second.sign_in(f"/blobs/{KEY.account}/{container}")
    blocks = InFlight(second.page)
    upload(second, file)
    expect(second.page.get_by_text("uploaded, 36 MiB was there already")).to_be_visible()
    assert blocks.sent == 24 - 9
    assert served.client.get(path).body == content


def test_a_changed_file_of_equal_length_becomes_the_blob_whole(
    browser: Browser, new_console: NewConsole, served: Served, container: str, tmp_path: Path
) -> None:
    file, path = tmp_path / "changed.bin", f"/{container}/changed.bin"
    old = os.urandom(16 * _BLOCK)
    new = bytearray(old)
    for at in range(0, len(new), 3 * _BLOCK):
        new[at + 1000] ^= 0xFF  # one byte of every third block
    file.write_bytes(old)
    served.client.put(path, PUT_BLOB, b"before")
    first = window(browser, served)
    first.sign_in(f"/blobs/{KEY.account}/{container}")
    held = stop_after(first.page, 12)
    upload(first, file)
    wait_until(first.page, lambda: held() == 4 and blocks_there(served, path) == 12)
    assert served.client.get(path).body == b"before"
    first.must_be_clean()
    first.page.context.close()
    file.write_bytes(bytes(new))
    second = new_console()
    second.sign_in(f"/blobs/{KEY.account}/{container}")
    blocks = InFlight(second.page)
    upload(second, file)
    expect(second.page.get_by_text("uploaded, 32 MiB was there already")).to_be_visible()
    assert served.client.get(path).body == bytes(new)
    # 4 of the first 12 were changed, and 4 had not arrived.
    assert blocks.sent == 8


def request_s(page: Page) -> float:
    """Return what one small request of the page takes now, the median of some."""
    took: list[float] = page.evaluate(
        """async () => {
          const all = [];
          for (let turn = 0; turn < 9; turn += 1) {
            const began = performance.now();
            await (await fetch("/.strongroom/health")).text();
            all.push((performance.now() - began) / 1000);
          }
          return all;
        }"""
    )
    return statistics.median(took)


_SEEN = """(text) => new Promise((end) => {
  const look = () => {
    const all = [...document.querySelectorAll(".lease")];
    if (all.some((one) => one.textContent === text)) end(Date.now() / 1000);
    else setTimeout(look, 5);
  };
  look();
})"""


def test_a_lease_of_one_browser_is_seen_in_the_other_within_two_seconds(
    new_console: NewConsole, served: Served, container: str
) -> None:
    served.client.put(f"/{container}/b", PUT_BLOB, b"text")
    mine, other = new_console(), new_console()
    for console in (mine, other):
        console.sign_in(f"/blobs/{KEY.account}/{container}/b")
        expect(console.page.get_by_text("available", exact=True)).to_be_visible()
    took = []
    for _ in range(5):
        mine.button("Acquire lease").click()
        with mine.page.expect_response(lambda one: "comp=lease" in one.url):
            mine.button("Acquire").click()
        began = time.time()
        took.append(float(other.page.evaluate(_SEEN, "leased")) - began)
        mine.button("Release lease").click()
        other.page.evaluate(_SEEN, "available")
        mine.button("Acquire lease").wait_for()
    reference = max(request_s(one.page) for one in (mine, other))
    print(f"\nseen after {[round(one, 2) for one in took]} s; a request takes {reference:.4f} s")
    # It is read anew every second and a half: the answer may take what some requests take.
    assert statistics.median(took) < 2 + 20 * reference
    assert max(took) < 2 + 100 * reference


_DRAWN = """(name) => new Promise((end) => {
  const look = () => {
    const all = [...document.querySelectorAll("h1")];
    if (all.some((one) => one.textContent === name)) requestAnimationFrame(() => {
      setTimeout(() => { end(performance.now() / 1000); });
    });
    else setTimeout(look, 2);
  };
  look();
})"""


def test_the_first_view_is_drawn_within_a_second(
    new_console: NewConsole, served: Served, container: str
) -> None:
    drawn, signed, references = [], [], []
    for _ in range(5):
        console = new_console()
        # A page with nothing in it shows what the browser and the machine take now.
        console.page.goto(f"{served.url}/assets/")
        references.append(float(console.page.evaluate("performance.now()")) / 1000)
        console.open("/overview")
        drawn.append(float(console.page.evaluate(_DRAWN, "Sign in")))
        began = time.monotonic()
        console.button("Use the development account").click()
        console.page.get_by_role("table", name="Services").wait_for()
        signed.append(time.monotonic() - began)
    reference = statistics.median(references)
    print(
        f"\nthe sign-in is drawn after {statistics.median(drawn):.2f} s, Overview "
        f"{statistics.median(signed):.2f} s after the click; an empty page takes {reference:.2f} s"
    )
    assert statistics.median(drawn) < 1 + 5 * reference
    assert statistics.median(signed) < 1 + 5 * reference
