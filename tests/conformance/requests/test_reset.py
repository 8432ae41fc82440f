"""POST /.strongroom/reset, as clients of all services see it."""

from __future__ import annotations

import asyncio
import http.client
import json
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from strongroom.app import DataUnusable
from strongroom.config import Settings
from strongroom.engines.base import Position
from strongroom.servers.smb.refusals import SmbError
from strongroom.services.file.opens.opens import Opens
from strongroom.store.core import keys
from strongroom.testing.faults import Fault, FaultRule
from strongroom.testing.server import InProcessServer
from tests.conformance.answer import expect
from tests.conformance.client import HOST, PUT_BLOB, Client
from tests.conformance.messages import document
from tests.conformance.running import Running
from tests.servers.smb.sockets import SmbMount

WAIT = "x-strongroom-wait"
CORS = (
    b"<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>*</AllowedOrigins>"
    b"<AllowedMethods>GET</AllowedMethods><MaxAgeInSeconds>5</MaxAgeInSeconds>"
    b"<ExposedHeaders/><AllowedHeaders/></CorsRule></Cors></StorageServiceProperties>"
)


@pytest.fixture(params=["memory", "embedded"])
def own(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Running]:
    """A server of each engine in turn, for one test that resets it."""
    data = None if request.param == "memory" else tmp_path / "data"
    found = Running(data, smb=True, allow_reset=data is not None)
    yield found
    found.stop()


def reset(running: Running, query: str = "", method: str = "POST") -> tuple[int, Any]:
    """Send a reset. Return the status, and the answer's document."""
    connection = http.client.HTTPConnection(HOST, running.port, timeout=30)
    connection.request(method, f"/.strongroom/reset{query}")
    answer = connection.getresponse()
    found = json.loads(answer.read())
    connection.close()
    return answer.status, found


def fill(running: Running) -> None:
    """Store something in each service of the development account."""
    blobs, queues, tables, files = clients(running)
    expect(blobs.put("/box?restype=container"), 201)
    expect(blobs.put("/box/b", PUT_BLOB, b"text" * 10_000), 201)
    expect(blobs.put("/?restype=service&comp=properties", (), CORS), 202)
    expect(queues.put("/tasks"), 201)
    expect(queues.send("POST", "/tasks/messages", (), document("text")), 201)
    made = tables.post("/Tables", {"TableName": "Rows"}, {"Prefer": "return-no-content"})
    assert made.status == 204
    row = {"PartitionKey": "p", "RowKey": "r"}
    assert tables.post("/Rows", row, {"Prefer": "return-no-content"}).status == 204
    expect(files.put("/docs?restype=share"), 201)
    expect(files.put("/docs/f", {"x-ms-type": "file", "x-ms-content-length": "4"}), 201)
    for one in (blobs, queues, tables, files):
        one.close()


def clients(running: Running) -> tuple[Client, Client, Any, Client]:
    return running.client(), running.queues(), running.tables(), running.files()


def listed(running: Running) -> list[list[str]]:
    """Return the names in each service."""
    blobs, queues, tables, files = clients(running)
    found = [
        [element.text or "" for element in expect(one.get(target), 200).xml.iter("Name")]
        for one, target in (
            (blobs, "/?comp=list&include=deleted"),
            (queues, "/?comp=list"),
            (files, "/?comp=list&include=deleted,snapshots"),
        )
    ]
    rows = json.loads(expect(tables.get("/Tables", {"Accept": "application/json"}), 200).body)
    for one in (blobs, queues, tables, files):
        one.close()
    return [*found, [row["TableName"] for row in rows["value"]]]


EMPTY: list[list[str]] = [[], [], [], []]
FULL = [["box"], ["tasks"], ["docs"], ["Rows"]]


def test_everything_is_gone_and_can_be_made_again(own: Running) -> None:
    fill(own)
    assert listed(own) == FULL
    removed = {"containers": 1, "queues": 1, "tables": 1, "shares": 1}
    assert reset(own) == (200, {"removed": removed})
    assert listed(own) == EMPTY
    client = own.client()
    found = expect(client.get("/?restype=service&comp=properties"), 200)
    assert b"CorsRule" not in found.body
    expect(client.get("/box/b"), 404, "ContainerNotFound")
    fill(own)
    assert listed(own) == FULL
    expect(client.get("/box?restype=container&comp=list"), 200)
    client.close()


def test_one_service_is_reset_alone(own: Running) -> None:
    for service, number in (("blob", 0), ("queue", 1), ("file", 2), ("table", 3)):
        reset(own)
        fill(own)
        status, answer = reset(own, f"?service={service}")
        assert (status, sum(answer["removed"].values())) == (200, 1)
        expected = [[] if at == number else names for at, names in enumerate(FULL)]
        assert listed(own) == expected


def test_one_account_is_reset_alone(own: Running) -> None:
    fill(own)
    other = own.account()
    expect(other.put("/box?restype=container"), 201)
    assert reset(own, f"?account={other.account}")[0] == 200
    assert listed(own) == FULL
    expect(other.get("/box?restype=container"), 404, "ContainerNotFound")
    expect(other.put("/box?restype=container"), 201)
    assert reset(own, "?account=devstoreaccount1&service=blob")[1] == {"removed": {"containers": 1}}
    expect(other.get("/box?restype=container"), 200)
    assert reset(own)[1]["removed"]["containers"] == 1
    expect(other.get("/box?restype=container"), 404, "ContainerNotFound")


@pytest.mark.parametrize(
    ("query", "method", "status"),
    [
        ("?account=nobody", "POST", 404),
        ("?service=blobs", "POST", 400),
        ("?service=", "POST", 400),
        ("?service=blob&service=queue", "POST", 400),
        ("?everything=1", "POST", 400),
        ("", "GET", 405),
        ("", "DELETE", 405),
    ],
)
def test_a_reset_that_is_not_understood_removes_nothing(
    own: Running, query: str, method: str, status: int
) -> None:
    fill(own)
    assert reset(own, query, method)[0] == status
    assert listed(own) == FULL


def test_soft_deleted_places_go_too(own: Running) -> None:
    own.switch("devstoreaccount1", container_retention_days=7, share_retention_days=7)
    fill(own)
    blobs, files = own.client(), own.files()
    expect(files.put("/docs?restype=share&comp=snapshot"), 201)
    for _ in range(2):
        expect(blobs.delete("/box?restype=container"), 202)
        expect(blobs.put("/box?restype=container"), 201)
    include = {"x-ms-delete-snapshots": "include"}
    expect(files.delete("/docs?restype=share", include), 202)
    assert listed(own)[0] == ["box"] * 3
    assert reset(own)[1]["removed"]["containers"] == 3
    assert listed(own) == EMPTY


def test_the_clock_and_the_faults_stay(own: Running) -> None:
    own.advance(3600)
    own.server.faults.order(FaultRule(operation="Create Container", fault=Fault.BUSY, times=1))
    client = own.client()
    expect(client.put("/one?restype=container"), 503, "ServerBusy")
    before = store_time(own)
    reset(own)
    assert own.server.faults.counts()[0].hit == 1
    assert before <= store_time(own)
    own.advance(60)
    assert store_time(own) - before >= timedelta(seconds=60)


def store_time(running: Running) -> datetime:
    answer = running.client().another("/.strongroom").get("/clock", auth=None)
    return datetime.fromisoformat(json.loads(answer.body)["store_time"])


def test_a_get_that_waits_ends_with_404(own: Running) -> None:
    fill(own)
    blobs, queues = own.client(), own.queues()
    etag = expect(blobs.head("/box/b"), 200).etag
    expect(queues.delete("/tasks/messages"), 204)
    waiting = [
        blobs.start("GET", "/box/b", {WAIT: "60", "If-None-Match": etag}),
        queues.start("GET", "/tasks/messages", {WAIT: "60"}),
    ]
    _await(lambda: own.server._app.store.watching() >= 2)
    assert reset(own)[0] == 200
    assert [one.result(30).status for one in waiting] == [404, 404]


def _await(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.005)


def test_an_upload_in_flight_gets_404_and_leaves_nothing(own: Running) -> None:
    fill(own)
    sending = own.client().begin("PUT", "/box/late", PUT_BLOB, 2000)
    sending.send(b"x" * 1000)
    assert reset(own)[0] == 200
    expect(sending.finish(b"x" * 1000), 404, "ContainerNotFound")
    assert listed(own) == EMPTY


def held(running: Running) -> Opens:
    return running.server._app.services.held.of(Opens)


def test_smb_handles_of_the_share_end(own: Running) -> None:
    fill(own)

    async def scenario() -> None:
        async with SmbMount(own.smb_port, "docs") as ann:
            opened = await ann.open("f")
            assert await ann.write(opened.file_id, 0, b"text") == 4
            assert len(held(own).handles) == 1
            assert (await asyncio.to_thread(reset, own, "?service=file"))[0] == 200
            assert not held(own).handles
            with pytest.raises(SmbError):
                await ann.read(opened.file_id, 0, 4)
            with pytest.raises(SmbError):
                await ann.open("f")

    asyncio.run(scenario())


def test_a_pending_copy_ends(own: Running) -> None:
    fill(own)
    client = own.client()
    own.server.faults.order(FaultRule(operation="Copy Blob", fault=Fault.HOLD_COPY))
    source = {"x-ms-copy-source": f"{client.url}/box/b"}
    assert expect(client.put("/box/copy", source), 202)["x-ms-copy-status"] == "pending"
    assert reset(own)[0] == 200
    own.server.faults.clear()
    own.advance(5)
    _await(lambda: _jobs(own) == 0)


def _jobs(running: Running) -> int:
    """Return the number of jobs in the store."""
    store = running.server._app.store
    scan = store.scan(keys.JOBS, Position(b"", b""), None, 100)
    return len(asyncio.run_coroutine_threadsafe(scan, running.server.loop).result(30).values)


@pytest.mark.parametrize("allow_reset", [False, True])
def test_a_directory_that_was_not_made_for_it_is_never_reset(
    allow_reset: bool, tmp_path: Path
) -> None:
    running = Running(tmp_path / "data")
    fill(running)
    assert reset(running) == (404, {"error": "This server was not started with --allow-reset."})
    assert listed(running) == FULL
    running.stop()
    if allow_reset:
        with pytest.raises(DataUnusable, match="created without --allow-reset"):
            InProcessServer.start(data=tmp_path / "data", allow_reset=True)
    with InProcessServer.start(data=tmp_path / "data") as again:
        assert again.url


def test_a_directory_that_was_made_for_it_serves_without_the_flag_too(tmp_path: Path) -> None:
    with InProcessServer.start(data=tmp_path / "data", allow_reset=True) as server:
        server.reset()
    assert (tmp_path / "data" / "FORMAT").read_text() == "strongroom 4 test-clock allow-reset\n"
    running = Running(tmp_path / "data")
    fill(running)
    assert reset(running)[0] == 404
    assert listed(running) == FULL
    running.stop()


def test_settings_say_which_servers_may_be_reset() -> None:
    memory = Settings(data=None)
    assert not memory.may_be_reset()
    assert Settings(data=None, test_clock=True).may_be_reset()
    assert not Settings(test_clock=True).may_be_reset()
    assert Settings(allow_reset=True).may_be_reset()
    open_to_all = Settings(data=None, test_clock=True, host="0.0.0.0", allow_development_key=True)
    assert not open_to_all.may_be_reset()


def test_a_page_of_another_site_resets_nothing(own: Running) -> None:
    fill(own)
    for headers in ({"Host": "evil.example"}, {"Origin": "https://evil.example"}):
        connection = http.client.HTTPConnection(HOST, own.port, timeout=30)
        connection.request("POST", "/.strongroom/reset", headers=headers)
        assert connection.getresponse().status == 403
        connection.close()
    assert listed(own) == FULL


def test_locked_and_held_things_keep_a_directory_from_being_reset(tmp_path: Path) -> None:
    own = Running(tmp_path / "data", allow_reset=True)
    own.switch("devstoreaccount1", immutability=True, versioning=True)
    fill(own)
    client = own.client()
    hold = "/box/b?comp=legalhold"
    expect(client.put(hold, {"x-ms-legal-hold": "true"}), 200)
    for query in ("", "?service=queue", "?account=devstoreaccount1"):
        status, answer = reset(own, query)
        assert status == 409
        assert "devstoreaccount1/box/b" in answer["error"]
    assert listed(own) == FULL
    expect(client.put("/box/b", PUT_BLOB, b"a new version; the hold is on the old one"), 201)
    assert reset(own)[0] == 409
    own.stop()
