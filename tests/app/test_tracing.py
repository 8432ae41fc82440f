"""Spans of requests and commits, as a collector on loopback receives them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from strongroom.clock import SystemClock
from strongroom.engines.base import Commit, Key, Partition, Step, Write
from strongroom.engines.embedded import open_store
from strongroom.testing.ports import free_port
from tests.app.logged import Logged
from tests.conformance.answer import expect
from tests.conformance.client import PUT_BLOB, raw
from tests.conformance.sas import service_sas

PATIENCE_S = 30.0
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
NAME = "devstoreaccount1"


class Collector:
    """A collector of OTLP over HTTP, on a thread.

    Attributes:
        spans: those received so far.
        resource: the attributes of the last resource.
    """

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.resource: dict[str, str] = {}
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                assert self.path == "/v1/traces"
                collector.receive(ExportTraceServiceRequest.FromString(body))
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *arguments: Any) -> None:
                """Write nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", free_port()), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def receive(self, request: ExportTraceServiceRequest) -> None:
        for one in request.resource_spans:
            found = one.resource.attributes
            self.resource = {pair.key: pair.value.string_value for pair in found}
            for scope in one.scope_spans:
                self.spans.extend(scope.spans)

    def wait(self, is_so: Callable[[list[Span]], bool]) -> list[Span]:
        """Return all spans as soon as something is so of them."""
        deadline = time.monotonic() + PATIENCE_S
        while not is_so(self.spans):
            assert time.monotonic() < deadline, [span.name for span in self.spans]
            time.sleep(0.01)
        return list(self.spans)

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    made = Collector()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", made.url)
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
    yield made
    made.stop()


@pytest.fixture
def traced(tmp_path: Path, collector: Collector) -> Iterator[Logged]:
    with Logged(tmp_path, data=tmp_path / "data", traces=True) as made:
        yield made


def attributes(span: Span) -> dict[str, Any]:
    found = {}
    for pair in span.attributes:
        kind = pair.value.WhichOneof("value")
        found[pair.key] = getattr(pair.value, kind)
    return found


def requests(spans: list[Span]) -> list[Span]:
    return [span for span in spans if span.kind == Span.SPAN_KIND_SERVER]


def test_a_span_of_a_request_continues_the_trace_of_its_client(
    traced: Logged, collector: Collector
) -> None:
    fields = {"traceparent": f"00-{TRACE}-{PARENT}-01", "User-Agent": "agent/1"}
    client = traced.client()
    expect(client.put("/box?restype=container", fields), 201)
    (span,) = requests(collector.wait(lambda spans: len(requests(spans)) == 1))
    assert span.trace_id.hex() == TRACE
    assert span.parent_span_id.hex() == PARENT
    assert span.name == "PUT /{account}/{container}"
    found = attributes(span)
    assert found.pop("http.response.body.size") == 0
    assert found == {
        "http.request.method": "PUT",
        "http.route": "/{account}/{container}",
        "url.scheme": "http",
        "url.path": f"/{NAME}/box",
        "server.address": "127.0.0.1",
        "server.port": client.port,
        "client.address": "127.0.0.1",
        "network.protocol.name": "http",
        "user_agent.original": "agent/1",
        "http.request.body.size": 0,
        "http.response.status_code": 201,
        "strongroom.operation": "Create Container",
    }
    assert collector.resource["service.name"] == "strongroom"


@pytest.mark.parametrize(
    ("host", "address", "port"),
    [
        ("[::1]:10000", "::1", 10000),
        ("[::1]", "::1", None),
        ("store.example.net", "store.example.net", None),
        ("127.0.0.1:123456", "127.0.0.1:123456", None),
    ],
)
def test_the_header_host_gives_the_address_and_the_port(
    traced: Logged, collector: Collector, host: str, address: str, port: int | None
) -> None:
    asked = f"GET /.strongroom/health HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    raw(traced.client().port, asked.encode())
    (span,) = requests(collector.wait(lambda spans: len(requests(spans)) == 1))
    found = attributes(span)
    assert (found["server.address"], found.get("server.port")) == (address, port)


def test_a_request_without_a_trace_begins_one(traced: Logged, collector: Collector) -> None:
    client = traced.client()
    for field in ({}, {"traceparent": "nonsense"}):
        expect(client.get("/?comp=list", field), 200)
    one, two = requests(collector.wait(lambda spans: len(requests(spans)) == 2))
    assert one.trace_id != two.trace_id
    assert not one.parent_span_id
    assert not two.parent_span_id


def test_a_client_may_say_that_it_is_not_sampled(traced: Logged, collector: Collector) -> None:
    client = traced.client()
    expect(client.get("/?comp=list", {"traceparent": f"00-{TRACE}-{PARENT}-00"}), 200)
    expect(client.get("/?comp=list"), 200)
    (span,) = requests(collector.wait(lambda spans: len(requests(spans)) >= 1))
    assert span.trace_id.hex() != TRACE


def test_a_commit_is_linked_to_the_requests_that_it_makes_durable(
    traced: Logged, collector: Collector
) -> None:
    client = traced.client()
    expect(client.put("/box?restype=container"), 201)
    waiting = [client.start("PUT", f"/box/{number}", PUT_BLOB, b"x") for number in range(8)]
    for one in waiting:
        expect(one.result(), 201)

    def linked(spans: list[Span]) -> set[bytes]:
        return {link.span_id for span in spans if span.name == "commit" for link in span.links}

    def all_linked(spans: list[Span]) -> bool:
        writes = requests(spans)
        return len(writes) == 9 and {span.span_id for span in writes} <= linked(spans)

    spans = collector.wait(all_linked)
    for commit in (span for span in spans if span.name == "commit"):
        assert commit.kind == Span.SPAN_KIND_INTERNAL
        assert not commit.parent_span_id
        assert attributes(commit)["strongroom.commit.updates"] >= max(1, len(commit.links))
        assert commit.end_time_unix_nano >= commit.start_time_unix_nano


def test_a_refusal_is_an_attribute_and_no_error_of_the_server(
    traced: Logged, collector: Collector
) -> None:
    traced.client().get("/box/blob")
    (span,) = requests(collector.wait(lambda spans: len(requests(spans)) == 1))
    assert attributes(span)["error.type"] == "ContainerNotFound"
    assert span.status.code == Status.STATUS_CODE_UNSET


def test_no_secret_is_in_a_span(traced: Logged, collector: Collector) -> None:
    client = traced.client()
    token = service_sas(traced.credential, "box")
    client.get(f"/box/blob?{token}", {"x-ms-encryption-key": "SECRET"}, auth=None)
    client.get("/box/a%3Fsig=SECRET?$filter=SECRET&SECRET", {"Authorization": "Bearer SECRET"})
    spans = requests(collector.wait(lambda spans: len(requests(spans)) == 2))
    text = "".join(map(str, spans))
    assert "SECRET" not in text
    assert token.rpartition("sig=")[2] not in text


def test_names_are_shown_as_in_the_access_log(tmp_path: Path, collector: Collector) -> None:
    with Logged(tmp_path, names="off", traces=True) as traced:
        traced.client().get("/box/secret-plan")
        (span,) = requests(collector.wait(lambda spans: len(requests(spans)) == 1))
    assert attributes(span)["url.path"] == f"/{NAME}/box/-"
    assert "secret-plan" not in str(span)


def test_methods_of_no_http_client_make_no_new_names(traced: Logged, collector: Collector) -> None:
    traced.client().send("PROPFIND", "/box/blob")
    (span,) = requests(collector.wait(lambda spans: len(requests(spans)) == 1))
    assert span.name.startswith("_OTHER")


def test_a_collector_that_is_gone_hurts_no_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
    with Logged(tmp_path, traces=True) as traced:
        for _ in range(20):
            expect(traced.client().get("/?comp=list"), 200)


def test_an_observer_that_fails_hurts_no_commit(tmp_path: Path) -> None:
    class Failing:
        def begins(self, results: object) -> None:
            raise KeyError("begins")

        def ended(self, error: object) -> None:
            raise KeyError("ended")

    async def commit() -> None:
        store = await open_store(tmp_path / "data", SystemClock())
        store.observe_commits(Failing())
        place = Partition(b"space", b"place")
        step = Step(place, (Write(Key(hidden=False, name=b"name"), b"value"),))
        for _ in range(3):
            assert await store.update(place, [], lambda found, stamp: Commit("done", (step,)))
        await store.close()

    asyncio.run(commit())


def test_a_server_without_spans_loads_nothing_of_them() -> None:
    code = (
        "import sys, strongroom.app, strongroom.cli.serve; "
        "sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
