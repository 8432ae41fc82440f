"""Copies for tests: starts them, keeps them pending, waits for their ends.

Must not live here: the expected answers.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from strongroom.testing.faults import Fault, FaultRule
from tests.conformance.answer import Answer, expect
from tests.conformance.client import Client
from tests.conformance.running import Running

SYNC = {"x-ms-requires-sync": "true"}
END_S = 90.0


def source_url(client: Client, target: str) -> str:
    """The URL of a blob of the client's account."""
    return client.url + target


def copy(client: Client, source: str, target: str, headers: dict[str, str] | None = None) -> Answer:
    """Copy Blob from a URL."""
    return client.put(target, {**(headers or {}), "x-ms-copy-source": source})


def abort(client: Client, target: str, copy_id: str) -> Answer:
    """Abort Copy Blob."""
    return client.put(f"{target}?comp=copy&copyid={copy_id}", {"x-ms-copy-action": "abort"})


@contextlib.contextmanager
def held(server: Running) -> Iterator[None]:
    """Keep copies that start within the block pending until its end."""
    faults = server.server.faults
    faults.order(FaultRule(operation="Copy Blob", fault=Fault.HOLD_COPY))
    try:
        yield
    finally:
        faults.clear()


def ended(client: Client, target: str) -> Answer:
    """Return the answer of HEAD after the copy to `target` is no longer pending."""
    until = time.monotonic() + END_S
    while True:
        found = expect(client.head(target), 200)
        if found["x-ms-copy-status"] != "pending":
            return found
        assert time.monotonic() < until, found
        time.sleep(0.01)
