"""Append Block From URL: rule B-URL-19."""

from __future__ import annotations

import base64
import hashlib

from tests.conformance.answer import expect, expect_names
from tests.conformance.appending import PUT_APPEND
from tests.conformance.blobs import body, put
from tests.conformance.client import Client
from tests.conformance.copying import readable


def test_bytes_of_a_source_become_blocks(client: Client, container: str) -> None:
    """B-URL-19."""
    source, log = f"/{container}/source", f"/{container}/log"
    put(client, source, b"0123456789")
    expect(client.put(log, PUT_APPEND), 201)
    url = client.url + source
    whole = client.put(f"{log}?comp=appendblock", {"x-ms-copy-source": readable(client, url)})
    expect(whole, 201)
    assert (whole["x-ms-blob-append-offset"], whole["x-ms-blob-committed-block-count"]) == (
        "0",
        "1",
    )
    digest = base64.b64encode(hashlib.md5(b"234").digest()).decode()
    part = {
        "x-ms-copy-source": readable(client, url),
        "x-ms-source-range": "bytes=2-4",
        "x-ms-source-content-md5": digest,
        "x-ms-blob-condition-appendpos": "10",
    }
    second = expect(client.put(f"{log}?comp=appendblock", part), 201)
    assert (second["x-ms-blob-append-offset"], second["Content-MD5"]) == ("10", digest)
    assert body(client, log) == b"0123456789234"


def test_sources_and_blobs_that_are_refused(client: Client, container: str) -> None:
    """B-URL-19."""
    source, log = f"/{container}/source", f"/{container}/log"
    put(client, source, b"0123456789")
    put(client, f"{source}-empty", b"")
    expect(client.put(log, PUT_APPEND), 201)
    target, url = f"{log}?comp=appendblock", client.url + source

    moved = {"x-ms-blob-condition-appendpos": "1", "x-ms-copy-source": readable(client, url)}
    expect(client.put(target, moved), 412, "AppendPositionConditionNotMet")
    wrong = {"x-ms-source-content-md5": base64.b64encode(bytes(16)).decode()}
    expect(
        client.put(target, {"x-ms-copy-source": readable(client, url), **wrong}), 400, "Md5Mismatch"
    )
    unmet = {"x-ms-source-if-match": '"0x1"', "x-ms-copy-source": readable(client, url)}
    expect(client.put(target, unmet), 412, "CannotVerifyCopySource")
    missing = client.put(target, {"x-ms-copy-source": readable(client, f"{url}-missing")})
    expect(missing, 404, "CannotVerifyCopySource")
    empty = client.put(target, {"x-ms-copy-source": readable(client, f"{url}-empty")})
    expect_names(empty, 400, "InvalidHeaderValue", "x-ms-copy-source")
    onto_itself = client.put(
        f"{source}?comp=appendblock", {"x-ms-copy-source": readable(client, url)}
    )
    expect(onto_itself, 409, "InvalidBlobType")
    assert body(client, log) == b""
