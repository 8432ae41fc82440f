"""The long proof of forwarding: requests on files over two gateways in turn. None is answered 503.

Nobody dies. Each file is made, written, read, changed and deleted, each time at the next gateway.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.conformance.client import Client
from tests.effort import scaled
from tests.engines.postgres.servers import quick_server
from tests.proof.gateways.results import Result, commit, keep, left
from tests.proof.gateways.serving import Serving
from tests.proof.gateways.ways import LOST, Way
from tests.proof.postgres.http_store import made

PART = "files, nobody dies"
ROUNDS = scaled(10)
REQUESTS = 1_000  # of a round
CLIENTS = 6
SHARES = 3
_EACH = 6  # requests on a file
_BYTES = 2_000


@pytest.mark.timeout(2400)
def test_no_request_on_files_is_refused(tmp_path: Path) -> None:
    with quick_server(tmp_path) as server, Serving([server.url] * 2, tmp_path) as serving:
        way = serving.way.patient()
        for share in range(SHARES):
            made(way.clients().files.put(f"/share{share}?restype=share"))
        for seed in left(PART, ROUNDS):
            began, way = time.monotonic(), serving.way.patient()
            failures = asked(way, seed)
            statuses = Counter(one.status for one in way.answers.all())
            assert statuses.total() >= REQUESTS or failures
            seconds = time.monotonic() - began
            keep(Result(PART, commit(), seed, statuses.total(), seconds, failures))
            assert not failures, failures
            assert all(200 <= status < 300 for status in statuses), statuses


def asked(way: Way, seed: int) -> list[str]:
    """Send the requests of a round. Return what failed."""
    failed: list[str] = []

    def run(number: int) -> None:
        try:
            client = way.clients().files
            for turn in range(-(-REQUESTS // (CLIENTS * _EACH))):
                use(client, f"/share{turn % SHARES}/f{seed}-{number}-{turn}")
        except (AssertionError, *LOST) as error:
            failed.append(repr(error))

    threads = [threading.Thread(target=run, args=(one,)) for one in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failed


def use(client: Client, target: str) -> None:
    """Make a file, and send some requests on it, which all succeed."""
    body = target.encode().ljust(_BYTES, b".")
    fields = {"x-ms-type": "file", "x-ms-content-length": str(_BYTES)}
    made(client.put(target, fields))
    written = {"x-ms-write": "update", "x-ms-range": f"bytes=0-{_BYTES - 1}"}
    made(client.put(f"{target}?comp=range", written, body))
    assert made(client.get(target)).body == body
    made(client.put(f"{target}?comp=metadata", {"x-ms-meta-of": "the file"}))
    assert made(client.head(target)).get("x-ms-meta-of") == "the file"
    made(client.delete(target))
