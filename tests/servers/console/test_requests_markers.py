"""A marker in each header and parameter that any operation declares: none of the secret ones is
anywhere in the read API, in its replays, or in a line of the log."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterator
from urllib.parse import quote

import msgspec
import pytest

from strongroom.auth.request import Service
from strongroom.servers.console.requests.answers import RequestAnswers, TailQuestion
from strongroom.servers.console.requests.filters import parse_filter
from strongroom.servers.console.requests.scope import RequestScope
from strongroom.servers.service_listeners import ENDPOINTS
from strongroom.slices import SliceTurns
from tests.servers.console.tail_server import TailServer

MARKER = "MaRkEr0123456789abcdefMaRkEr"
# Four characters of these are shown, so the rest of the marker must be hidden.
REST = MARKER[4:]

SECRET_HEADERS = frozenset(
    (
        *("authorization", "cookie", "set-cookie", "proxy-authorization"),
        *("x-ms-copy-source-authorization", "x-ms-encryption-key", "x-ms-source-encryption-key"),
        *("x-ms-lease-id", "x-ms-proposed-lease-id", "x-ms-source-lease-id"),
        *("x-ms-destination-lease-id", "x-ms-popreceipt"),
    )
)
SECRET_PARAMETERS = frozenset(("sig", "popreceipt"))
URL_HEADERS = (
    *("x-ms-copy-source", "x-ms-rename-source", "x-ms-file-rename-source", "referer"),
    *("x-ms-previous-snapshot-url", "location", "x-ms-meta-link"),
)
# Names that look like secrets, and are none.
HARMLESS = frozenset(("x-ms-file-permission-key", "nextpartitionkey", "nextrowkey"))
SUSPECT = re.compile(r"lease-id|receipt|authori[sz]ation|cookie|secret|passw|token|key|sig")
# The server computes with these before it answers, and the client cannot send them freely.
FRAMING = frozenset(("content-length", "host", "transfer-encoding", "expect"))

OWNER, OPERATOR = RequestScope(account="devstoreaccount1"), RequestScope(is_operator=True)


def declared() -> tuple[frozenset[str], frozenset[str]]:
    """Return the names of all headers and parameters that any operation declares."""
    headers, parameters = set[str](), set[str]()
    for endpoint in ENDPOINTS.values():
        for operation in endpoint.routes.operations:
            for field in operation.accepts:
                headers |= set(field.headers)
                parameters |= set(field.query)
            for when in operation.when:
                name = when.name.lower()
                (parameters if name.startswith("?") else headers).add(name.removeprefix("?"))
    return frozenset(headers), frozenset(one.removeprefix("?") for one in parameters)


HEADERS, PARAMETERS = declared()


@pytest.fixture(scope="module")
def server() -> Iterator[TailServer]:
    with TailServer() as found:
        assert found.client().put("/many?restype=container").status == 201
        yield found


@pytest.fixture(scope="module")
def answers(server: TailServer) -> RequestAnswers:
    urls = {one: f"http://127.0.0.1:{server.ports[one.value]}" for one in Service}
    return RequestAnswers(server.kept, SliceTurns(), server.accounts, lambda: urls)


def shown(server: TailServer, answers: RequestAnswers, first: int) -> str:
    """Return all that the read API says of the requests from one number on."""
    kept = server.settled()
    texts: list[str] = []
    for scope in (OWNER, OPERATOR):
        question = TailQuestion(parse_filter(""), first - 1)
        page = server.call(answers.page(scope, question, asyncio.Event()))
        texts.append(msgspec.json.encode(page).decode())
        for number in range(first, kept.newest + 1):
            found = answers.in_full(scope, number)
            assert found is not None
            texts.append(msgspec.json.encode(found).decode())
    return "\n".join(texts)


def test_the_declarations_name_no_secret_that_is_not_listed() -> None:
    suspects = {name for name in HEADERS if SUSPECT.search(name)}
    assert suspects - SECRET_HEADERS - HARMLESS == set()
    assert {"x-ms-lease-id", "x-ms-copy-source", "x-ms-tags"} <= HEADERS
    suspects = {name for name in PARAMETERS if SUSPECT.search(name)}
    assert suspects - SECRET_PARAMETERS - HARMLESS == set()
    assert {"popreceipt", "prefix"} <= PARAMETERS


@pytest.mark.parametrize("name", sorted((HEADERS | SECRET_HEADERS) - FRAMING))
def test_no_secret_header_is_shown_or_logged(
    server: TailServer, answers: RequestAnswers, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    caplog.set_level(logging.DEBUG)
    first = server.settled().newest + 1
    client = server.client()
    for method, target in (("GET", "/many/b"), ("PUT", "/many/b"), ("PUT", "/many/b?comp=lease")):
        auth = None if name == "authorization" else "SharedKey"
        client.send(method, target, [(name, MARKER), ("x-ms-lease-action", "renew")], auth=auth)
        client.send(method, target, [(name.upper(), f"SharedKey a:{MARKER}")], auth=None)
    text = shown(server, answers, first) + caplog.text
    # It was kept: what is not secret can be seen.
    assert (REST in text) is (name not in SECRET_HEADERS)


@pytest.mark.parametrize("name", sorted(PARAMETERS | SECRET_PARAMETERS))
def test_no_secret_parameter_is_shown_or_logged(
    server: TailServer, answers: RequestAnswers, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    caplog.set_level(logging.DEBUG)
    first = server.settled().newest + 1
    encoded = f"{name[:1]}%{ord(name[1]):02x}{name[2:]}"
    for sent in (name, name.upper(), encoded):
        for client in (server.client(), server.client().anonymous):
            client.get(f"/many/b?{quote(sent, safe='%$')}={MARKER}&sv=2020-08-04&se=1")
            client.get(f"/many?comp=list&{quote(sent, safe='%$')}={MARKER}")
    text = shown(server, answers, first) + caplog.text
    assert (REST in text) is (name not in SECRET_PARAMETERS)


@pytest.mark.parametrize("name", URL_HEADERS)
@pytest.mark.parametrize("parameter", ["sig", "s%69g", "SIG", "s%2569g", "popreceipt"])
@pytest.mark.parametrize("times", [0, 1, 2])
def test_no_signature_in_a_url_in_a_header_is_shown_or_logged(
    server: TailServer,
    answers: RequestAnswers,
    caplog: pytest.LogCaptureFixture,
    name: str,
    parameter: str,
    times: int,
) -> None:
    caplog.set_level(logging.DEBUG)
    first = server.settled().newest + 1
    url = f"http://127.0.0.1:1/acct/c/b?sv=1&{parameter}={MARKER}&se=2"
    for _ in range(times):
        url = quote(url, safe="")
    server.client().put("/many/b", [(name, url), ("x-ms-blob-type", "BlockBlob")])
    server.client().anonymous.put("/many/b", [(name, url)])
    text = shown(server, answers, first) + caplog.text
    assert REST not in text
    assert "127.0.0.1" in text


def test_what_an_answer_has_is_masked_too(server: TailServer, answers: RequestAnswers) -> None:
    client = server.client()
    client.put("/many/leased", {"x-ms-blob-type": "BlockBlob"}, b"x")
    first = server.settled().newest + 1
    given = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1"}
    lease = client.put("/many/leased?comp=lease", given)["x-ms-lease-id"]
    queues = server.client("queue")
    assert queues.put("/queue").status == 201
    body = b"<QueueMessage><MessageText>text</MessageText></QueueMessage>"
    made = queues.send("POST", "/queue/messages", (), body)
    message = re.search(r"<MessageId>(.+?)<", made.body.decode())
    receipt = re.search(r"<PopReceipt>(.+?)<", made.body.decode())
    assert message is not None and receipt is not None
    target = f"/queue/messages/{message[1]}?popreceipt={quote(receipt[1], safe='')}"
    updated = queues.put(f"{target}&visibilitytimeout=1", (), body)["x-ms-popreceipt"]
    text = shown(server, answers, first)
    for secret in (lease, receipt[1], updated):
        assert secret[4:] not in text and quote(secret[4:], safe="") not in text
    assert f"{lease[:4]}***" in text and f"{updated[:4]}***" in text
