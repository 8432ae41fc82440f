"""The sign-in: each way, what a refusal says, what is kept where, and how one signs out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from azure.storage.blob import ContainerSasPermissions, generate_container_sas
from playwright.sync_api import expect

from tests.conformance.client import PUT_BLOB
from tests.interop.console.browsers import Console
from tests.interop.console.conftest import KEY, NewConsole, Served


def sas_url(served: Served, container: str, key: str = KEY.key) -> str:
    """A URL of the Blob service's own port, which permits to read and list."""
    token = generate_container_sas(
        KEY.account,
        container,
        account_key=key,
        permission=ContainerSasPermissions(read=True, list=True),
        expiry=datetime.now(UTC) + timedelta(hours=1),
    )
    return f"{served.server.url}/{KEY.account}/{container}?{token}"


def sign_in_with_key(console: Console, key: str) -> None:
    console.page.get_by_label("Account", exact=True).fill(KEY.account)
    console.page.get_by_label("Key", exact=True).fill(key)
    console.page.get_by_label("Key", exact=True).press("Enter")


def test_the_development_account_is_one_click(console: Console) -> None:
    console.open()
    expect(console.heading("Sign in")).to_be_visible()
    console.button("Use the development account").click()
    expect(console.heading("Overview")).to_be_visible()


def test_an_account_and_its_key(console: Console) -> None:
    console.open()
    sign_in_with_key(console, KEY.key)
    expect(console.heading("Overview")).to_be_visible()
    expect(console.page.get_by_role("banner")).to_contain_text(KEY.account)


def test_a_wrong_key_is_announced_in_the_servers_words(console: Console) -> None:
    console.open()
    sign_in_with_key(console, f"AAAA{KEY.key[4:]}")
    alert = console.page.get_by_role("alert").filter(has_text="AuthenticationFailed")
    expect(alert).to_be_visible()
    expect(console.heading("Sign in")).to_be_visible()


def test_what_is_no_key_is_said_without_asking_the_server(console: Console) -> None:
    console.open()
    console.button("Use the development account").wait_for()
    before = len(console.sent)
    sign_in_with_key(console, "this is no key!")
    expect(console.page.get_by_role("alert").filter(has_text="base64")).to_be_visible()
    assert len(console.sent) == before


def test_a_sas_url_signs_in_for_data_only(console: Console, served: Served) -> None:
    served.client.put("/sas-data?restype=container")
    served.client.put("/sas-data/b", PUT_BLOB, b"text")
    console.open()
    field = console.page.get_by_label("SAS URL")
    field.fill(sas_url(served, "sas-data"))
    field.press("Enter")
    expect(console.heading("Overview")).to_be_visible()
    expect(
        console.page.get_by_text("This view needs another sign-in: account key.")
    ).to_be_visible()
    assert "sig=" not in console.page.url
    assert "sig=" not in console.page.content()


def test_a_wrong_sas_is_announced(console: Console, served: Served) -> None:
    console.open()
    console.page.get_by_label("SAS URL").fill(sas_url(served, "sas-data", f"AAAA{KEY.key[4:]}"))
    console.page.get_by_label("SAS URL").press("Enter")
    alert = console.page.get_by_role("alert").filter(has_text="AuthenticationFailed")
    expect(alert).to_be_visible()


def test_a_reload_asks_again_and_then_shows_the_address(console: Console) -> None:
    console.sign_in("/requests?filter=404")
    expect(console.heading("Requests")).to_be_visible()
    console.page.reload()
    expect(console.heading("Sign in")).to_be_visible()
    console.button("Use the development account").click()
    expect(console.heading("Requests")).to_be_visible()
    expect(console.page.get_by_label("Filter requests")).to_have_value("404")


def test_signing_out_ends_everything(console: Console) -> None:
    console.sign_in("/requests")
    console.link("Overview").click()
    console.button("Show key").click()
    expect(console.page.get_by_text(KEY.key)).to_be_visible()
    console.button("Sign out").click()
    expect(console.heading("Sign in")).to_be_visible()
    assert KEY.key not in console.page.content()
    sent = len(console.sent)
    console.page.go_back()
    expect(console.heading("Sign in")).to_be_visible()
    asked = [one.url for one in console.sent[sent:] if "/console/v1/" in one.url]
    assert [url for url in asked if not url.endswith("/session")] == []


def test_without_a_key_or_a_click_it_signs_out_by_itself(console: Console) -> None:
    console.page.clock.install()
    console.sign_in()
    console.page.clock.fast_forward("29:00")
    expect(console.heading("Overview")).to_be_visible()
    console.page.clock.fast_forward("02:00")
    expect(console.heading("Sign in")).to_be_visible()
    expect(console.page.get_by_text("You were signed out")).to_be_visible()


@pytest.mark.parametrize("kind", ["development", "typed"])
def test_the_key_is_never_sent_nor_stored(console: Console, kind: str) -> None:
    console.open()
    if kind == "typed":
        sign_in_with_key(console, KEY.key)
    else:
        console.button("Use the development account").click()
    expect(console.heading("Overview")).to_be_visible()
    console.link("Requests").click()
    expect(console.heading("Requests")).to_be_visible()
    for one in console.sent:
        assert KEY.key not in f"{one.url} {one.all_headers()} {one.post_data}"
    stored = "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])"
    assert console.page.evaluate(stored) == '[{},{},""]'


def test_an_address_of_no_view_says_so(console: Console) -> None:
    console.sign_in()
    go = "history.pushState(null, '', '/nowhere'); dispatchEvent(new PopStateEvent('popstate'))"
    console.page.evaluate(go)
    expect(console.heading("No such view")).to_be_visible()


def test_two_windows_are_two_people(new_console: NewConsole) -> None:
    one, other = new_console(), new_console()
    one.sign_in()
    other.open()
    expect(other.heading("Sign in")).to_be_visible()
