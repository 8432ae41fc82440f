"""Page blobs as tests create and read them.

Lives here: one function per request. Must not live here: tests.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.conformance.answer import Answer, expect
from tests.conformance.client import Client

PAGE = 512
GIB = 1024 * 1024 * 1024
NONE: Mapping[str, str] = {}


def create(
    client: Client, target: str, size: int, headers: Mapping[str, str] = NONE, status: int = 201
) -> Answer:
    """Put Blob of a page blob."""
    wanted = {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": str(size), **headers}
    return expect(client.put(target, wanted), status)


def send(
    client: Client, target: str, first: int, data: bytes, headers: Mapping[str, str] = NONE
) -> Answer:
    """Put Page."""
    own = {"x-ms-page-write": "update", "x-ms-range": f"bytes={first}-{first + len(data) - 1}"}
    return client.put(f"{target}?comp=page", {**own, **headers}, data)


def write(
    client: Client, target: str, first: int, data: bytes, headers: Mapping[str, str] = NONE
) -> Answer:
    """Put Page, which must succeed."""
    return expect(send(client, target, first, data, headers), 201)


def clear(
    client: Client, target: str, first: int, length: int, headers: Mapping[str, str] = NONE
) -> Answer:
    """Put Page (clear)."""
    own = {"x-ms-page-write": "clear", "x-ms-range": f"bytes={first}-{first + length - 1}"}
    return client.put(f"{target}?comp=page", {**own, **headers})


def ranges(client: Client, target: str, query: str = "") -> list[tuple[str, int, int]]:
    """Get Page Ranges: (P or C, first byte, end) of each."""
    joint = "&" if "?" in target else "?"
    answer = expect(client.get(f"{target}{joint}comp=pagelist{query}"), 200)
    return listed(answer)


def listed(answer: Answer) -> list[tuple[str, int, int]]:
    """The ranges of an answer."""
    found = []
    for one in answer.xml:
        if one.tag != "NextMarker":
            start, end = int(one.findtext("Start") or ""), int(one.findtext("End") or "")
            found.append((one.tag[0], start, end + 1))
    return found
