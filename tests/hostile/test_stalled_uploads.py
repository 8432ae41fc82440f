"""Stalled uploads: many of them use little memory, which is freed at their end."""

from __future__ import annotations

import re
import time
from contextlib import ExitStack
from pathlib import Path

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME
from strongroom.testing.server import Server
from tests.conformance.answer import expect
from tests.conformance.client import PUT_BLOB, Client, Credential
from tests.hostile.test_open_files import begin_upload

UPLOADS = 300
SENT_BYTES = 1_100_000
RESIDENT_BYTES_MAX = 150_000_000
LEFT_MAX = 1.3


def resident_bytes(pid: int) -> int:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found[1]) * 1024


def test_a_crowd_of_stalled_uploads_takes_little_memory(tmp_path: Path) -> None:
    with Server.start(data=tmp_path / "data") as server, ExitStack() as crowd:
        client = Client(server.port, Credential(DEVELOPMENT_ACCOUNT_NAME, DEVELOPMENT_ACCOUNT_KEY))
        expect(client.put("/photos?restype=container"), 201)
        expect(client.put("/photos/first", PUT_BLOB, bytes(2_000_000)), 201)
        before_bytes = resident_bytes(server.pid)
        for number in range(UPLOADS):
            crowd.callback(begin_upload(client, number, SENT_BYTES).close)
        highest_bytes = 0
        for _ in range(20):
            highest_bytes = max(highest_bytes, resident_bytes(server.pid))
            time.sleep(0.1)
        expect(client.get("/photos/first"), 200)
        assert highest_bytes < RESIDENT_BYTES_MAX
        crowd.close()
        for _ in range(300):
            if resident_bytes(server.pid) < LEFT_MAX * before_bytes:
                break
            time.sleep(0.1)
        assert resident_bytes(server.pid) < LEFT_MAX * before_bytes
        client.close()
