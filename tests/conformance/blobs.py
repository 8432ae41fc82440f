"""Blobs for tests: puts them, stages and commits blocks, reads all properties of a blob.

Must not live here: the client (client.py) or checks of answers (answer.py).
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from urllib.parse import quote

from tests.conformance.answer import Answer, expect
from tests.conformance.client import PUT_BLOB, Client

SHOWN_ONLY_ONCE = {"date", "x-ms-request-id"}


def put(
    client: Client,
    target: str,
    body: bytes = b"content",
    headers: dict[str, str] | None = None,
) -> Answer:
    """Put a blob, which must succeed."""
    return expect(client.put(target, {**PUT_BLOB, **(headers or {})}, body), 201)


def md5(body: bytes) -> str:
    """Return the base64 of the MD5, in the form of Content-MD5."""
    return base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()


def encoded(block_id: str) -> str:
    """A block id in base64."""
    return base64.b64encode(block_id.encode()).decode()


def block_target(target: str, block_id: str) -> str:
    """The target of Put Block."""
    return f"{target}?comp=block&blockid={quote(encoded(block_id), safe='')}"


def stage(client: Client, target: str, block_id: str, body: bytes) -> Answer:
    """Put Block; it must succeed."""
    return expect(client.put(block_target(target, block_id), {}, body), 201)


def block_list(*entries: str | tuple[str, str]) -> bytes:
    """The XML of Put Block List: ids (Latest), or (kind, id)."""
    pairs = [("Latest", entry) if isinstance(entry, str) else entry for entry in entries]
    rows = "".join(f"<{kind}>{encoded(name)}</{kind}>" for kind, name in pairs)
    return f'<?xml version="1.0" encoding="utf-8"?><BlockList>{rows}</BlockList>'.encode()


def commit(
    client: Client,
    target: str,
    entries: Sequence[str | tuple[str, str]],
    headers: dict[str, str] | None = None,
) -> Answer:
    """Put Block List; it must succeed."""
    body = block_list(*entries)
    return expect(client.put(f"{target}?comp=blocklist", headers or {}, body), 201)


def blocks(client: Client, target: str, kind: str = "all") -> tuple[list[str], list[str]]:
    """The decoded ids of the committed and of the uncommitted blocks."""
    separator = "&" if "?" in target else "?"
    answer = client.get(f"{target}{separator}comp=blocklist&blocklisttype={kind}")
    root = expect(answer, 200).xml
    lists = []
    for part in ("CommittedBlocks", "UncommittedBlocks"):
        names = root.findall(f"{part}/Block/Name")
        lists.append([base64.b64decode(name.text or "").decode() for name in names])
    return lists[0], lists[1]


def snapshot(client: Client, target: str, headers: dict[str, str] | None = None) -> str:
    """Create a snapshot, and return its time."""
    answer = expect(client.put(f"{target}?comp=snapshot", headers or {}), 201)
    return answer["x-ms-snapshot"]


def body(client: Client, target: str) -> bytes:
    """Return the body of Get Blob."""
    return expect(client.get(target), 200).body


def seen(client: Client, target: str) -> tuple[object, ...]:
    """Return all that a read of the blob shows, including headers, for comparison with a later
    read."""
    answer = client.get(target)
    kept = [(n.lower(), v) for n, v in answer.headers if n.lower() not in SHOWN_ONLY_ONCE]
    return (answer.status, answer.body, tuple(sorted(kept)))
