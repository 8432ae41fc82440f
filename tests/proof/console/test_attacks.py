"""Every attack of tests/interop/console/test_attacks.py, with every file and from every page."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import os
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Error, Page

from strongroom.servers.console.api.table import NUMBER, TABLE, UNSIGNED
from strongroom.testing.ports import free_port
from strongroom.testing.server import Server
from tests.conformance.client import PUT_BLOB, Client, Credential
from tests.interop.console.attack_scenes import (
    CRAFTED,
    DISPOSITION,
    POLICY,
    STORED,
    Scene,
    close_but,
    scene,
    without,
)
from tests.interop.console.attackers import (
    DOCUMENT_WAYS,
    DOCUMENTS,
    FILES,
    OWN_ORIGIN_WAYS,
    SCRIPT,
    SCRIPT_WAYS,
    STYLE,
    STYLE_WAYS,
    HostileFile,
    attack,
)
from tests.interop.console.browsers import Console
from tests.interop.console.conftest import KEY, Served

pytestmark = pytest.mark.timeout(900)

_WAYS = (*SCRIPT_WAYS, *STYLE_WAYS, *DOCUMENT_WAYS)
_NAMES_NEEDED = {
    "files/opens": "share=secret-place",
    "leases": "blob=secret-blob&container=secret-place",
}
_ASK = """async ([url, options]) => {
  try {
    const answer = await fetch(url, options);
    return [answer.status, await answer.text()];
  } catch (error) {
    return String(error);
  }
}"""


@pytest.fixture(scope="module")
def at(served: Served, browser: Browser) -> Iterator[Scene]:
    with scene(served, browser) as found:
        yield found


@pytest.fixture(params=["obeys policies", "ignores policies"])
def context(at: Scene, request: pytest.FixtureRequest) -> Iterator[BrowserContext]:
    made = at.context(bypass_csp=request.param == "ignores policies")
    yield made
    made.close()


def files_for(way: str) -> tuple[HostileFile, ...]:
    """The files with which a way could do harm."""
    if way in DOCUMENT_WAYS:
        return DOCUMENTS
    return (STYLE,) if way in STYLE_WAYS else (SCRIPT,)


@pytest.mark.parametrize("way", _WAYS)
def test_nothing_stored_runs_in_the_page(at: Scene, context: BrowserContext, way: str) -> None:
    page, control = at.signed_in(context), at.enemy_page(context)
    for file in files_for(way):
        at.must_run(control, way, file)
        for by_sas in (True, False):
            page.evaluate(attack(way), at.address(file, by_sas=by_sas))
            at.must_not_run(page, f"{way} of {file.name}")
        close_but(page, control)
        assert page.evaluate("[window.ran, localStorage.getItem('ran')]") == [None, None]


def test_the_pages_policy_alone_lets_nothing_stored_run(at: Scene) -> None:
    obedient, lenient = at.context(), at.context(bypass_csp=True)
    # No policy counts for windows, and routes see no shared and no service worker. What is against
    # the policy in a frameset is told to the document that has it, and not to the page.
    left_out = ("window", "frame", "shared worker", "service worker")
    cases = [(way, file) for way in _WAYS if way not in left_out for file in files_for(way)]
    at.must_hold_by_policy(at.signed_in(obedient), at.signed_in(lenient), cases)
    obedient.close()
    lenient.close()


@pytest.mark.parametrize("file", DOCUMENTS, ids=lambda file: file.name)
def test_the_sandbox_alone_lets_no_document_run(at: Scene, file: HostileFile) -> None:
    context = at.context()
    at.must_hold_by_sandbox(context, file)
    context.close()


@pytest.mark.parametrize("path", CRAFTED)
def test_a_crafted_address_asks_for_nothing_else(at: Scene, console: Console, path: str) -> None:
    at.must_ask_for_its_own_only(console, path)


@pytest.mark.parametrize("way", [way for way in _WAYS if way not in OWN_ORIGIN_WAYS])
def test_nothing_stored_is_brought_in_by_another_page(at: Scene, way: str) -> None:
    context = at.context()
    control = at.enemy_page(context, at.enemy.other_site)
    for kind, frame in at.foreign_frames(context).items():
        if kind == "null" and way in ("window", "form", "frame"):
            continue  # the sandbox of that frame permits neither windows nor what replaces it
        # Which document it is makes no difference to what refuses it: one of each kind.
        for file in files_for(way)[:3:2]:
            at.must_run(control, way, file)
            for by_sas in (True, False):
                frame.evaluate(attack(way), at.address(file, by_sas=by_sas))
            at.must_not_run(control, f"{way} of {file.name} from {kind}")
    context.close()


_SHOW = """(url) => new Promise((end) => {
  const one = new Image();
  for (const event of ["load", "error"]) one.addEventListener(event, () => { end(event); });
  one.src = url;
})"""


def test_an_image_of_stored_data_is_shown_by_no_other_page_and_runs_nowhere(at: Scene) -> None:
    context = at.context(bypass_csp=True)
    page, url = at.signed_in(context), at.address(DOCUMENTS[2])
    assert page.evaluate(_SHOW, url) == "load"
    for kind, frame in at.foreign_frames(context).items():
        assert frame.evaluate(_SHOW, url) == "error", kind
    at.must_not_run(page, "an image")
    context.close()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_file_that_is_opened_is_saved(at: Scene, file: HostileFile) -> None:
    context = at.context()
    page, by_sas, public = context.new_page(), at.address(file), at.address(file, by_sas=False)
    with page.expect_download() as download:
        assert status_of(page, by_sas) == 200
    assert download.value.url == by_sas
    assert status_of(page, public) == 401
    at.must_not_run(page, file.name)
    context.close()


def status_of(page: Page, url: str) -> int:
    """Open an address as a person does who types it. What is saved or refused is no page."""
    with page.expect_response(url) as answer, contextlib.suppress(Error):
        page.goto(url)
    return answer.value.status


@pytest.mark.parametrize("file", DOCUMENTS, ids=lambda file: file.name)
def test_a_window_of_stored_data_has_no_reference_even_if_it_is_shown(
    at: Scene, file: HostileFile
) -> None:
    context = at.context()
    context.route("**/blob/**", without(DISPOSITION, POLICY))
    page = at.signed_in(context)
    page.evaluate("(url) => { window.open(url); }", at.address(file))
    mark = at.await_mark(page, file.name, f"{STORED}{file.name}")
    # Without the sandbox it runs, so only the policy of openers keeps the two apart.
    assert mark["opener"] == "false"
    close_but(page)
    context.close()


SECOND = Credential("second", base64.b64encode(b"the key of the second account..").decode())


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """A console of a server with two accounts, and the port of its Blob service."""
    port = free_port()
    accounts = f"{KEY.account}:{KEY.key};{SECOND.account}:{SECOND.key}"
    flags = ("--console-port", str(port))
    with Server.start(
        data=tmp_path_factory.mktemp("two") / "data",
        test_clock=False,
        flags=flags,
        environment={**os.environ, "STRONGROOM_ACCOUNTS": accounts},
    ) as server:
        yield f"http://127.0.0.1:{port}", server.port


def signed(credential: Credential, path: str, query: str = "") -> dict[str, str]:
    """The headers of a signed GET of the read API, made without the code of the server."""
    date = formatdate(usegmt=True)
    pairs = "".join(
        f"\n{pair.replace('=', ':', 1)}" for pair in sorted(filter(None, query.split("&")))
    )
    headers = f"x-ms-date:{date}\nx-ms-version:2025-11-05\n"
    text = f"GET{chr(10) * 12}{headers}/{credential.account}{path}{pairs}"
    mac = hmac.new(base64.b64decode(credential.key), text.encode(), hashlib.sha256).digest()
    return {
        "x-ms-date": date,
        "x-ms-version": "2025-11-05",
        "authorization": f"SharedKey {credential.account}:{base64.b64encode(mac).decode()}",
    }


def test_the_read_api_tells_an_account_nothing_of_another(
    at: Scene, shared: tuple[str, int]
) -> None:
    url, blob_port = shared
    first, second = Client(blob_port, KEY), Client(blob_port, SECOND)
    first.put("/secret-place?restype=container")
    first.put("/secret-place/secret-blob", PUT_BLOB, b"x")
    second.put("/own-place?restype=container")
    context = at.context()
    page = context.new_page()
    page.goto(f"{url}/")
    api = "/.strongroom/console/v1/"

    def ask(credential: Credential, path: str, query: str = "") -> Any:
        url = f"{api}{path}?{query}" if query else f"{api}{path}"
        return page.evaluate(_ASK, [url, {"headers": signed(credential, f"{api}{path}", query)}])

    status, text = ask(SECOND, "requests")
    assert status == 200
    assert "own-place" in text
    assert "secret" not in text
    numbers = [number for number in range(1, 40) if ask(KEY, f"requests/{number}")[0] == 200]
    assert numbers
    for number in numbers:
        assert ask(SECOND, f"requests/{number}")[0] == 404
    plain = [row.path for row in TABLE if row.method == "GET" and row.path not in UNSIGNED]
    plain = [path for path in plain if NUMBER not in path and path not in _NAMES_NEEDED]
    for path in (*plain, "coordination"):
        status, text = ask(SECOND, path)
        assert status == 200, path
        assert KEY.account not in text and "secret" not in text, path
    # These name what they ask about: it is looked up in the asker's account.
    for path, query in _NAMES_NEEDED.items():
        status, text = ask(SECOND, path, query)
        assert status in (200, 404), path
        assert KEY.account not in text and "own-place" not in text, path
    # A signature of one account in the name of another.
    headers = signed(SECOND, f"{api}who")
    headers["authorization"] = headers["authorization"].replace(SECOND.account, KEY.account)
    assert page.evaluate(_ASK, [f"{api}who", {"headers": headers}])[0] == 403
    first.close()
    second.close()
    context.close()


def test_the_second_account_sees_its_own_in_the_page(
    at: Scene, shared: tuple[str, int], tmp_path: Path
) -> None:
    url, _ = shared
    context = at.context()
    page = context.new_page()
    page.goto(f"{url}/requests")
    page.get_by_label("Account", exact=True).fill(SECOND.account)
    page.get_by_label("Key", exact=True).fill(SECOND.key)
    page.get_by_label("Key", exact=True).press("Enter")
    page.get_by_role("heading", name="Requests", level=1).wait_for()
    page.get_by_role("row").filter(has_text="own-place").first.wait_for()
    assert "secret" not in page.content()
    page.goto(f"{url}/blobs/{KEY.account}/secret-place")
    page.get_by_label("Account", exact=True).fill(SECOND.account)
    page.get_by_label("Key", exact=True).fill(SECOND.key)
    page.get_by_label("Key", exact=True).press("Enter")
    page.get_by_role("alert").filter(has_text="Authentication").first.wait_for()
    assert "secret-blob" not in page.content()
    context.close()
