"""Clients that use up the process's open files do not stop the server."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME
from strongroom.clock import ManualClock
from strongroom.engines.base import Busy
from strongroom.engines.embedded.disk.files import OsFiles
from strongroom.engines.embedded.store import EmbeddedOptions, open_store
from strongroom.servers.connections.open_files import connections_for
from strongroom.testing.contract.subject import pieces
from strongroom.testing.ports import HOST, free_port, port_flags
from strongroom.wire.core.http import Request, Response
from tests.conformance.answer import expect
from tests.conformance.client import PUT_BLOB, Client, Credential
from tests.servers.loopback import PATIENT, run, serving

CREDENTIAL = Credential(DEVELOPMENT_ACCOUNT_NAME, DEVELOPMENT_ACCOUNT_KEY)
FILES = 320
UPLOADS = 400
CROWD = 300
_READY = re.compile(rb"/\.strongroom/health")


@contextmanager
def limited(data: Path) -> Iterator[tuple[subprocess.Popen[bytes], int, int]]:
    """A server that may have `FILES` files open, whatever it asks for; its port for blobs, and that
    for all services."""
    port, other_port = free_port(), free_port()
    flags = (*port_flags(port), "--one-port", str(other_port))
    command = f'ulimit -n {FILES} && exec "$0" -m strongroom serve --data "$@"'
    process = subprocess.Popen(
        ["/bin/sh", "-c", command, sys.executable, str(data), *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    try:
        assert any(_READY.search(line) for line in process.stdout), "the server did not start"
        threading.Thread(target=process.stdout.read, daemon=True).start()
        yield process, port, other_port
    finally:
        process.terminate()
        process.wait(30)


def begin_upload(client: Client, number: int, size_bytes: int) -> socket.socket:
    """Begin an upload of unknown length that never ends, with so much of its body.

    Raises: ConnectionError: it is not let in.
    """
    target = f"{client.prefix}/photos/{number}"
    given = [*PUT_BLOB.items(), ("Transfer-Encoding", "chunked"), ("Content-Length", None)]
    fields = client.fields("PUT", target, given, b"", "SharedKey")
    head = "".join(f"{name}: {value}\r\n" for name, value in fields)
    connection = socket.create_connection((HOST, client.port), timeout=30)
    try:
        connection.sendall(f"PUT {target} HTTP/1.1\r\n{head}\r\n".encode())
        connection.sendall(b"%x\r\n" % size_bytes + b"x" * size_bytes + b"\r\n")
    except ConnectionError:
        connection.close()
        raise
    return connection


def upload(client: Client, number: int) -> socket.socket | None:
    """As `begin_upload`; None when it is not let in."""
    try:
        return begin_upload(client, number, 0x4000)
    except ConnectionError:
        return None


def test_uploads_that_never_end_do_not_stop_the_server(tmp_path: Path) -> None:
    with limited(tmp_path / "data") as (process, port, other_port):
        crowded = Client(port, CREDENTIAL)
        client = Client(other_port, CREDENTIAL, prefix=f"/blob/{CREDENTIAL.account}")
        expect(client.put("/photos?restype=container"), 201)
        expect(client.put("/photos/kept", PUT_BLOB, bytes(20_000)), 201)
        uploads = [upload(crowded, number) for number in range(UPLOADS)]
        # The other port keeps its reserve, and is served also where that needs files.
        expect(client.put("/photos/more", PUT_BLOB, bytes(20_000)), 201)
        assert expect(client.get("/photos/kept"), 200).body == bytes(20_000)
        assert process.poll() is None
        for connection in uploads:
            if connection is not None:
                connection.close()
        for _ in range(200):
            try:
                expect(crowded.another().put("/photos/again", PUT_BLOB, bytes(20_000)), 201)
                break
            except (OSError, AssertionError):
                time.sleep(0.05)
        expect(client.get("/photos/again"), 200)
        client.close()


@pytest.mark.parametrize(
    ("files", "connections"),
    [(None, 8192), (1_000_000, 8192), (1024, 384), (400, 72), (64, 16)],
)
def test_connections_leave_files_for_the_server_itself(files: int | None, connections: int) -> None:
    assert connections_for(files) == connections


def test_a_backlog_is_not_let_in_at_once() -> None:
    """More than are refused at the same time wait with the kernel, however many come together."""
    settings = replace(PATIENT, connections_max=4)

    async def prove() -> None:
        async with serving(_nothing, settings=settings) as served:
            crowd = [socket.create_connection((HOST, served.port)) for _ in range(CROWD)]
            for one in crowd:
                one.send(b"GET /")  # what has begun is not ended for a newcomer
            while served.server.connection_count <= settings.connections_max:  # noqa: ASYNC110
                await asyncio.sleep(0.002)  # bounded by `run`
            for _ in range(100):
                await asyncio.sleep(0.002)
                assert served.server.connection_count < CROWD // 2
            for one in crowd:
                one.close()

    run(prove())


async def _nothing(request: Request) -> Response:
    return Response(200, [], b"")


class _FewFiles(OsFiles):
    """A process that has no descriptor left for a new file, as long as `none_left` is set."""

    none_left = False

    def create(self, path: str) -> int:
        if self.none_left:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), path)
        return super().create(path)


def test_a_store_without_descriptors_refuses_and_goes_on(tmp_path: Path) -> None:
    files = _FewFiles()

    async def prove() -> None:
        options = EmbeddedOptions(files=files)
        store = await open_store(tmp_path / "data", ManualClock(), test_clock=True, options=options)
        files.none_left = True
        with pytest.raises(Busy):
            await store.contents.write(pieces(b"body"), None)
        files.none_left = False
        written = await store.contents.write(pieces(b"body"), None)
        assert written.size_bytes == 4
        await store.close()

    asyncio.run(prove())
