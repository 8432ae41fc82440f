"""The sign-in at an issuer, in the browser: there and back with a code, and what is refused."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from strongroom.testing.ports import HOST, free_port
from strongroom.testing.server import Server
from tests.auth import tokens
from tests.conformance.client import PUT_BLOB, Client
from tests.interop.console.browsers import EVENT_TIMEOUT_MS, Console
from tests.interop.console.conftest import KEY
from tests.servers.console.small_issuer import CLIENT, SmallIssuer, issuing

ALICE, OLGA = "alice", "olga"
CONTAINER, BLOB = "issued", "a b"
STORED = "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])"


@dataclass
class SignedInAt:
    """A server with a console over TLS, the issuer of its tokens, and a client of its blobs."""

    url: str
    issuer: SmallIssuer
    client: Client

    def issue_for(self, principal: str) -> str:
        """Let the issuer know this person from now on; return the token that it will give."""
        token = tokens.token(iss=self.issuer.url, oid=principal)
        self.issuer.access_token = token
        return token


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SignedInAt]:
    folder: Path = tmp_path_factory.mktemp("issuer")
    keys, roles, port = folder / "keys.json", folder / "roles.json", free_port()
    keys.write_bytes(tokens.key_set())
    rows = ((ALICE, "Storage Blob Data Contributor"), (OLGA, "Strongroom Operator"))
    assignments = [
        {"principal": principal, "role": role, "account": KEY.account} for principal, role in rows
    ]
    roles.write_text(json.dumps({"assignments": assignments}))
    roles.chmod(0o600)
    with issuing(folder) as issuer:
        flags = (
            *("--console-port", str(port), "--tls"),
            *("--oauth-issuer", issuer.url, "--oauth-keys", str(keys)),
            *("--roles-file", str(roles), "--console-oidc-client", CLIENT),
        )
        trusted = {"SSL_CERT_FILE": str(issuer.certificate)}
        with Server.start(flags=flags, environment=trusted, test_clock=False) as server:
            client = Client(server.port, KEY)
            client.put(f"/{CONTAINER}?restype=container")
            client.put(f"/{CONTAINER}/{urllib.parse.quote(BLOB)}", PUT_BLOB, b"issued")
            yield SignedInAt(f"https://{HOST}:{port}", issuer, client)
            client.close()


@pytest.fixture
def window(browser: Browser, place: SignedInAt) -> Iterator[Console]:
    """A window at the sign-in. At the end, it asked the issuer for nothing but the sign-in, and
    nothing is stored."""
    place.issuer.mood = ""
    place.issuer.asked.clear()
    context = browser.new_context(
        ignore_https_errors=True, permissions=["clipboard-read", "clipboard-write"]
    )
    context.set_default_timeout(EVENT_TIMEOUT_MS)
    console = Console(context.new_page(), place.url)
    yield console
    foreign = [one.url for one in console.sent if not one.url.startswith(place.url)]
    assert all(url.startswith(f"{place.issuer.url}/authorize?") for url in foreign), foreign
    assert console.page.evaluate(STORED) == '[{},{},""]'
    assert console.page.evaluate("window.violations") == []
    assert console.complaints == []
    context.close()


def sign_in(console: Console, place: SignedInAt, path: str = "/") -> None:
    """Follow the link to the issuer, from an address of the page."""
    console.open(path)
    name = f"Sign in with {urllib.parse.urlsplit(place.issuer.url).netloc}"
    console.page.get_by_role("link", name=name, exact=True).click()


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
    assert link.startswith(f"https://{HOST}:{place.client.port}/{KEY.account}/{CONTAINER}/")
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
