"""Append blobs for tests: creates them, appends to them, reads their properties.

Must not live here: the client (client.py) or checks of answers (answer.py).
"""

from __future__ import annotations

from tests.conformance.answer import Answer, expect
from tests.conformance.client import Client

PUT_APPEND = {"x-ms-blob-type": "AppendBlob"}
POSITION = "x-ms-blob-condition-appendpos"
MAX_SIZE = "x-ms-blob-condition-maxsize"


def create(client: Client, target: str, headers: dict[str, str] | None = None) -> Answer:
    """Put an append blob; it must succeed."""
    return expect(client.put(target, {**PUT_APPEND, **(headers or {})}), 201)


def append(
    client: Client, target: str, body: bytes, headers: dict[str, str] | None = None
) -> Answer:
    """Append Block."""
    return client.put(f"{target}?comp=appendblock", headers or {}, body)


def appended(
    client: Client, target: str, body: bytes, headers: dict[str, str] | None = None
) -> tuple[int, int]:
    """Append a block, which must succeed, and return the offset and the count of the answer."""
    answer = expect(append(client, target, body, headers), 201)
    return int(answer["x-ms-blob-append-offset"]), int(answer["x-ms-blob-committed-block-count"])


def seal(client: Client, target: str, headers: dict[str, str] | None = None) -> Answer:
    """Append Blob Seal."""
    return client.put(f"{target}?comp=seal", headers or {})


def count(client: Client, target: str) -> int:
    """Return the block count that HEAD reports."""
    return int(expect(client.head(target), 200)["x-ms-blob-committed-block-count"])
