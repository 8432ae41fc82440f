"""Bits that a disk flipped while the server was down.

A damaged record is answered with 500 and named in the log and by the doctor, never with wrong
bytes. Everything else is served.
"""

from __future__ import annotations

import shutil
from http.client import IncompleteRead
from pathlib import Path
from time import monotonic, sleep
from urllib.parse import urlsplit

import pytest

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME
from strongroom.limits import MIB
from strongroom.testing import InProcessServer
from tests.cli.command import strongroom
from tests.conformance import messages
from tests.conformance.answer import expect
from tests.conformance.blobs import block_list, block_target, stage
from tests.conformance.client import PUT_BLOB, Client, Credential
from tests.conformance.copying import readable
from tests.conformance.table_client import TableClient, entity

CREDENTIAL = Credential(DEVELOPMENT_ACCOUNT_NAME, DEVELOPMENT_ACCOUNT_KEY)
_SIZES = {"within": 100, "inline": 4000, "stored": 40_000, "long": 200_000}
_BLOCK_BYTES = 10_000
_FILLER_BYTES = 1000  # more than lies in a blob's own record
_FILLER = {**PUT_BLOB, "x-ms-meta-filler": "." * 400}
_SYNC_COPY = {"x-ms-requires-sync": "true"}
_ROW = {"PartitionKey": "m", "RowKey": "r", "A": "marker of the entity"}


class Services:
    """Clients of a server's three services."""

    def __init__(self, server: InProcessServer) -> None:
        self.blobs = Client(server.port, CREDENTIAL)
        self.queues = Client(urlsplit(server.queue_url).port or 0, CREDENTIAL)
        self.tables = TableClient(urlsplit(server.table_url).port or 0, CREDENTIAL)

    def close(self) -> None:
        for client in (self.blobs, self.queues, self.tables):
            client.close()


def _marker(name: str) -> bytes:
    return b"marker of " + name.encode()


def _body(name: str, size_bytes: int) -> bytes:
    return _marker(name).center(size_bytes, b".")


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stopped directory with everything, the things to be damaged far from others by name."""
    data = tmp_path_factory.mktemp("flipped") / "data"
    with InProcessServer.start(data=data) as server:
        services = Services(server)
        _fill(services)
        services.close()
    return data


def _fill(services: Services) -> None:
    blobs, queues, tables = services.blobs, services.queues, services.tables
    expect(blobs.put("/box?restype=container"), 201)
    for number in range(60):
        for side in "ln":
            expect(blobs.put(f"/box/{side}-{number}", _FILLER, bytes(_FILLER_BYTES)), 201)
    for name, size_bytes in _SIZES.items():
        expect(blobs.put(f"/box/m-{name}", PUT_BLOB, _body(name, size_bytes)), 201)
    for block in ("one", "two", "six"):
        stage(blobs, "/box/m-listed", block, _body(block, _BLOCK_BYTES))
    ids = block_list("one", "two", "six")
    expect(blobs.put("/box/m-listed?comp=blocklist", {}, ids), 201)
    for name in ("queue", "other"):
        expect(queues.put(f"/{name}"), 201)
        messages.put(queues, name, f"marker of {name}")
    expect(tables.post("/Tables", {"TableName": "rows"}), 201)
    for partition in "lmn":
        for number in range(40):
            row = {"PartitionKey": partition, "RowKey": f"{number}", "A": "." * _FILLER_BYTES}
            expect(tables.post("/rows", row), 201)
    expect(tables.post("/rows", _ROW), 201)


def _flip(data: Path, marker: bytes) -> None:
    """Flip a bit wherever the marker is: a freed place of a page may show it too."""
    found = 0
    for path in (data / "records.sqlite", *(data / "segments").iterdir()):
        whole = bytearray(path.read_bytes())
        at = whole.find(marker)
        while at >= 0:
            whole[at + len(marker) // 2] ^= 4
            found += 1
            at = whole.find(marker, at + 1)
        path.write_bytes(whole)
    assert found


@pytest.fixture
def copy(filled: Path, tmp_path: Path) -> Path:
    """A copy of the directory, to be damaged."""
    return Path(shutil.copytree(filled, tmp_path / "data"))


def _others_are_served(services: Services) -> None:
    blobs = services.blobs
    for name in ("l-0", "l-30", "n-30"):
        assert expect(blobs.get(f"/box/{name}"), 200).body == bytes(_FILLER_BYTES)
    expect(blobs.put("/box/a-new", PUT_BLOB, b"new"), 201)
    assert expect(blobs.get("/box/a-new"), 200).body == b"new"
    expect(services.tables.get(entity("rows", "l", "0")), 200)


@pytest.mark.parametrize("name", ["within", "inline", "stored"])
def test_a_damaged_body_is_never_answered(
    name: str, copy: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _flip(copy, _marker(name))
    with InProcessServer.start(data=copy) as server:
        services = Services(server)
        blobs = services.blobs
        target = f"/box/m-{name}"
        for headers in ({}, {"Range": "bytes=0-9"}, {"Range": "bytes=0-9", "x-ms-version": None}):
            caplog.clear()
            expect(blobs.get(target, headers), 500, "InternalError")
            assert f"GET /{CREDENTIAL.account}{target}: " in caplog.text
            assert "checksum" in caplog.text
        source = {"x-ms-copy-source": readable(blobs, f"{blobs.url}{target}")}
        for how in ({}, _SYNC_COPY):
            expect(blobs.put("/box/a-copy", {**source, **how}), 500, "InternalError")
        expect(blobs.get("/box/a-copy"), 404, "BlobNotFound")
        _others_are_served(services)
        services.close()
    _doctor_names(copy, f"/box/m-{name}: ")


def test_a_damaged_block_is_never_sent(copy: Path, caplog: pytest.LogCaptureFixture) -> None:
    _flip(copy, _marker("two"))
    with InProcessServer.start(data=copy) as server:
        services = Services(server)
        blobs = services.blobs
        with pytest.raises(IncompleteRead) as broken:
            blobs.another().get("/box/m-listed")
        assert broken.value.partial in (b"", _body("one", _BLOCK_BYTES))
        assert f"GET /{CREDENTIAL.account}/box/m-listed: " in caplog.text
        assert "checksum" in caplog.text
        assert "Traceback" not in caplog.text, "one line is enough: nothing is wrong in a program"
        part = {"Range": f"bytes={_BLOCK_BYTES}-{2 * _BLOCK_BYTES}"}
        expect(blobs.get("/box/m-listed", part), 500, "InternalError")
        part = {"Range": f"bytes={2 * _BLOCK_BYTES}-"}
        found = expect(blobs.get("/box/m-listed", part), 206)
        assert found.body == _body("six", _BLOCK_BYTES)
        source = {"x-ms-copy-source": readable(blobs, f"{blobs.url}/box/m-listed")}
        expect(blobs.put("/box/a-copy", {**source, **_SYNC_COPY}), 500, "InternalError")
        _others_are_served(services)
        services.close()
    _doctor_names(copy, "/box/m-listed: ")


def test_a_long_damaged_body_is_not_copied(copy: Path) -> None:
    _flip(copy, _marker("long"))
    with InProcessServer.start(data=copy) as server:
        services = Services(server)
        blobs = services.blobs
        source = {"x-ms-copy-source": readable(blobs, f"{blobs.url}/box/m-long")}
        for how in ({}, _SYNC_COPY, PUT_BLOB):
            expect(blobs.put("/box/a-copy", {**source, **how}), 500, "InternalError")
        # The damage is in the middle: a part of a body is taken only if all of it is sound.
        for text in ("bytes=0-9", "bytes=100000-"):
            part = {**source, "x-ms-source-range": text}
            expect(blobs.put(block_target("/box/a-copy", "1"), part), 500, "InternalError")
        expect(blobs.get("/box/a-copy"), 404, "BlobNotFound")
        _others_are_served(services)
        services.close()
    _doctor_names(copy, "/box/m-long: ")


def test_a_pending_copy_of_a_damaged_body_fails(tmp_path: Path) -> None:
    with InProcessServer.start(data=tmp_path) as server:
        client = Client(server.port, CREDENTIAL)
        expect(client.put("/box?restype=container"), 201)
        expect(client.put("/box/large", PUT_BLOB, _body("large", 17 * MIB)), 201)
        client.close()
    _flip(tmp_path, _marker("large"))
    with InProcessServer.start(data=tmp_path) as server:
        client = Client(server.port, CREDENTIAL)
        source = {"x-ms-copy-source": f"{client.url}/box/large"}
        expect(client.put("/box/copy", source), 202)
        until = monotonic() + 60
        while (found := expect(client.head("/box/copy"), 200))["x-ms-copy-status"] == "pending":
            assert monotonic() < until
            sleep(0.05)
        assert found["x-ms-copy-status"] == "failed"
        assert found["Content-Length"] == "0"
        client.close()


def test_a_damaged_entity_is_never_answered(copy: Path, caplog: pytest.LogCaptureFixture) -> None:
    _flip(copy, b"marker of the entity")
    with InProcessServer.start(data=copy) as server:
        services = Services(server)
        tables = services.tables
        one = entity("rows", "m", "r")
        for answer in (
            tables.get(one),
            tables.get("/rows()"),
            tables.get("/rows()?$filter=PartitionKey%20eq%20'm'"),
            tables.send("DELETE", one, {"If-Match": "*"}),
        ):
            assert answer.status == 500
        assert "b'm' b'r'" in caplog.text
        assert "checksum" in caplog.text
        _others_are_served(services)
        services.close()
    _doctor_names(copy, "/rows, entity ('m', 'r'): ")


def test_a_damaged_message_is_never_answered(copy: Path, caplog: pytest.LogCaptureFixture) -> None:
    _flip(copy, b"marker of queue")
    with InProcessServer.start(data=copy) as server:
        services = Services(server)
        for method, target in (
            ("GET", messages.target("queue")),
            ("GET", messages.target("queue", peekonly="true")),
        ):
            expect(services.queues.send(method, target), 500, "InternalError")
        assert "checksum" in caplog.text
        _others_are_served(services)
        services.close()
    _doctor_names(copy, "the messages of devstoreaccount1/queue: ")


def _doctor_names(data: Path, name: str) -> None:
    ran = strongroom("doctor", data)
    assert ran.code == 1, ran
    assert ran.out.count(name) == 1, ran.out
    assert "Tree" not in ran.out
    assert "checksum" in ran.out
