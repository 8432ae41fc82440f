"""The documents of the read API about requests: pages of the tail, and why one was refused."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from urllib.parse import parse_qs, unquote

import pytest

from strongroom.auth.request import Service
from strongroom.auth.roles import Assignment
from strongroom.servers.console.api.documents import RequestInFull, RequestsPage, Why
from strongroom.servers.console.requests.answers import RequestAnswers, TailQuestion
from strongroom.servers.console.requests.filters import parse_filter
from strongroom.servers.console.requests.observer import CONSOLE
from strongroom.servers.console.requests.rules import RULES
from strongroom.servers.console.requests.scope import RequestScope
from strongroom.slices import SliceTurns
from tests.conformance.client import PUT_BLOB, VERSION, Client
from tests.conformance.sas import account_sas, at, service_sas
from tests.conformance.signing import authorization, mac, string_to_sign
from tests.servers.console.tail_server import OTHER, TailServer
from tests.tidy.rules_links import _anchors
from tests.tidy.sources import ROOT

OPERATOR = RequestScope(is_operator=True)
OWNER = RequestScope(account="devstoreaccount1")
ANY = parse_filter("")


@pytest.fixture(scope="module")
def server() -> Iterator[TailServer]:
    with TailServer() as found:
        client = found.client()
        assert client.put("/many?restype=container").status == 201
        assert client.put("/many/b", PUT_BLOB, b"content").status == 201
        yield found


@pytest.fixture(scope="module")
def answers(server: TailServer) -> RequestAnswers:
    urls = {one: f"http://127.0.0.1:{server.ports[one.value]}" for one in Service}
    return RequestAnswers(server.kept, SliceTurns(), server.accounts, lambda: urls)


Ask = Callable[..., RequestsPage]


@pytest.fixture
def ask(server: TailServer, answers: RequestAnswers) -> Ask:
    def page(
        scope: RequestScope = OPERATOR,
        wanted: str = "",
        after: int = 0,
        wait_s: float = 0.0,
        limit: int = 500,
    ) -> RequestsPage:
        server.settled()
        question = TailQuestion(parse_filter(wanted), after, wait_s, limit)
        return server.call(answers.page(scope, question, asyncio.Event()))

    return page


def in_full(
    server: TailServer, answers: RequestAnswers, scope: RequestScope = OWNER
) -> RequestInFull:
    found = answers.in_full(scope, server.settled().newest)
    assert found is not None
    return found


def why(server: TailServer, answers: RequestAnswers, scope: RequestScope = OWNER) -> Why:
    found = in_full(server, answers, scope).why
    assert found is not None
    return found


def test_a_page_has_the_newest_requests_in_order(server: TailServer, ask: Ask) -> None:
    for number in range(5):
        server.client().get(f"/many/b{number}")
    page = ask(limit=3)
    assert [row.path.rpartition("/")[2] for row in page.requests] == ["b2", "b3", "b4"]
    assert page.newest == page.requests[-1].number == server.kept.newest
    assert page.oldest_kept == 1
    row = page.requests[-1]
    assert (row.who, row.service, row.code) == ("key1 devstoreaccount1", "blob", "BlobNotFound")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z", row.time)


def test_a_page_after_a_number_goes_on_where_the_last_one_ended(
    server: TailServer, ask: Ask
) -> None:
    before = ask().newest
    for number in range(5):
        server.client().get(f"/many/c{number}")
    first = ask(after=before, limit=3)
    assert [row.number - before for row in first.requests] == [1, 2, 3]
    second = ask(after=first.newest)
    assert [row.number - before for row in second.requests] == [4, 5]
    assert ask(after=second.newest).requests == ()
    # Before a restart, the numbers were higher.
    assert ask(after=second.newest + 1000, limit=1).requests == second.requests[-1:]


def test_a_poll_ends_when_a_request_comes_that_is_wanted(
    server: TailServer, answers: RequestAnswers, ask: Ask
) -> None:
    newest = ask().newest
    question = TailQuestion(parse_filter("wanted"), newest, 30.0)

    async def poll() -> RequestsPage:
        waiting = asyncio.ensure_future(answers.page(OPERATOR, question, asyncio.Event()))
        await asyncio.sleep(0.3)
        assert not waiting.done()
        await asyncio.to_thread(server.client().get, "/many/unlike")
        await asyncio.to_thread(server.client().get, "/many/wanted")
        return await asyncio.wait_for(waiting, 20)

    assert [row.path for row in server.call(poll()).requests] == ["/devstoreaccount1/many/wanted"]


def test_nobody_waits_at_a_server_that_stops_or_after_leaving(server: TailServer) -> None:
    question = TailQuestion(ANY, server.settled().newest, 30.0)
    stopping = RequestAnswers(server.kept, SliceTurns(), server.accounts, dict, lambda: True)
    began = time.monotonic()
    assert server.call(stopping.page(OPERATOR, question, asyncio.Event())).requests == ()
    plain = RequestAnswers(server.kept, SliceTurns(), server.accounts, dict)
    ended = asyncio.Event()
    ended.set()
    assert server.call(plain.page(OPERATOR, question, ended)).requests == ()
    assert time.monotonic() - began < 25


def test_each_viewer_sees_its_own_requests(
    server: TailServer, answers: RequestAnswers, ask: Ask
) -> None:
    server.client().get("/many/mine")
    mine = server.settled().newest
    server.client("queue").get("/?comp=list")
    queue = server.settled().newest
    other, reader = (
        RequestScope(account=OTHER.name),
        RequestScope(
            assignments=(Assignment("me", "Storage Blob Data Reader", "devstoreaccount1", "many"),)
        ),
    )
    for scope, seen in (
        (OPERATOR, [mine, queue]),
        (OWNER, [mine, queue]),
        (other, []),
        (reader, [mine]),
        (RequestScope(), []),
    ):
        assert [row.number for row in ask(scope, after=mine - 1).requests] == seen
        found = [number for number in (mine, queue) if answers.in_full(scope, number) is not None]
        assert found == seen
    assert answers.in_full(OPERATOR, 10**9) is None and answers.in_full(OPERATOR, 0) is None


def test_a_wrong_signature_shows_what_was_signed_to_the_owner_only(
    server: TailServer, answers: RequestAnswers
) -> None:
    lease = "11111111-2222-3333-4444-555555555555"
    key = server.client().credential.key
    fields = [
        ("x-ms-version", VERSION),
        ("x-ms-date", at_rfc()),
        ("x-ms-lease-id", lease),
    ]
    target = "/devstoreaccount1/many/b"
    right = authorization("SharedKey", "devstoreaccount1", key, "GET", target, fields)
    wrong = "SharedKey devstoreaccount1:" + mac("d3Jvbmc=", "text")
    server.client().get("/many/b", [*fields, ("Authorization", wrong)], auth=None)
    found = in_full(server, answers)
    assert found.why is not None and found.why.string_to_sign is not None
    expected = string_to_sign("SharedKey", "devstoreaccount1", "GET", target, fields, False)
    assert found.why.string_to_sign == expected.replace(lease, "1111***")
    assert found.why.rule == "B-SKY-02"
    assert found.why.link is not None and found.why.link.endswith("blob/access.md#sharedkey")
    assert "auth.shared_key.verify" in found.why.text
    (mistake,) = found.why.mistakes
    assert "cannot be told apart" in mistake
    text = repr(found)
    for secret in (right.partition(":")[2], wrong.partition(":")[2], key, lease):
        assert secret not in text
    assert why(server, answers, OPERATOR).string_to_sign is None
    reader = RequestScope(
        assignments=(Assignment("me", "Storage Blob Data Reader", "devstoreaccount1", "many"),)
    )
    assert why(server, answers, reader).string_to_sign is None
    assert why(server, answers, reader).mistakes == ()


def at_rfc(seconds: float = 0.0) -> str:
    return formatdate(time.time() + seconds, usegmt=True)


def send_signed(
    client: Client,
    signed: tuple[str, str, list[tuple[str, str]]],
    sent: tuple[str, str, list[tuple[str, str]]],
    key: str,
) -> int:
    """Sign one request (method, target, headers) and send another one with that signature."""
    given = authorization("SharedKey", "devstoreaccount1", key, *signed)
    method, target, fields = sent
    plain = client.another(prefix="")
    return plain.send(method, target, [*fields, ("Authorization", given)], auth=None).status


BASE = "/devstoreaccount1/many/b"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda m, t, f: (m, t.replace("?", "/?"), f), "with a slash at its end"),
        (lambda m, t, f: (m, t.removeprefix("/devstoreaccount1"), f), "without the account"),
        (lambda m, t, f: (m, f"/devstoreaccount1{t}", f), "once more"),
        (lambda m, t, f: (m, f"/blob{t}", f), "a proxy removed"),
        (lambda m, t, f: (m, t.replace("%27", "'"), f), "browsers rewrite"),
        (lambda m, t, f: (m, unquote(t), f), "signed decoded"),
        (
            lambda m, t, f: (m, t, [*f, ("Content-Type", "application/octet-stream")]),
            "content-type",
        ),
        (lambda m, t, f: (m, t, [p for p in f if p[0] != "Range"]), "header range"),
        (lambda m, t, f: (m, t, f[:2] + f[3:]), "header x-ms-client-request-id"),
        (lambda m, t, f: ("HEAD", t, f), "method HEAD was signed"),
        (lambda m, t, f: (m, t.partition("?")[0], f), "query was not signed"),
        (lambda m, t, f: (m, t, [*f, ("Content-Length", "0")]), None),
    ],
)
def test_a_known_variant_of_the_string_to_sign_is_named(
    server: TailServer,
    answers: RequestAnswers,
    change: Callable[..., tuple[str, str, list[tuple[str, str]]]],
    says: str | None,
) -> None:
    client = server.client()
    fields = [
        ("x-ms-version", VERSION),
        ("x-ms-date", at_rfc()),
        ("x-ms-client-request-id", "me"),
        ("Range", "bytes=0-3"),
    ]
    target = f"{BASE}%20c%27d?timeout=5&snapshot=a%20b"
    sent = ("GET", target, fields)
    status = send_signed(client, change(*sent), sent, client.credential.key)
    if says is None:  # an empty length is signed as none
        assert status != 403
        return
    assert status == 403
    mistakes = why(server, answers).mistakes
    assert any(says in one for one in mistakes), mistakes
    assert not any("cannot be told apart" in one for one in mistakes)


def refused_sas(server: TailServer, query: str, path: str = "/many/b") -> None:
    answer = server.client().anonymous.get(f"{path}?{query}")
    assert answer.status in (401, 403, 404), answer.status


@pytest.mark.parametrize(
    ("query", "rule", "says"),
    [
        (lambda c: account_sas(c, sp="w"), "B-SAS-06", "lacks r (read)"),
        (lambda c: account_sas(c, ss="q"), "B-ASA-02", "not for the blob service"),
        (lambda c: account_sas(c, srt="s"), "B-ASA-02", "srt=s"),
        (lambda c: account_sas(c, se=at(-60)), "B-SAS-01", "has expired"),
        (lambda c: account_sas(c, st=at(600)), "B-SAS-01", "not valid yet"),
        (lambda c: account_sas(c, sip="10.0.0.1"), "B-SAS-04", "sip=10.0.0.1"),
        (lambda c: account_sas(c, spr="https"), "B-SAS-05", "came over HTTP"),
        (lambda c: service_sas(c, "many", si="gone", sp="", se=""), "B-SSA-05", "'gone'"),
        (lambda c: service_sas(c, "other"), "B-SAS-02", "cannot be told apart"),
        (lambda c: "", "B-PUB-02", "no credentials"),
    ],
)
def test_the_common_mistakes_with_a_sas_are_named(
    server: TailServer, answers: RequestAnswers, query: Callable[..., str], rule: str, says: str
) -> None:
    refused_sas(server, query(server.client().credential))
    found = why(server, answers)
    assert found.rule == rule, found
    assert any(says in one for one in found.mistakes), found.mistakes
    assert found.link is not None


def test_the_string_to_sign_of_a_sas_is_that_of_its_maker(
    server: TailServer, answers: RequestAnswers
) -> None:
    token = account_sas(server.client().credential, sp="w")
    refused_sas(server, token)
    signed = why(server, answers).string_to_sign
    assert signed is not None
    key = server.client().credential.key
    assert mac(key, signed) == parse_qs(token)["sig"][0]


def test_other_common_mistakes_are_named(server: TailServer, answers: RequestAnswers) -> None:
    client = server.client()
    for seconds, way in ((-3600, "60 minutes behind"), (3600, "60 minutes ahead")):
        client.get("/many/b", [("x-ms-date", at_rfc(seconds))])
        found = why(server, answers)
        assert found.rule == "B-SKY-05" and way in found.mistakes[0]
    nobody = client.another(prefix="/nobody")
    nobody.get("/many/b")
    found = why(server, answers, OPERATOR)
    assert found.rule == "B-SKY-03" and "no account 'nobody'" in found.mistakes[0]
    client.get("/many/b", {"Authorization": "SharedKey other:YQ=="}, auth=None)
    assert "another account" in why(server, answers).mistakes[0]
    client.get("/many/b", {"Authorization": "Bearer abc"}, auth=None)
    assert why(server, answers).rule == "B-SKY-04"
    client.get("/many/b", {"Authorization": "nonsense"}, auth=None)
    assert why(server, answers).rule == "B-SKY-04"


def test_a_refusal_without_a_row_has_the_servers_words_and_the_page_on_errors(
    server: TailServer, answers: RequestAnswers
) -> None:
    server.client().get("/many/gone")
    found = why(server, answers)
    assert (found.rule, found.string_to_sign, found.mistakes) == ("", None, ())
    assert found.link is not None and "docs/errors.md#" in found.link
    assert "The specified blob does not exist." in found.text


def test_a_cut_head_is_said_to_be_cut(server: TailServer, answers: RequestAnswers) -> None:
    server.client().get("/many/b", [("X-Long", "x" * 6000), ("Authorization", "SharedKey a:b")])
    found = in_full(server, answers)
    assert found.is_cut and found.is_whole
    assert found.why is not None and found.why.string_to_sign is None


def test_each_rule_stands_where_its_link_leads() -> None:
    pages = {rule.page: (ROOT / rule.page).read_text(encoding="utf-8") for rule in RULES}
    for rule in RULES:
        text = pages[rule.page]
        assert rule.anchor in _anchors(text), rule
        if rule.number:
            before = text[: text.index(f"**{rule.number}**")]
            heading = re.findall(r"^#+ (.+)$", before, re.MULTILINE)[-1]
            assert rule.anchor in _anchors(f"# {heading}\n"), rule


def test_requests_through_the_console_say_so_and_are_explained(
    server: TailServer, answers: RequestAnswers
) -> None:
    server.client(CONSOLE).get("/many/b")
    found = in_full(server, answers)
    assert found.request.through_console and found.why is None
    assert found.replay is not None
    assert str(server.ports[CONSOLE]) not in found.replay.curl
    assert f"http://127.0.0.1:{server.ports['blob']}/devstoreaccount1/many/b" in found.replay.curl
