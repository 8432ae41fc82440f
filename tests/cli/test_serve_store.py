"""`strongroom serve --store`: processes over a PostgreSQL, what they print, and what they hide."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from azure.storage.blob import BlobServiceClient

from strongroom.cli.exits import Exit
from strongroom.config import without_settings
from strongroom.database import DatabaseSettings
from strongroom.testing import Server
from tests.cli.command import TIMEOUT_S, in_process
from tests.over_postgres import database, new_store

SECRET = "s3cret-of-the-store"
USER = "keeper"


@pytest.fixture(scope="module")
def with_password() -> str:
    """A URL with a password, of a database that its user owns."""
    database().add_user(USER, SECRET)
    return f"postgresql://{USER}:{SECRET}@{database().address}/{USER}"


def server_over(store: DatabaseSettings, data: Path, *flags: str) -> Server:
    """Start a server that serves a store in a database."""
    given = ("--store-schema", store.schema, "--store-connections", "4", *flags)
    environment = {"STRONGROOM_STORE": store.url}
    return Server.start(data=data, test_clock=False, flags=given, environment=environment)


@contextmanager
def waiting_for(
    store: DatabaseSettings, data: Path, *flags: str, **environment: str
) -> Iterator[subprocess.Popen[str]]:
    """Start a server that finds another one serving, and return when it has said so."""
    command = [sys.executable, "-u", "-m", "strongroom", "serve", "--data", str(data)]
    command += ["--port-base", "0", "--store-schema", store.schema, *flags]
    variables = {**without_settings(os.environ), "STRONGROOM_STORE": store.url, **environment}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=variables)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting: gateway 0 serves this store\n"
        yield process
    finally:
        process.kill()
        process.wait(TIMEOUT_S)
        assert process.stdout is not None
        process.stdout.close()


def put(server: Server, text: bytes) -> None:
    client = BlobServiceClient.from_connection_string(server.connection_string)
    client.create_container("wiki").upload_blob("page", text)


def page(connection_string: str) -> bytes:
    client = BlobServiceClient.from_connection_string(connection_string)
    return client.get_blob_client("wiki", "page").download_blob().readall()


def cut_off(user: str) -> None:
    """End all sessions of a user, which a server has to open again."""
    with psycopg.connect(database().url, autocommit=True) as session:
        session.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", (user,)
        )


def test_it_says_where_the_data_is_and_keeps_it(tmp_path: Path) -> None:
    store = new_store()
    with server_over(store, tmp_path / "own", "--tls", "--log-level", "info") as server:
        printed = server.output()
        where = f"PostgreSQL at {database().address}/postgres"
        assert f"data               {where}\n" in printed.replace("  data   ", "data   ")
        assert f"ready: {where}, on 127.0.0.1" in printed
        assert "durable: what is answered is in PostgreSQL" in printed
    own = {path.name for path in (tmp_path / "own").iterdir()}
    assert own == {"tls-certificate.pem", "tls-key.pem"}, "nothing else is in the folder"
    (tmp_path / "own" / "FORMAT").touch()  # as in a data directory
    with server_over(store, tmp_path / "own") as server:
        put(server, b"first")
        server.restart()
        assert page(server.connection_string) == b"first"
        assert "the data in the directory" in server.output()


def test_the_password_is_shown_nowhere(tmp_path: Path, with_password: str) -> None:
    store = new_store(with_password)
    file = tmp_path / "url"
    file.write_text(with_password + "\n")
    file.chmod(0o600)
    flags = ("--store-file", str(file), "--store-schema", store.schema, "--log-level", "debug")
    with Server.start(data=tmp_path / "own", test_clock=False, flags=flags) as server:
        put(server, b"first")
        seen = [Path(f"/proc/{server.pid}/cmdline").read_bytes().decode()]
        metrics = urllib.request.urlopen(f"{server.url}/.strongroom/metrics").read().decode()
        assert "strongroom_gateway_number 0" in metrics
        seen.append(metrics)
        seen += [in_process("status", server.url, *more).out for more in ((), ("--json",))]
        named = ("--store-file", str(file), "--schema", store.schema)
        seen += [in_process("store", "status", *named, *more).out for more in ((), ("--json",))]
        cut_off(USER)
        assert page(server.connection_string) == b"first"
        server.stop()
        seen.append(server.output())
    for text in seen:
        assert text
        assert SECRET not in text
    assert store.schema in seen[0]


def test_a_server_that_waits_has_no_port_and_ends_at_a_signal(tmp_path: Path) -> None:
    store = new_store()
    notify = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(notify))
        manager.settimeout(TIMEOUT_S)
        ready = tmp_path / "ready.json"
        with (
            server_over(store, tmp_path / "first") as serving,
            waiting_for(
                store,
                tmp_path / "second",
                *("--ready-file", str(ready)),
                NOTIFY_SOCKET=str(notify),
            ) as waiting,
        ):
            heard: list[str] = []
            while "STATUS=waiting: gateway 0 serves this store" not in heard:
                heard.append(manager.recv(4096).decode())
            assert "READY=1" in heard, "the service has started, whichever gateway serves"
            assert not ready.exists()
            waiting.send_signal(signal.SIGTERM)
            assert waiting.wait(TIMEOUT_S) == Exit.DONE
            put(serving, b"first")


def test_a_server_takes_over_after_a_clean_stop(tmp_path: Path) -> None:
    store = new_store()
    ready = tmp_path / "ready.json"
    with server_over(store, tmp_path / "first") as serving:
        put(serving, b"first")
        with waiting_for(store, tmp_path / "second", "--ready-file", str(ready)) as waiting:
            serving.stop()
            assert waiting.stdout is not None
            while "is ready" not in waiting.stdout.readline():
                assert waiting.poll() is None
            endpoints = json.loads(ready.read_text())["endpoints"]
            string = serving.connection_string.replace(serving.url, endpoints["blob"])
            assert page(string) == b"first"
            waiting.send_signal(signal.SIGTERM)
            assert waiting.wait(TIMEOUT_S) == Exit.DONE


def test_without_the_driver_the_error_names_the_extra(tmp_path: Path) -> None:
    program = (
        "import sys\nsys.modules['psycopg'] = None\n"
        "from strongroom.cli import app\napp(sys.argv[1:])\n"
    )
    url = "postgresql://u@127.0.0.1:1/store"
    for arguments in (
        ["serve", "--store", url, "--data", str(tmp_path), "--port-base", "0"],
        ["store", "status", url],
        ["store", "init", url],
    ):
        command = [sys.executable, "-c", program, *arguments]
        ran = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=60,
            env=without_settings(os.environ),
        )  # fmt: skip
        assert "pip install strongroom[postgres]" in ran.stderr, ran.stderr
        assert ran.returncode in (Exit.DATA, Exit.SETTINGS), arguments


def test_a_database_that_does_not_answer_is_worth_another_start(tmp_path: Path) -> None:
    url = "postgresql://u@127.0.0.1:1/store"
    ran = subprocess.run(
        [sys.executable, "-m", "strongroom", "serve", "--store", url, "--data", str(tmp_path)],
        capture_output=True, text=True, check=False, timeout=60,
        env=without_settings(os.environ),
    )  # fmt: skip
    assert ran.returncode == Exit.UNAVAILABLE
    assert "PostgreSQL at 127.0.0.1:1/store" in ran.stderr
