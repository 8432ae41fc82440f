"""A full disk and a failing disk under a whole server: rules B-LIM-06 and B-LIM-07."""

from __future__ import annotations

import errno
import http.client
import itertools
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from strongroom import app, storage
from strongroom.clock import Clock
from strongroom.engines.embedded import EmbeddedEngine, open_store
from strongroom.engines.embedded.bodies.segments import LARGE_BODY_BYTES
from strongroom.engines.embedded.upkeep.check import check
from strongroom.testing.ports import HOST
from strongroom.testing.server import InProcessServer
from tests.conformance.answer import Answer, expect
from tests.conformance.client import PUT_BLOB, Client
from tests.durability.full_disk_work import CREDENTIAL, Work
from tests.engines.disks.disk import Disk
from tests.engines.disks.sqlite import DiskVfs
from tests.engines.embedded_stores import BALLAST_BYTES, options_on

_numbers = itertools.count()


@contextmanager
def served(disk: Disk, patch: pytest.MonkeyPatch) -> Iterator[InProcessServer]:
    """A server whose data directory lies on a simulated disk."""
    with DiskVfs(disk, f"strongroom-app-{next(_numbers)}") as vfs:
        options = options_on(
            disk, vfs, LARGE_BODY_BYTES, BALLAST_BYTES, compact=False, log_ahead=False
        )

        async def open_here(directory: Path, clock: Clock, **marks: bool) -> EmbeddedEngine:
            return await open_store(directory, clock, options=options, **marks)

        patch.setattr(storage, "open_store", open_here)
        with InProcessServer.start(data=Path(disk.root, "data"), test_clock=False) as server:
            yield server


@contextmanager
def client_of(disk: Disk, patch: pytest.MonkeyPatch) -> Iterator[Client]:
    """As `served`, and a client of the Blob service."""
    with served(disk, patch) as server:
        client = Client(server.port, CREDENTIAL)
        yield client
        client.close()


def health(client: Client) -> tuple[int, object, object]:
    """Return the answer of a health check: the status, and the words for the server and for its
    disk."""
    connection = http.client.HTTPConnection(HOST, client.port, timeout=20)
    try:
        connection.request("GET", "/.strongroom/health")
        answer = connection.getresponse()
        facts = json.loads(answer.read())
        return answer.status, facts["status"], facts.get("disk")
    finally:
        connection.close()


def paused(done: bool) -> bool:
    """`done`, after a moment when it is not."""
    if not done:
        time.sleep(0.05)
    return done


def refused_at_last(client: Client, size_bytes: int) -> Answer:
    """Return a full disk's answer to a write, after the log and the database have used their
    space."""
    for number in range(200):
        name = f"/photos/more-{size_bytes}-{number}"
        answer = client.put(name, PUT_BLOB, bytes(size_bytes))
        found = 200 if answer.status == 201 else 404
        assert client.head(name).status == found
        if answer.status != 201:
            return answer
    raise AssertionError("the disk does not fill")


def test_a_full_disk_refuses_writes_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B-LIM-06."""
    disk = Disk(tmp_path)
    with client_of(disk, monkeypatch) as client:
        expect(client.put("/photos?restype=container"), 201)
        for name in ("one", "two"):
            expect(client.put(f"/photos/{name}", PUT_BLOB, bytes(300_000)), 201)
        disk.capacity_bytes = disk.used_bytes()
        for size_bytes in (10, 5_000, 500_000):
            refused = refused_at_last(client, size_bytes)
            expect(refused, 507, "InsufficientStorage")
            assert "full" in refused.error["Message"]
        assert health(client) == (200, "ready", "full")
        expect(client.head("/photos/more"), 404, "BlobNotFound")
        assert expect(client.get("/photos/one"), 200).body == bytes(300_000)
        expect(client.get("/photos?restype=container&comp=list"), 200)
        expect(client.delete("/photos/two"), 202)
        expect(client.head("/photos/two"), 404, "BlobNotFound")
        disk.capacity_bytes = None
        # A write checks for free space, but not every write does.
        answers = (client.put("/photos/more", PUT_BLOB, b"works again") for _ in range(200))
        expect(next(answer for answer in answers if paused(answer.status == 201)), 201)
        assert health(client) == (200, "ready", None)


@pytest.mark.parametrize("cut", [None, 0, 1, 2], ids=["end", "lost", "kept", "torn"])
def test_what_goes_on_when_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: int | None
) -> None:
    """The server ends, or loses power, starts on the full disk, and everything can be read, leased
    and deleted."""
    disk = Disk(tmp_path)
    with served(disk, monkeypatch) as server:
        work = Work(server.url, server.queue_url, server.table_url, many=30)
        work.store()
        disk.capacity_bytes = disk.used_bytes()
        work.refused(5_000)
        if cut is not None:
            image = tmp_path / "image"
            image.mkdir()
            disk.after_power_cut(image, cut)
        work.close()
    if cut is not None:
        disk = Disk(image)
    disk.capacity_bytes = disk.used_bytes()
    with served(disk, monkeypatch) as server:
        work = Work(server.url, server.queue_url, server.table_url, many=30)
        work.read()
        assert "full" in work.refused(5_000).error["Message"]
        work.keep_alive()
        expect(work.grow(), 507, "InsufficientStorage")
        work.renew(100)
        work.read()
        work.delete()
        work.close()
    assert list(check(Path(disk.root, "data"))) == []


def test_a_disk_that_fails_stops_the_server_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B-LIM-07."""
    disk = Disk(tmp_path)
    with client_of(disk, monkeypatch) as client:
        expect(client.put("/photos?restype=container"), 201)
        expect(client.put("/photos/kept", PUT_BLOB, b"kept"), 201)
        disk.fault = lambda operation, path: errno.EIO if operation == "sync" else None
        expect(client.put("/photos/lost", PUT_BLOB, b"perhaps"), 500, "InternalError")
        disk.fault = None
        assert health(client) == (503, "stopped", None)
        # Nothing is tried again on a descriptor whose sync failed.
        expect(client.put("/photos/after", PUT_BLOB, b"no"), 500, "InternalError")
    with client_of(disk, monkeypatch) as client:
        assert expect(client.get("/photos/kept"), 200).body == b"kept"
        expect(client.put("/photos/after", PUT_BLOB, b"yes"), 201)


def test_whoever_serves_is_told_that_the_disk_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B-LIM-07: what ends the process is a future that the caller waits for."""
    disk = Disk(tmp_path)
    seen: list[str] = []
    start = app.App.start

    async def started(self: app.App) -> None:
        await start(self)
        assert self.failed is not None
        self.failed.add_done_callback(lambda done: seen.append(str(done.result())))

    monkeypatch.setattr(app.App, "start", started)
    with client_of(disk, monkeypatch) as client:
        expect(client.put("/photos?restype=container"), 201)
        disk.fault = lambda operation, path: errno.EIO if operation == "sync" else None
        expect(client.put("/photos/lost", PUT_BLOB, b"x"), 500, "InternalError")
    assert len(seen) == 1
    assert seen[0]
