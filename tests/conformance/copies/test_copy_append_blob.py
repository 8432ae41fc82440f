"""Copies of append blobs: rules B-APP-13 and B-APP-14."""

from __future__ import annotations

import pytest

from strongroom import limits
from tests.conformance.answer import expect
from tests.conformance.appending import append, appended, count, create, seal
from tests.conformance.blobs import body, put, snapshot
from tests.conformance.client import Client
from tests.conformance.copying import SYNC, abort, copy, ended, held, source_url
from tests.conformance.running import Running

SEAL = "x-ms-seal-blob"


@pytest.mark.parametrize("headers", [{}, SYNC], ids=["copy", "from url"])
@pytest.mark.parametrize("sizes", [(), (5,), (5, 9000, 7, 100_000)], ids=len)
def test_a_copy_of_an_append_blob(
    client: Client, container: str, headers: dict[str, str], sizes: tuple[int, ...]
) -> None:
    """B-APP-13."""
    source, target = f"/{container}/a", f"/{container}/b"
    create(client, source)
    for number, size in enumerate(sizes):
        appended(client, source, b"%d" % number * size)
    expect(copy(client, source_url(client, source), target, headers), 202)
    assert client.head(target)["x-ms-blob-type"] == "AppendBlob"
    assert count(client, target) == len(sizes)
    assert body(client, target) == body(client, source)
    assert appended(client, target, b"more") == (sum(sizes), len(sizes) + 1)
    assert body(client, target) == body(client, source) + b"more"


def test_a_large_copy_and_one_of_a_snapshot(client: Client, container: str) -> None:
    """B-APP-13: over the base too."""
    source, target = f"/{container}/a", f"/{container}/b"
    create(client, source)
    size_bytes = limits.COPY_AT_ONCE_BYTES_MAX // 4 + 1
    for number in range(4):
        appended(client, source, b"%d" % number * size_bytes)
    expect(copy(client, source_url(client, source), target), 202)
    assert ended(client, target)["x-ms-copy-status"] == "success"
    whole = body(client, source)
    assert body(client, target) == whole
    assert appended(client, target, b"x") == (len(whole), 5)
    ticks = snapshot(client, source)
    appended(client, source, b"later")
    url = f"{source_url(client, source)}?snapshot={ticks}"
    expect(copy(client, url, source), 202)
    assert ended(client, source)["x-ms-copy-status"] == "success"
    assert (body(client, source), count(client, source)) == (whole, 4)


@pytest.mark.parametrize(
    ("sealed", "asked", "after"),
    [
        (False, None, False),
        (False, "true", True),
        (False, "false", False),
        (True, None, True),
        (True, "true", True),
        (True, "false", False),
    ],
)
def test_whether_a_copy_is_sealed(
    client: Client, container: str, sealed: bool, asked: str | None, after: bool
) -> None:
    """B-APP-13."""
    source, target = f"/{container}/a", f"/{container}/b"
    create(client, source)
    if sealed:
        expect(seal(client, source), 200)
    expect(copy(client, source_url(client, source), target, {SEAL: asked} if asked else {}), 202)
    assert ("x-ms-blob-sealed" in client.head(target).names()) is after
    code = (409, "BlobIsSealed") if after else (201, None)
    expect(append(client, target, b"x"), *code)


def test_only_append_blobs_are_sealed(client: Client, container: str) -> None:
    """B-APP-13."""
    put(client, f"/{container}/a")
    url, target = source_url(client, f"/{container}/a"), f"/{container}/b"
    expect(copy(client, url, target, {SEAL: "true"}), 409, "InvalidBlobType")
    expect(copy(client, url, target, {SEAL: "x"}), 400, "InvalidHeaderValue")
    expect(copy(client, url, target, {SEAL: "false"}), 202)


def test_an_aborted_copy_is_an_empty_append_blob(
    server: Running, client: Client, container: str
) -> None:
    """B-APP-13."""
    source, target = f"/{container}/a", f"/{container}/b"
    create(client, source)
    appended(client, source, b"text")
    with held(server):
        begun = expect(copy(client, source_url(client, source), target, {SEAL: "true"}), 202)
        expect(append(client, target, b"x"), 409, "PendingCopyOperation")
        expect(seal(client, target), 409, "PendingCopyOperation")
        expect(abort(client, target, begun["x-ms-copy-id"]), 204)
    assert client.head(target)["x-ms-blob-type"] == "AppendBlob"
    assert appended(client, target, b"x") == (0, 1)


def test_a_copy_over_another_type(client: Client, container: str) -> None:
    """B-APP-14."""
    log, text = f"/{container}/log", f"/{container}/text"
    create(client, log)
    put(client, text)
    for headers in ({}, SYNC):
        for source, target in ((log, text), (text, log)):
            answer = copy(client, source_url(client, source), target, headers)
            expect(answer, 409, "InvalidBlobType")
    assert client.head(log)["x-ms-blob-type"] == "AppendBlob"
    assert body(client, text) == b"content"
