"""The sign-in at an issuer, in the browser: there and back with a code, and what is refused."""

from __future__ import annotations

import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from strongroom.testing.ports import HOST
from tests.conformance.client import PUT_BLOB
from tests.interop.console.browsers import Console
from tests.interop.console.conftest import KEY
from tests.proof.console.issuer_windows import (
    SignedInAt,
    issuer_and_server,
    issuer_window,
    sign_in,
)

ALICE, OLGA = "alice", "olga"
CONTAINER, BLOB = "issued", "a b"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SignedInAt]:
    roles = {ALICE: "Storage Blob Data Contributor", OLGA: "Strongroom Operator"}
    with issuer_and_server(tmp_path_factory.mktemp("issuer"), roles) as running:
        client = running.client(running.server.url)
        client.put(f"/{CONTAINER}?restype=container")
        client.put(f"/{CONTAINER}/{urllib.parse.quote(BLOB)}", PUT_BLOB, b"issued")
        client.close()
        yield running


@pytest.fixture
def window(browser: Browser, place: SignedInAt) -> Iterator[Console]:
    with issuer_window(browser, place) as console:
        yield console


def test_a_data_role_comes_back_to_its_address(window: Console, place: SignedInAt) -> None:
    token = place.issue_for(ALICE)
    sign_in(window, place, f"/blobs/{KEY.account}/{CONTAINER}")
    expect(window.page.get_by_role("banner")).to_contain_text(ALICE)
    expect(window.page.get_by_role("link", name=BLOB, exact=True)).to_be_visible()
    assert window.page.url == f"{place.url}/blobs/{KEY.account}/{CONTAINER}"
    assert token not in window.page.content()
    assert place.issuer.asked.count("/authorize") == place.issuer.asked.count("/token") == 1
    window.link("Overview").click()
    needed = window.page.get_by_text("This view needs another sign-in: account key.")
    expect(needed).to_be_visible()
    window.link("Access").click()
    roles = window.page.get_by_role("table", name="Roles")
    expect(roles.get_by_role("row").filter(has_text=ALICE)).to_contain_text("Contributor")
    assert OLGA not in roles.inner_text()
    expect(window.page.get_by_role("heading", name="Accounts", exact=True)).to_have_count(0)


def test_an_operator_role_sees_the_whole_server(window: Console, place: SignedInAt) -> None:
    place.issue_for(OLGA)
    sign_in(window, place, "/overview")
    expect(window.page.get_by_role("heading", name="Server", exact=True)).to_be_visible()
    window.link("Access").click()
    account = window.page.get_by_role("listitem").filter(has_text=KEY.account)
    expect(account).to_contain_text("1 key")
    roles = window.page.get_by_role("table", name="Roles").get_by_role("row")
    expect(roles).to_have_count(3)
    take_back = f"Copy command: remove Storage Blob Data Contributor of {ALICE}"
    window.button(take_back).click()
    copied = window.page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith(f"strongroom role remove 'Storage Blob Data Contributor' {ALICE} --")
    assert "--roles-file /" in copied


@pytest.mark.parametrize(
    ("mood", "said"),
    [
        ("other state", "belongs to no sign-in"),
        ("denied", "The issuer refused: Alice said no."),
        ("other nonce", "belongs to no sign-in"),
        ("bad id_token", "belongs to no sign-in"),
    ],
)
def test_what_is_not_the_answer_to_this_sign_in_is_refused(
    window: Console, place: SignedInAt, mood: str, said: str
) -> None:
    place.issue_for(ALICE)
    place.issuer.mood = mood
    sign_in(window, place, "/requests")
    expect(window.page.get_by_role("alert").filter(has_text=said)).to_be_visible()
    expect(window.heading("Sign in")).to_be_visible()
    assert urllib.parse.urlsplit(window.page.url).query == ""
    wants_token = mood in ("other nonce", "bad id_token")
    assert place.issuer.asked.count("/token") == int(wants_token)
    assert [one.url for one in window.sent if one.url.endswith("/v1/who")] == []


def test_without_an_id_token_the_access_token_counts(window: Console, place: SignedInAt) -> None:
    place.issue_for(ALICE)
    place.issuer.mood = "no id_token"
    sign_in(window, place, "/requests")
    expect(window.heading("Requests")).to_be_visible()


def test_a_person_without_a_role_is_told_so(window: Console, place: SignedInAt) -> None:
    place.issue_for("stranger")
    sign_in(window, place)
    expect(window.page.get_by_role("alert").filter(has_text="stranger has no role")).to_be_visible()


def test_a_link_is_signed_with_a_delegation_key(window: Console, place: SignedInAt) -> None:
    place.issue_for(ALICE)
    sign_in(window, place, f"/blobs/{KEY.account}/{CONTAINER}/{urllib.parse.quote(BLOB)}")
    window.button("Copy SAS link").click()
    window.page.get_by_label("Valid for").fill("8 d")
    window.button("Copy").click()
    expect(window.page.get_by_role("dialog").get_by_role("alert")).to_contain_text("7 d at most")
    window.page.get_by_label("Valid for").fill("30 min")
    window.button("Copy").click()
    expect(window.page.get_by_text("The link was copied.")).to_be_visible()
    link = window.page.evaluate("navigator.clipboard.readText()")
    assert link.startswith(f"https://{HOST}:{place.server.port}/{KEY.account}/{CONTAINER}/")
    assert f"skoid={ALICE}" in link
    unverified = ssl._create_unverified_context()
    with urllib.request.urlopen(link, context=unverified) as answer:
        assert answer.read() == b"issued"
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(urllib.request.Request(link, method="DELETE"), context=unverified)
    window.button("Sign out").click()
    window.button("Use the development account").click()
    window.link("Access").click()
    window.page.get_by_label("SAS", exact=True).fill(link)
    window.button("Explain").click()
    region = window.page.get_by_role("region", name="Explanation", exact=True)
    expect(region).to_contain_text("User delegation SAS")
    expect(region).to_contain_text("signature right")
    expect(region).to_contain_text(f"The blob {BLOB} in {CONTAINER}.")
