"""The coordination part of a served console: whose records, by which credential."""

from __future__ import annotations

import base64
import http.client
import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pytest

from strongroom.auth.accounts import Account
from strongroom.clock import SystemClock
from strongroom.config import AccountSources, ConfigError, ConsoleSettings, Settings
from strongroom.console.serving import open_coordination
from strongroom.console.store_sources import store_source
from strongroom.coordination import connect
from strongroom.testing import InProcessServer
from strongroom.testing.ports import HOST, free_port
from strongroom.values import rfc1123
from tests.cli.command import in_process
from tests.cli.terminal import AtTerminal
from tests.conformance.signing import authorization

API = "/.strongroom/console/v1/coordination"
SHOP, BANK = Account("shop", (b"first",)), Account("bank", (b"second",))


class Answer(NamedTuple):
    status: int
    document: Any


class Served:
    """Two accounts, of which `shop` is the operator's, and a console with a further store."""

    def __init__(self, server: InProcessServer) -> None:
        self.server = server
        self.port = server._app.ports["console"]

    def url(self, account: Account) -> str:
        key = base64.b64encode(account.keys[0]).decode()
        return f"http://{HOST}:{self.server.port}/{account.name}/locks?key={key}"

    def ask(self, target: str, method: str = "GET", **headers: str) -> Answer:
        connection = http.client.HTTPConnection(HOST, self.port, timeout=60)
        connection.request(method, target, headers=headers)
        found = connection.getresponse()
        document = json.loads(found.read())
        connection.close()
        return Answer(found.status, document)

    def signed(self, target: str, account: Account, method: str = "GET", **headers: str) -> Answer:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        sent |= {"x-ms-date": rfc1123(SystemClock().wall_ticks()), "x-ms-version": "2025-11-05"}
        key = base64.b64encode(account.keys[0]).decode()
        text = authorization("SharedKey", account.name, key, method, target, list(sent.items()))
        return self.ask(target, method, **sent, Authorization=text)


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    console = ConsoleSettings(
        free_port(), operator="shop", coordination_stores=("jobs=memory://u:secret@served",)
    )
    settings = Settings(
        data=None,
        blob_port=free_port(),
        queue_port=free_port(),
        table_port=free_port(),
        file_port=free_port(),
        accounts=AccountSources((SHOP, BANK)),
        console=console,
    )
    with InProcessServer(settings) as server:

        async def add() -> None:
            open_coordination(server._app)

        _run(server, add())
        served = Served(server)
        for account in (SHOP, BANK):
            with connect(served.url(account)) as client:
                client.gate(f"of-{account.name}").open()
        yield served


def _run(server: InProcessServer, work: Any) -> None:
    import asyncio

    asyncio.run_coroutine_threadsafe(work, server.loop).result(30)


def _gates(answer: Answer) -> list[str]:
    assert answer.status == 200, answer
    parts: list[Mapping[str, Any]] = answer.document["containers"]
    return [gate["name"] for part in parts for gate in part["records"]["gates"]]


def test_an_account_sees_its_own_records(served: Served) -> None:
    assert _gates(served.signed(API, SHOP)) == ["of-shop"]
    assert _gates(served.signed(API, BANK)) == ["of-bank"]
    assert "shop" not in json.dumps(served.signed(API, BANK).document)


def test_further_stores_are_for_operators_and_show_no_credentials(served: Served) -> None:
    stores = served.signed(API, SHOP).document["stores"]
    assert stores == [{"name": "jobs", "url": "memory://served", "may_act": False}]
    assert served.signed(API, BANK).document["stores"] == []
    assert served.signed(f"{API}?store=jobs", SHOP).status == 200
    refused = served.signed(f"{API}?store=jobs", BANK)
    assert (refused.status, refused.document["error"]["needs"]) == (403, "operator")
    assert served.signed(f"{API}?store=none", BANK).document == refused.document
    act = served.signed(f"{API}/gates/go/open?store=jobs", SHOP, "POST", Content_Length="0")
    assert act.status == 403


def test_an_act_is_one_of_who_signed_it(served: Served) -> None:
    target = f"{API}/gates/of-bank/rearm?container=locks"
    seen = {"Content_Length": "0", "If_Match": '"7"'}
    assert served.signed(target, BANK, "POST", **seen).status == 412
    done = served.signed(target, BANK, "POST", Content_Length="0", If_Match='"1"')
    assert done == Answer(200, {"generation": 2, "is_open": False, "state": "2"})
    with connect(served.url(BANK)) as client:
        assert client.gate("of-bank").show().who == "bank (console)"


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_sas_and_nobody_are_refused(served: Served, method: str) -> None:
    target = API if method == "GET" else f"{API}/gates/of-shop/rearm?container=locks"
    sas = "sv=2021-12-02&ss=b&srt=sco&sp=rwl&se=2999-01-01&sig=AAAA"
    mark = "&" if "?" in target else "?"
    for asked in (target, f"{target}{mark}{sas}"):
        refused = served.ask(asked, method)
        assert refused.status in (401, 403) and refused.document["error"]["needs"]
    wrong = Account("shop", (b"wrong",))
    assert served.signed(target, wrong, method, Content_Length="0").status == 403
    with connect(served.url(SHOP)) as client:
        assert client.gate("of-shop").show().is_open


@pytest.mark.parametrize(
    "text", ["", "jobs", "=redis://h", "a b=redis://h", "jobs=h:1", "jobs=redis://secret h"]
)
def test_a_store_that_cannot_be_read_is_refused_without_its_url(text: str) -> None:
    with pytest.raises(ConfigError, match="NAME=URL") as refused:
        store_source(text)
    assert "secret" not in str(refused.value)


def test_a_command_at_a_terminal_says_where_the_console_is(served: Served) -> None:
    command = AtTerminal("gate", "of-shop", "show", "--store", served.url(SHOP))
    command.await_text(f"see it at http://{HOST}:{served.port}/coordination")
    assert command.end() == 0
    for_scripts = AtTerminal("locks", "list", "--json", "--store", served.url(SHOP))
    assert for_scripts.end() == 0 and "see it at" not in for_scripts.seen


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--coordination-acts",), "--coordination-store"),
        (("--host", "0.0.0.0", "--coordination-store", "a=memory://b"), "--console"),
    ],
)
def test_flags_that_would_do_nothing_are_refused(flags: tuple[str, ...], said: str) -> None:
    ran = in_process("serve", "--in-memory", *flags)
    assert ran.code in (2, 3) and said in ran.err
