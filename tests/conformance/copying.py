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
from tests.conformance.sas import account_sas

SYNC = {"x-ms-requires-sync": "true"}
END_S = 90.0


def source_url(client: Client, target: str) -> str:
    """The URL of a blob of the client's account."""
    return client.url + target


def readable(client: Client, url: str) -> str:
    """Return the URL with a token to read it, if it is of the client's account and has none. A
    client without a key adds none.

    Only Copy Blob and Copy File read a private source by the request's own signature.
    """
    path = url.partition("://")[2].partition("/")[2]
    if client.auth is None or "sig=" in url or not path.startswith(f"{client.account}/"):
        return url
    token = account_sas(client.credential, ss="bf", srt="o", sp="rt")
    return f"{url}{'&' if '?' in url else '?'}{token}"


def copy(client: Client, source: str, target: str, headers: dict[str, str] | None = None) -> Answer:
    """Copy Blob from a URL; with the headers of these, Copy Blob From URL and Put Blob From URL."""
    given = headers or {}
    if "x-ms-requires-sync" in given or "x-ms-blob-type" in given:
        source = readable(client, source)
    return client.put(target, {**given, "x-ms-copy-source": source})


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
