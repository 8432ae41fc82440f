"""`strongroom serve`: its ports, and mistakes of a first start."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from strongroom.cli.exits import Exit
from strongroom.testing import InProcessServer, Server
from strongroom.testing.ports import HOST, free_port, port_flags
from tests.cli.command import in_process, strongroom


def test_a_taken_port_names_the_service_and_the_flag(tmp_path: Path) -> None:
    flags = list(port_flags())
    with socket.create_server((HOST, free_port())) as taken:
        port = taken.getsockname()[1]
        flags[flags.index("--queue-port") + 1] = str(port)
        ran = strongroom("serve", "--data", tmp_path / "data", *flags)
    assert ran.code == Exit.LISTEN
    assert f"cannot listen on {HOST} port {port} for the queue service: " in ran.err
    assert "--queue-port 0 for a free one" in ran.err


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (
            ["--blob-port", "20001", "--table-port", "20001"],
            "--table-port gives port 20001, and so does --blob-port",
        ),
        (
            ["--port-base", "20001", "--one-port", "20004"],
            "--one-port gives port 20004, and so does --port-base",
        ),
        (["--smb", "--smb-port", "10000"], "--smb-port gives port 10000, and so does --blob-port"),
        (["--port", "8000"], "--blob-port 8000 sets that of blobs"),
    ],
)
def test_ports_that_cannot_be_meant_are_wrong_flags(flags: list[str], words: str) -> None:
    ran = in_process("serve", "--in-memory", *flags)
    assert (ran.code, words in ran.err) == (Exit.USAGE, True), ran.err


def test_a_host_that_there_is_not() -> None:
    ran = strongroom("serve", "--in-memory", "--host", "no-such-host.invalid")
    assert ran.code == Exit.LISTEN
    assert "--host no-such-host.invalid: no such name or address" in ran.err
    assert "development key" not in ran.err


def test_a_file_in_place_of_the_directory(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("something else")
    ran = strongroom("serve", "--data", path, *port_flags())
    assert ran.code == Exit.DATA
    assert f"--data {path} is a file; name a directory" in ran.err
    assert path.read_text() == "something else"


def test_one_flag_takes_free_ports_for_all() -> None:
    command = [sys.executable, "-m", "strongroom", "serve", "--in-memory", "--port-base", "0"]
    process = subprocess.Popen([*command, "--smb"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        lines: list[str] = []
        while "health" not in "".join(lines):
            line = process.stdout.readline()
            assert line, "it ended"
            lines.append(line)
    finally:
        process.terminate()
        process.wait(60)
    services = [line for line in lines if " service " in line]
    ports = {line.split(f"{HOST}:")[1].split("/")[0] for line in services}
    assert len(ports) == 4
    assert not ports & {"0", "10000", "10001", "10002", "10003"}


def test_a_flag_of_one_service_overrides_the_base() -> None:
    base, blob = free_port(), free_port()
    flags = ("--port-base", str(base), "--queue-port", "0", "--table-port", "0")
    with Server.start(port=blob, flags=flags) as server:
        assert server.port == blob


def test_a_browser_gets_a_sentence_and_a_link() -> None:
    with InProcessServer.start() as server:
        accept = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
        for port in (server.port, int(server.table_url.rpartition(":")[2])):
            connection = http.client.HTTPConnection(HOST, port, timeout=20)
            connection.request("GET", "/", headers=accept)
            answer = connection.getresponse()
            text = answer.read().decode()
            assert answer.status == 200
            assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
            assert "a storage server" in text
            link = text.partition('href="')[2].partition('"')[0]
            connection.request("GET", link)
            assert json.loads(connection.getresponse().read())["status"] == "ready"
            others = [
                ("/", {}),
                ("/?comp=list", accept),
                ("/", accept | {"Host": "acct.blob.localhost"}),
                ("/", accept | {"Authorization": "SharedKey a:b"}),
            ]
            for target, fields in others:
                connection.request("GET", target, headers=fields)
                answer = connection.getresponse()
                assert "text/html" not in answer.headers.get("Content-Type", "")
                assert answer.status >= 400
                answer.read()
            connection.close()
