"""Health, metrics and the test clock, request by request."""

from __future__ import annotations

import asyncio
import json

import pytest

from strongroom import __version__
from strongroom.servers.faults import FaultInjector
from strongroom.servers.own_endpoints import OwnEndpoints
from strongroom.servers.own_hosts import OwnHosts
from strongroom.values import Health, datetime_of
from strongroom.wire.core.http import Headers, Request, Response
from tests.app.bodies import Bytes

START = 638_000_000_000_000_000


class Server:
    """The state behind the endpoints: readiness, and a clock that adds up the advances."""

    def __init__(self, clock: bool = True, anywhere: bool = False) -> None:
        self.ready = True
        self.engine = Health.SERVING
        self.damaged = False
        self.away = False
        self.moved: list[float] = []
        self.endpoints = OwnEndpoints(
            is_ready=lambda: self.ready,
            health=self.health,
            is_durable=True,
            metrics=lambda: (b"counted 1\n", "text/plain"),
            metrics_anywhere=anywhere,
            now=self.now,
            advance=self.moved.append if clock else None,
            faults=FaultInjector() if clock else None,
            hosts=OwnHosts(frozenset({"store.example.net"}), ("blob.example.org",)),
            is_damaged=lambda: self.damaged,
            are_bodies_away=lambda: self.away,
        )

    async def health(self) -> Health:
        return self.engine

    async def now(self) -> int:
        return START + round(sum(self.moved) * 10_000_000)

    def ask(
        self,
        method: str,
        name: str,
        body: bytes = b"",
        peer: str = "127.0.0.1",
        fields: tuple[tuple[str, str], ...] = (),
    ) -> Response:
        request = Request(method, f"/.strongroom/{name}", Headers(fields), Bytes(body), peer)
        return asyncio.run(self.endpoints.respond(request))


def facts(response: Response) -> dict[str, object]:
    assert isinstance(response.body, bytes)
    assert response.size_bytes == len(response.body)
    found = json.loads(response.body)
    assert isinstance(found, dict)
    return found


def test_a_folder_that_is_away_is_told_and_the_gateway_is_kept() -> None:
    server = Server()
    server.away = True
    response = server.ask("GET", "health")
    assert response.status == 200
    assert (facts(response)["status"], facts(response)["bodies"]) == ("ready", "away")


def test_health_follows_readiness() -> None:
    server = Server()
    response = server.ask("GET", "health")
    assert response.status == 200
    assert facts(response) == {"status": "ready", "durable": True, "version": __version__}
    assert ("Cache-Control", "no-store") in response.headers
    server.ready = False
    response = server.ask("GET", "health?verbose")
    assert response.status == 503
    assert facts(response)["status"] == "draining"


@pytest.mark.parametrize(
    ("engine", "status", "word"),
    [
        (Health.SERVING, 200, "ready"),
        (Health.FULL, 200, "ready"),
        (Health.STALLED, 503, "stalled"),
        (Health.STOPPED, 503, "stopped"),
    ],
)
def test_health_asks_the_engine(engine: Health, status: int, word: str) -> None:
    server = Server()
    server.engine = engine
    response = server.ask("GET", "health")
    assert response.status == status
    assert facts(response)["status"] == word
    assert facts(response).get("disk") == ("full" if engine is Health.FULL else None)
    server.ready = False
    assert server.ask("GET", "health").status == 503


def test_health_says_that_damage_was_found_and_stays_200() -> None:
    server = Server()
    for is_damaged, word in ((False, None), (True, "found")):
        server.damaged = is_damaged
        response = server.ask("GET", "health")
        assert response.status == 200
        assert facts(response)["status"] == "ready"
        assert facts(response).get("damage") == word


@pytest.mark.parametrize(
    ("host", "is_own"),
    [
        ("127.0.0.1", True),
        ("10.1.2.3:10000", True),
        ("[::1]:10000", True),
        ("[2001:db8::1]", True),
        ("localhost:10000", True),
        ("LocalHost.", True),
        ("account.blob.localhost:10000", True),
        ("store.example.net", True),
        ("Store.Example.NET:10000", True),
        ("account.blob.example.org", True),
        ("blob.example.org:1", True),
        ("example.net", False),
        ("a.store.example.net", False),
        ("storexexample.net", False),
        ("evilblob.example.org", False),
        ("localhost.example.com", False),
        ("127.0.0.1.example.com", False),
        ("[::1].example.com", False),
        ("user@localhost", False),
        ("localhost:10000:1", False),
        ("0x7f000001", False),
        ("", False),
    ],
)
@pytest.mark.parametrize("name", ["metrics", "clock", "faults", "none", "health/", "healthz"])
def test_only_names_of_this_server_reach_its_own_endpoints(
    name: str, host: str, is_own: bool
) -> None:
    response = Server().ask("GET", name, fields=(("Host", host),))
    assert (response.status != 403) == is_own
    if not is_own:
        assert "--own-host" in str(facts(response)["error"])
        assert ("Cache-Control", "no-store") in response.headers


@pytest.mark.parametrize("host", ["127.0.0.1", "anything.example.com:80", "[::1].x", ""])
def test_health_is_answered_under_any_host(host: str) -> None:
    page = ("Origin", "http://example.com")
    for method in ("GET", "HEAD"):
        response = Server().ask(method, "health?verbose", fields=(("Host", host), page))
        assert (response.status, facts(response)["status"]) == (200, "ready")
    for method in ("POST", "PUT", "DELETE"):
        assert Server().ask(method, "health", fields=(("Host", host), page)).status == 405


@pytest.mark.parametrize(
    ("origin", "may"),
    [
        ("http://store.example.net:10000", True),
        ("HTTP://STORE.example.net:10000", True),
        ("http://localhost:3000", True),
        ("https://127.0.0.1", True),
        ("http://[::1]:8080", True),
        ("http://store.example.net", False),
        ("http://example.com", False),
        ("http://203.0.113.5", False),
        ("http://localhost.example.com", False),
        ("null", False),
        ("", False),
        ("localhost", False),
    ],
)
def test_no_page_of_another_site_changes_anything(origin: str, may: bool) -> None:
    fields = (("Host", "store.example.net:10000"), ("Origin", origin))
    server = Server()
    step = b'{"advance_s": 15}'
    assert server.ask("POST", "clock", step, fields=fields).status == (200 if may else 403)
    assert server.moved == ([15] if may else [])
    for method in ("PUT", "DELETE"):
        answer = server.ask(method, "faults", b'{"rules": []}', fields=fields)
        assert answer.status == (200 if may else 403)
    assert server.ask("GET", "clock", fields=fields).status == 200, "it cannot read the answer"


@pytest.mark.parametrize(
    ("peer", "anywhere", "status"),
    [
        ("127.0.0.1", False, 200),
        ("::1", False, 200),
        ("fe80::1%eth0", False, 403),
        ("10.0.0.7", False, 403),
        ("", False, 403),
        ("10.0.0.7", True, 200),
    ],
)
def test_metrics_are_for_this_machine_unless_allowed(
    peer: str, anywhere: bool, status: int
) -> None:
    assert Server(anywhere=anywhere).ask("GET", "metrics", peer=peer).status == status


def test_the_clock_moves_by_what_was_asked() -> None:
    server = Server()
    response = server.ask("POST", "clock", b'{"advance_s": 15}')
    assert response.status == 200
    assert server.moved == [15]
    expected = datetime_of(START + 15 * 10_000_000).isoformat()
    assert facts(server.ask("GET", "clock")) == {"store_time": expected}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"15",
        b"{}",
        b'{"advance_s": "15"}',
        b'{"advance_s": 15, "more": 1}',
        b'{"advance_s": -1}',
        b'{"advance_s": NaN}',
        b'{"advance_s": 1e999}',
        b'{"advance_s": 1e12}',
        b"\xff\xfe",
        b"[" * 1000,
    ],
)
def test_what_is_no_step_forward_is_refused(body: bytes) -> None:
    server = Server()
    assert server.ask("POST", "clock", body).status == 400
    assert server.moved == []


def test_a_body_without_bound_is_refused() -> None:
    assert Server().ask("POST", "clock", b" " * 2000).status == 413


def test_the_clock_stops_before_years_that_cannot_be_shown() -> None:
    server = Server()
    step = b'{"advance_s": 630720000}'
    statuses = [server.ask("POST", "clock", step).status for _ in range(360)]
    assert statuses[0] == 200
    assert statuses[-1] == 400
    assert datetime_of(START + round(sum(server.moved)) * 10_000_000).year <= 9000


def test_a_server_without_test_clock_has_none() -> None:
    server = Server(clock=False)
    assert server.ask("POST", "clock", b'{"advance_s": 15}').status == 404
    assert server.ask("GET", "clock").status == 404


@pytest.mark.parametrize("name", ["", "healthz", "clock/", "metrics/../clock"])
def test_other_names_are_not_found(name: str) -> None:
    assert Server().ask("GET", name).status == 404


@pytest.mark.parametrize(
    ("name", "allowed"),
    [("health", "GET, HEAD"), ("metrics", "GET, HEAD"), ("clock", "GET, HEAD, POST")],
)
def test_other_methods_are_told_what_is_allowed(name: str, allowed: str) -> None:
    response = Server().ask("DELETE", name)
    assert response.status == 405
    assert ("Allow", allowed) in response.headers
