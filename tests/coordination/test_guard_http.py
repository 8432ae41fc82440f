"""The Fence header and its middleware: the request of an old holder is refused, by any fence
keeper."""

from __future__ import annotations

import asyncio
import http.client
import json
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server
from wsgiref.validate import validator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.coordination import connect
from strongroom.coordination.errors import BadName, LockLost
from strongroom.coordination.guards import FencedOut, Guards, Token
from strongroom.coordination.guards.http import (
    ENVIRON_KEY,
    HEADER,
    BadFence,
    FenceAsgi,
    FenceWsgi,
    check_answer,
    header_of,
    parse_header,
)
from strongroom.coordination.guards.keepers import (
    FenceKeeper,
    MemoryKeeper,
    sqlite_keeper,
)
from strongroom.coordination.schema.names import ESCAPED_MAX, escape
from strongroom.coordination.schema.records import FENCE_MAX
from strongroom.testing.ports import HOST, free_port
from tests.coordination.test_fence_keepers import format_keeper

# The header


def test_the_documented_form() -> None:
    assert header_of(Token("go-live now", 7)) == 'name="go-live%20now"; fence=7'
    assert parse_header('name="go-live%20now"; fence=7') == Token("go-live now", 7)


@given(st.text(min_size=1, max_size=60), st.integers(0, FENCE_MAX))
def test_every_name_and_fence_comes_back(name: str, fence: int) -> None:
    try:
        assert len(escape(name)) <= ESCAPED_MAX
    except BadName:
        return
    text = header_of(Token(name, fence))
    assert text.isascii() and text.isprintable()
    assert parse_header(text) == Token(name, fence)


@pytest.mark.parametrize(
    "text",
    [
        "name=invoices; fence=7",
        "fence=7;name=invoices",
        ' name="invoices" ;\tfence="7" ',
        'Name="invoices";FENCE=7; hint=x; other="a\\"b;c"',
        'name="\\invoices"; fence=7'.replace("\\i", "i"),
        "name=invoices;fence=007;",
    ],
)
def test_other_forms_that_are_read(text: str) -> None:
    assert parse_header(text) == Token("invoices", 7)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "no name"),
        ("7", "character 1"),
        ("name=invoices", "no fence"),
        ("fence=7", "no name"),
        ('name=""; fence=7', "name"),
        ("name=invoices; fence=", "character 15"),
        ("name=invoices; fence=-1", "no number"),
        ("name=invoices; fence=1e3", "no number"),
        ("name=invoices; fence=\u0667", "character 15"),
        (f"name=invoices; fence={FENCE_MAX + 1}", "no number"),
        ("name=invoices; fence=" + "9" * 400, "no number"),
        ("name=invoices; fence=7; fence=8", "fence twice"),
        ("name=a; NAME=b; fence=8", "name twice"),
        ("name=invoices, fence=7", "character 1"),
        ('name="invoices; fence=7', "character 1"),
        ('name="a\\n"; fence=7', "character 1"),
        ("name=invoices; fence=7, name=invoices; fence=8", "character 15"),
        ('name="go live"; fence=7', "no escaped name"),
        ('name="%zz"; fence=7', "no escaped name"),
        ('name="%c3"; fence=7', "no escaped name"),
        ("name=a" + "b" * 2000 + "; fence=7", "1024"),
        ('name="a\x00"; fence=7', "character 1"),
    ],
)
def test_a_header_that_cannot_be_read(text: str, match: str) -> None:
    with pytest.raises(BadFence, match=match):
        parse_header(text)


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_header(text)
    except BadFence:
        pass


def test_a_handle_gives_its_header_until_it_is_lost() -> None:
    with connect("memory://") as client:
        with client.lock("in/voices") as held:
            assert held.guard.headers() == {HEADER: f'name="in%2Fvoices"; fence={held.fence}'}
        with pytest.raises(LockLost):
            held.guard.headers()


def test_an_asyncio_handle_gives_its_header() -> None:
    async def scenario() -> dict[str, str]:
        async with connect("memory://").aio.lock("a") as held:
            return held.guard.headers()

    assert asyncio.run(scenario()) == {HEADER: 'name="a"; fence=1'}


# The middleware, over real sockets: WSGI by wsgiref, ASGI by a bridge of a few lines


@pytest.fixture(params=["memory", "sqlite", "format"])
def keeper(request: pytest.FixtureRequest, tmp_path: Path) -> FenceKeeper:
    path = tmp_path / "fences.db"
    made: dict[str, Callable[[], FenceKeeper]] = {
        "memory": MemoryKeeper,
        "sqlite": lambda: sqlite_keeper(path, 30),
        "format": lambda: format_keeper(path),
    }
    return made[request.param]()


done: list[tuple[str, Token | None]] = []


def wsgi_application(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    done.append((environ["REQUEST_METHOD"], environ.get(ENVIRON_KEY)))
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "4")])
    return [b"done"]


async def asgi_application(scope: Any, receive: Any, send: Any) -> None:
    done.append((scope["method"], scope.get(ENVIRON_KEY)))
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"done"})


def bridged(application: Any) -> Callable[..., Iterable[bytes]]:
    """A WSGI face of an ASGI application, so that one server serves both."""

    def run(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        headers = [
            (key[5:].replace("_", "-").lower().encode(), text.encode("latin-1"))
            for key, text in environ.items()
            if key.startswith("HTTP_")
        ]
        scope = {"type": "http", "method": environ["REQUEST_METHOD"], "headers": headers}
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        asyncio.run(application(scope, receive, send))
        start, body = sent
        assert (start["type"], body["type"]) == ("http.response.start", "http.response.body")
        answer = [(key.decode(), text.decode()) for key, text in start["headers"]]
        start_response(f"{start['status']} -", answer)
        return [body["body"]]

    return run


class Quiet(WSGIRequestHandler):
    """Writes no log."""

    def log_message(self, *_: Any) -> None:
        pass


Ask = Callable[..., tuple[int, Any]]


def serving(application: Any) -> Iterator[Ask]:
    server = make_server(HOST, free_port(), application, handler_class=Quiet)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()

    def ask(method: str, *fences: str) -> tuple[int, Any]:
        connection = http.client.HTTPConnection(HOST, server.server_port, timeout=30)
        connection.putrequest(method, "/thing")
        for fence in fences:
            connection.putheader(HEADER, fence)
        connection.endheaders()
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        is_problem = answer.getheader("Content-Type") == "application/problem+json"
        return answer.status, json.loads(body) if is_problem else body

    done.clear()
    yield ask
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(params=["wsgi", "asgi"])
def ask(request: pytest.FixtureRequest, keeper: FenceKeeper) -> Iterator[Ask]:
    if request.param == "wsgi":
        yield from serving(validator(FenceWsgi(validator(wsgi_application), keeper, "invoices")))
    else:
        yield from serving(bridged(FenceAsgi(asgi_application, keeper, "invoices")))


def fence(number: int, name: str = "invoices") -> str:
    return header_of(Token(name, number))


def test_a_stale_holder_is_refused_and_does_nothing(ask: Ask) -> None:
    assert ask("PUT", fence(3)) == (200, b"done")
    assert ask("POST", fence(5)) == (200, b"done")
    status, problem = ask("PUT", fence(3))
    assert status == 412
    assert (problem["name"], problem["fence"], problem["seen"]) == ("invoices", 3, 5)
    assert "it has seen fence 5" in problem["detail"] and "nothing was done" in problem["detail"]
    assert ask("DELETE", fence(5)) == (200, b"done")
    assert done == [
        ("PUT", Token("invoices", 3)),
        ("POST", Token("invoices", 5)),
        ("DELETE", Token("invoices", 5)),
    ]


def test_reading_needs_no_fence(ask: Ask) -> None:
    ask("PUT", fence(5))
    for method in ("GET", "OPTIONS"):
        assert ask(method) == (200, b"done")
        assert ask(method, fence(1)) == (200, b"done")
    assert [token for _, token in done[1:]] == [None] * 4


@pytest.mark.parametrize(
    ("fences", "status", "says"),
    [
        ((), 428, "send the header Fence"),
        (("rubbish",), 400, "should look like"),
        ((fence(-1),), 400, "no number"),
        ((fence(7, "others"),), 412, "guarded by 'invoices'"),
    ],
)
def test_what_is_no_token_of_this_resource(
    ask: Ask, fences: tuple[str, ...], status: int, says: str
) -> None:
    for method in ("PUT", "POST", "PATCH", "DELETE"):
        got, problem = ask(method, *fences)
        assert (got, problem["status"]) == (status, status)
        assert says in problem["detail"]
    assert done == []
    assert ask("PUT", fence(0))[0] == 200


def test_two_headers_are_refused() -> None:
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"fence", fence(9).encode()), (b"fence", fence(1).encode())]
    scope = {"type": "http", "method": "PUT", "headers": headers}
    guarded: Any = FenceAsgi(asgi_application, MemoryKeeper())
    asyncio.run(guarded(scope, None, send))
    assert sent[0]["status"] == 400
    # A WSGI server joins them.
    environ = {"REQUEST_METHOD": "PUT", "HTTP_FENCE": f"{fence(9)},{fence(1)}"}
    started: list[str] = []
    wsgi = FenceWsgi(wsgi_application, MemoryKeeper())
    wsgi(environ, lambda status, headers: started.append(status))
    assert started == ["400 Bad Request"]


def test_a_keeper_that_cannot_tell_lets_nobody_through() -> None:
    done.clear()
    full = MemoryKeeper(names_max=0)
    started: list[str] = []
    environ = {"REQUEST_METHOD": "PUT", "HTTP_FENCE": fence(1)}
    FenceWsgi(wsgi_application, full)(environ, lambda status, _: started.append(status))
    assert started == ["503 Service Unavailable"]
    assert done == []


def test_a_database_that_is_away_lets_nobody_through(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    done.clear()
    path = tmp_path / "fences.db"
    keeper = sqlite_keeper(path, timeout_s=0.05)
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(message)

    started: list[str] = []
    environ = {"REQUEST_METHOD": "PUT", "HTTP_FENCE": fence(1)}
    scope = {"type": "http", "method": "PUT", "headers": [(b"fence", fence(1).encode())]}
    asgi: Any = FenceAsgi(asgi_application, keeper)
    with closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN EXCLUSIVE")
        FenceWsgi(wsgi_application, keeper)(environ, lambda status, _: started.append(status))
        asyncio.run(asgi(scope, None, send))
    assert started == ["503 Service Unavailable"]
    assert sent[0]["status"] == 503
    assert b"locked" not in sent[1]["body"] and "locked" in caplog.text
    assert done == []
    assert keeper.admit("invoices", 1) == 1


def test_a_fence_that_is_not_required_is_still_checked() -> None:
    keeper = MemoryKeeper()
    for ask in serving(FenceWsgi(wsgi_application, keeper, required=False)):
        assert ask("PUT") == (200, b"done")
        assert ask("PUT", fence(2, "any name"))[0] == 200
        assert ask("PUT", fence(1, "any name"))[0] == 412
        assert ask("PUT", fence(1, "another"))[0] == 200


def test_what_is_no_http_passes() -> None:
    seen: list[str] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["type"])

    guarded: Any = FenceAsgi(application, MemoryKeeper())
    for kind in ("lifespan", "websocket"):
        asyncio.run(guarded({"type": kind}, None, None))
    assert seen == ["lifespan", "websocket"]


def test_the_client_learns_that_its_hold_is_over(ask: Ask) -> None:
    late, now = Token("invoices", 3), Token("invoices", 4)
    for held in (late, now):
        status, body = ask("PUT", *Guards(held).headers().values())
        check_answer(held, status, body)
    status, problem = ask("PUT", *Guards(late).headers().values())
    with pytest.raises(FencedOut) as refusal:
        check_answer(late, status, json.dumps(problem).encode())
    assert refusal.value.seen == 4


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b""),
        (412, b""),
        (412, b"[]"),
        (412, b'{"seen": 4}'),
        (412, b'{"type": "about:blank", "seen": 4}'),
        (412, b"\xff"),
        (409, b'{"type": "about:blank#fenced-out", "seen": 4}'),
    ],
)
def test_another_answer_says_nothing_about_the_hold(status: int, body: bytes) -> None:
    check_answer(Token("a", 1), status, body)
