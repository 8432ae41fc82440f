"""What is kept of the requests of a server over HTTP, and what is not."""

from __future__ import annotations

import gc
import socket
from collections.abc import Iterator

import pytest

from strongroom.servers.console.requests.heads import read_answer, read_request
from strongroom.servers.console.requests.observer import CONSOLE, UNREADABLE
from strongroom.wire.core.http import Request, Response
from tests.conformance.client import PUT_BLOB, Credential
from tests.servers.console.tail_server import TailServer


@pytest.fixture(scope="module")
def server() -> Iterator[TailServer]:
    with TailServer() as found:
        client = found.client()
        assert client.put("/many?restype=container").status == 201
        assert client.put("/many/b", PUT_BLOB, b"content").status == 201
        client.close()
        yield found


def test_a_request_is_kept_with_its_operation_and_its_place(server: TailServer) -> None:
    before = server.clock.wall_ticks()
    server.client().get("/many/b?timeout=5")
    found = server.newest()
    short = found.short
    assert (short.method, short.status, short.code) == ("GET", 200, "")
    assert (short.operation, short.service, short.account) == ("Get Blob", "b", "devstoreaccount1")
    assert (short.container, short.path) == ("many", "/devstoreaccount1/many/b")
    assert (short.who, short.through_console) == ("key1", False)
    assert before <= short.began <= server.clock.wall_ticks() and short.seconds > 0
    assert not found.tls and found.refusal is None
    head = read_request(found.request_head)
    assert (head.method, head.target) == ("GET", "/devstoreaccount1/many/b?timeout=5")
    assert "x-ms-date" in dict(head.fields) and not head.is_cut
    answer = dict(read_answer(found.answer_head).fields)
    assert answer["Content-Length"] == "7"


def test_a_refused_request_is_kept_with_its_rule_and_text(server: TailServer) -> None:
    wrong = Credential("devstoreaccount1", "d3Jvbmc=")
    server.client(credential=wrong).head("/many/b")
    found = server.newest()
    assert (found.short.status, found.short.code) == (403, "AuthenticationFailed")
    assert (found.short.who, found.short.account) == ("unverified key", "devstoreaccount1")
    assert found.refusal is not None and found.refusal.rule is not None
    assert found.refusal.rule.co_qualname == "verify"
    assert "MAC signature found" in found.refusal.text  # which the answer to HEAD does not say


@pytest.mark.parametrize(
    ("listener", "service", "operation", "target"),
    [
        ("queue", "q", "List Queues", "/?comp=list"),
        ("table", "t", "Query Tables", "/Tables"),
        ("file", "f", "List Shares", "/?comp=list"),
        ("all", "b", "List Containers", "/?comp=list"),
    ],
)
def test_each_service_is_named(
    server: TailServer, listener: str, service: str, operation: str, target: str
) -> None:
    server.client(listener).get(target)
    short = server.newest().short
    assert (short.service, short.operation, short.container) == (service, operation, None)


def test_data_through_the_console_is_marked_and_its_other_requests_are_not_kept(
    server: TailServer,
) -> None:
    client = server.client(CONSOLE)
    client.get("/many/b")
    kept = server.settled().newest
    assert server.newest().short.through_console
    for target in ("/.strongroom/console/v1/requests", "/overview", "/assets/page.js", "/blob"):
        server.client(CONSOLE).another(prefix="").get(target)
    assert server.settled().newest == kept
    server.client("blob").another(prefix="").get("/.strongroom/console/v1/requests")
    assert server.settled().newest == kept + 1  # at any other port it is a request like others


def test_anonymous_requests_and_unknown_accounts_are_kept(server: TailServer) -> None:
    server.client().anonymous.get("/many/b")
    assert server.newest().short.who == "anonymous"
    server.client(credential=Credential("nobody", "a2V5")).get("/many/b")
    short = server.newest().short
    assert (short.account, short.status, short.who) == ("nobody", 403, "unverified key")
    server.client().anonymous.get("/many/b?sv=2020-08-04&sig=abc&se=2030-01-01&sp=r&sr=b")
    assert server.newest().short.who == "unverified SAS"


def test_bytes_that_are_no_request_are_kept(server: TailServer) -> None:
    with socket.create_connection(("127.0.0.1", server.ports["blob"])) as client:
        client.sendall(b"no request\r\n\r\n")
        assert b"400" in client.recv(4096)
    found = server.newest()
    assert (found.short.operation, found.short.status) == (UNREADABLE, 400)
    assert found.request_head == b"" and found.short.account == ""


def test_a_head_that_comes_in_pieces_is_kept_whole_and_a_long_one_is_cut(
    server: TailServer,
) -> None:
    lines = b"GET /devstoreaccount1/many/b HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: %b\r\n\r\n"
    for value in (b"b" * 100, b"b" * 30_000):
        sent = lines % value
        with socket.create_connection(("127.0.0.1", server.ports["blob"])) as client:
            for at in range(0, len(sent), 1000):
                client.sendall(sent[at : at + 1000])
            client.recv(4096)
        found = server.newest()
        kept = found.request_head.removesuffix(b"\0")
        assert sent.startswith(kept)
        assert (kept == sent[:-4]) is (len(value) == 100)
        assert read_request(found.request_head).is_cut is (len(value) > 100)


def test_a_body_that_comes_with_its_head_is_not_kept(server: TailServer) -> None:
    body = b"BODYMARKER" * 10
    server.client().put("/many/marked", PUT_BLOB, body)
    found = server.newest()
    assert b"BODYMARKER" not in found.request_head + found.answer_head
    assert found.short.operation == "Put Blob"


def test_neither_requests_nor_answers_stay_alive(server: TailServer) -> None:
    client = server.client()
    for _ in range(20):
        client.get("/many/b")
    server.settled()
    gc.collect()
    kept_by = [one for one in gc.get_objects() if isinstance(one, Request | Response)]
    assert len(kept_by) < 20
