"""A process with little memory (`ulimit -v`): it refuses some requests, and continues or ends.

It never stays alive without serving.
"""

from __future__ import annotations

import http.client
import re
import resource
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME
from strongroom.cli.exits import Exit
from strongroom.testing import Server
from strongroom.testing.ports import HOST, free_port
from tests.conformance.answer import expect
from tests.conformance.client import PUT_BLOB, Client, Credential

CREDENTIAL = Credential(DEVELOPMENT_ACCOUNT_NAME, DEVELOPMENT_ACCOUNT_KEY)
MIB = 1024 * 1024
CLIENTS = 24
BODY = bytes(8 * MIB)
PATIENCE_S = 90.0


def limit_memory(server: Server, more_bytes: int | None) -> None:
    """From now on it gets so many bytes of addresses more than it has; None = hardly any at all."""
    status = Path(f"/proc/{server.pid}/status").read_text()
    found = re.search(r"VmSize:\s+(\d+) kB", status)
    assert found
    most = MIB if more_bytes is None else int(found[1]) * 1024 + more_bytes
    _, hard = resource.prlimit(server.pid, resource.RLIMIT_AS)
    resource.prlimit(server.pid, resource.RLIMIT_AS, (most, hard))


def healthy(server: Server) -> bool:
    connection = http.client.HTTPConnection(HOST, server.port, timeout=60)
    try:
        connection.request("GET", "/.strongroom/health")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


@pytest.mark.parametrize("more_bytes", [2 * MIB, 16 * MIB])
def test_uploads_without_memory_are_refused_and_others_served(
    tmp_path: Path, more_bytes: int
) -> None:
    with Server.start(data=tmp_path / "data") as server:
        client = Client(server.port, CREDENTIAL)
        expect(client.put("/photos?restype=container"), 201)
        expect(client.put("/photos/kept", PUT_BLOB, bytes(20_000)), 201)
        limit_memory(server, more_bytes)
        outcomes: Counter[int | str] = Counter()

        def upload(number: int) -> None:
            for _ in range(2):
                one = Client(server.port, CREDENTIAL)
                try:
                    outcomes[one.put(f"/photos/{number}", PUT_BLOB, BODY).status] += 1
                except (OSError, http.client.HTTPException):
                    outcomes["broken off"] += 1
                finally:
                    one.close()

        crowd = [threading.Thread(target=upload, args=(number,)) for number in range(CLIENTS)]
        for one in crowd:
            one.start()
        for one in crowd:
            one.join(PATIENCE_S)
        assert set(outcomes) <= {201, 503, "broken off"}, "a lack of memory is no defect"
        assert server.exit_code is None
        assert any(map(healthy, [server] * 3))
        until = time.monotonic() + PATIENCE_S
        again = Client(server.port, CREDENTIAL)
        # Each failed allocation refuses further uploads for some seconds.
        while again.put("/photos/again", PUT_BLOB, bytes(2 * MIB)).status == 503:
            assert time.monotonic() < until, "uploads are refused for ever"
            time.sleep(0.2)
            again = Client(server.port, CREDENTIAL)
        assert expect(again.get("/photos/again"), 200).body == bytes(2 * MIB)
        assert expect(again.get("/photos/kept"), 200).body == bytes(20_000)


def test_without_any_memory_it_serves_or_ends_and_can_be_stopped(tmp_path: Path) -> None:
    with Server.start(data=tmp_path / "data") as server:
        client = Client(server.port, CREDENTIAL)
        expect(client.put("/photos?restype=container"), 201)
        expect(client.put("/photos/kept", PUT_BLOB, bytes(20_000)), 201)
        limit_memory(server, None)
        for _ in range(20):
            assert healthy(server) or server.exit_code in (None, Exit.STORAGE)
        server.stop()
        assert server.exit_code in (Exit.DONE, Exit.STORAGE)
    with Server.start(data=tmp_path / "data") as server:
        kept = Client(server.port, CREDENTIAL).get("/photos/kept")
        assert expect(kept, 200).body == bytes(20_000)


def test_a_start_without_memory_for_its_threads_says_so(tmp_path: Path) -> None:
    program = (
        "import resource, threading\n"
        "from strongroom import app, cli\n"  # what is imported needs memory too
        "from strongroom.cli import serve\n"
        f"threading.stack_size({64 * MIB})\n"  # so that no thread fits
        "size = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        f"resource.setrlimit(resource.RLIMIT_AS, (size + {16 * MIB},) * 2)\n"
        "cli.main()\n"
    )
    ports = [f"--{service}-port={free_port()}" for service in ("blob", "queue", "table", "file")]
    command = [sys.executable, "-c", program, "serve", f"--data={tmp_path / 'data'}", *ports]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == Exit.STORAGE, ended.stderr
    assert "memory ran out" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_giving_up_ends_at_once_with_its_own_code() -> None:
    program = (
        "from strongroom.cli.serving.until_signal import Program, _exit_at_once; "
        "_exit_at_once(Program('strongroom', print), 'memory ran out')"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60
    )
    assert (ended.returncode, ended.stderr) == (Exit.STORAGE, "strongroom: memory ran out\n")
