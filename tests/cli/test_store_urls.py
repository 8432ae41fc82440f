"""Where the nodes meet: a store by its http URL, and what is said when nobody answers there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from strongroom.cli.exits import Exit
from strongroom.coordination import StoreRefused, Unsupported, connect
from strongroom.coordination.options.url_options import shown_url
from strongroom.coordination.stores.azure.account import DEVELOPMENT_NAME, address_of_http
from strongroom.testing import ports
from strongroom.testing.server import InProcessServer
from tests.cli.command import in_process

KEY = "a2V5"


@pytest.fixture
def server() -> Iterator[InProcessServer]:
    with InProcessServer.start() as server:
        yield server


COMMANDS = {
    "ids": ("ids", "orders", "take"),
    "gate": ("gate", "go-live", "wait"),
    "check-store": ("check-store",),
    "lock": ("lock", "nightly", "--", "true"),
    "locks": ("locks", "list"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_without_a_store_one_line_says_what_to_do(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strongroom.cli.coordination.stores._FIRST_ANSWER_S", 0.1)
    url = f"http://127.0.0.1:{ports.free_port()}/{DEVELOPMENT_NAME}"
    ran = in_process(*COMMANDS[command], STRONGROOM_STORE=f"{url}/locks")
    assert ran.code == Exit.UNAVAILABLE and ran.out == ""
    (line,) = ran.err.strip().splitlines()
    assert line.startswith(f"strongroom: no store answers at {url} (")
    assert "'strongroom serve'" in line and "--store URL" in line and "STRONGROOM_STORE" in line


def test_a_store_on_another_port_is_an_http_url(server: InProcessServer) -> None:
    store = f"{server.url}/{DEVELOPMENT_NAME}/locks"
    ran = in_process("ids", "orders", "take", 2, "--store", store)
    assert (ran.code, ran.out.split()) == (0, ["1", "2"])
    ran = in_process("check-store", STRONGROOM_STORE=store)
    assert ran.code == 0 and "container 'locks'" in ran.out
    with connect(store) as client, client.lock("a") as held:
        assert held.fence == 1


def test_a_refusal_keeps_the_servers_reason(server: InProcessServer) -> None:
    store = f"{server.url}/locks/nodes?key={KEY}"
    ran = in_process("ids", "orders", "take", "--store", store)
    assert ran.code == Exit.SETTINGS
    assert "This server has no account 'locks'." in ran.err and KEY not in ran.err
    with connect(store) as client, pytest.raises(StoreRefused, match="has no account 'locks'"):
        client.lock("a").acquire()


@pytest.mark.parametrize(
    ("url", "account", "container", "endpoint"),
    [
        ("http://h:1/acct/c-1", "acct", "c-1", "http://h:1/acct"),
        ("http://h:1/acct/", "acct", "strongroom-coordination", "http://h:1/acct"),
        ("https://[::1]:1/acct/c-1", "acct", "c-1", "https://[::1]:1/acct"),
        ("https://acct.blob.core.windows.net/c-1", "acct", "c-1",
         "https://acct.blob.core.windows.net"),
    ],
)  # fmt: skip
def test_an_http_url_names_host_account_and_container(
    url: str, account: str, container: str, endpoint: str
) -> None:
    found = address_of_http(url, {"key": KEY}, "")
    assert (found.account.name, found.container) == (account, container)
    assert found.account.endpoint == endpoint


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://h:1", "write http://HOST:PORT/ACCOUNT/CONTAINER"),
        ("http://h:1/a/b/c", "write http://HOST:PORT/ACCOUNT/CONTAINER"),
        ("http://h:1/a/B", "3 to 63"),
        ("http://a:secret@h:1/a/bcd", "key goes into the option"),
        ("http://h:1/acct/locks", "no key for the account 'acct'"),
        ("http://h:1/acct/locks?endpoint=x", "knows no option 'endpoint'"),
        ("azure://h:1/acct", "http://HOST:PORT/ACCOUNT/CONTAINER"),
    ],
)
def test_an_http_url_that_names_no_store_is_refused(url: str, said: str) -> None:
    with pytest.raises(Unsupported, match=said) as refused:
        connect(url)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://user:secret@h:1/0?password=secret", "redis://h:1/0"),
        ("azure://acct/locks?key=secret", "azure://acct/locks"),
        ("azure://", "azure://"),
    ],
)
def test_a_shown_url_has_no_secret(url: str, shown: str) -> None:
    assert shown_url(url) == shown
