"""Reads, writes and lists of what blobs contain, as kinds of long work: blocks, ranges, batches."""

import base64
import http.client
import os
from typing import Final

from benchmarks.endpoint import API_VERSION, BLOCK_BLOB, HOST, Endpoint
from benchmarks.engine import CONNECTION, Step
from benchmarks.fairness.kinds import get, nothing, requests
from benchmarks.workloads import make_container

_BLOCKS: Final = 50_000
RANGES: Final = 2_000
RANGE_BYTES: Final = 512
_LARGE_BYTES: Final = 8 * 1024 * 1024
_BOUNDARY: Final = "batch_0f"


def _block_list() -> bytes:
    name = base64.b64encode(b"%06d" % 0).decode()
    return f"<BlockList>{f'<Latest>{name}</Latest>' * _BLOCKS}</BlockList>".encode()


def _prepare_blocks(endpoint: Endpoint) -> None:
    make_container(endpoint, "/blocks")
    name = base64.b64encode(b"%06d" % 0).decode()
    for blob in ("one", "two"):
        path = f"/blocks/{blob}?comp=block&blockid={name}"
        endpoint.fill(endpoint.step("block", "PUT", path, 201, body=b"x" * 10), 1)
        endpoint.fill(_put_block_list(endpoint, blob), 1)


def _put_block_list(endpoint: Endpoint, blob: str) -> Step:
    path = f"/blocks/{blob}?comp=blocklist"
    return endpoint.step("list", "PUT", path, 201, body=_block_list())


def _prepare_ranges(endpoint: Endpoint) -> None:
    make_container(endpoint, "/ranges")
    size_bytes = 2 * RANGES * RANGE_BYTES
    fields = {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": str(size_bytes)}
    endpoint.make("/ranges/one", fields)
    for at in range(RANGES):
        first = 2 * at * RANGE_BYTES
        fields = {"x-ms-page-write": "update", "x-ms-range": f"bytes={first}-{first + 511}"}
        endpoint.make("/ranges/one?comp=page", fields, b"x" * RANGE_BYTES)


def _changed_ranges(endpoint: Endpoint) -> Step:
    """Return a request for the changes of a page blob since a snapshot: every second range has
    changed."""
    target = endpoint.target("/ranges/one?comp=snapshot")
    taken = http.client.HTTPConnection(HOST, endpoint.port)
    taken.request("PUT", target, headers={"x-ms-version": API_VERSION, "Content-Length": "0"})
    time_text = taken.getresponse().headers["x-ms-snapshot"]
    taken.close()
    for at in range(0, RANGES, 2):
        first = 2 * at * RANGE_BYTES
        fields = {"x-ms-page-write": "update", "x-ms-range": f"bytes={first}-{first + 511}"}
        endpoint.make("/ranges/one?comp=page", fields, b"y" * RANGE_BYTES)
    return endpoint.step("long", "GET", f"/ranges/one?comp=pagelist&prevsnapshot={time_text}", 200)


def _batch_of_deletes(endpoint: Endpoint) -> Step:
    """Return a batch of deletes of 256 blobs that do not exist."""
    target = endpoint.target("/small/none")
    head = f"--{_BOUNDARY}\r\nContent-Type: application/http\r\n"
    head += "Content-Transfer-Encoding: binary\r\n\r\n"
    part = f"{head}DELETE {target} HTTP/1.1\r\nContent-Length: 0\r\n\r\n\r\n"
    body = f"{part * 256}--{_BOUNDARY}--\r\n".encode()
    fields = {"Content-Type": f"multipart/mixed; boundary={_BOUNDARY}"}
    return endpoint.step("long", "POST", "/?comp=batch", 202, headers=fields, body=body)


def _put_large(endpoint: Endpoint) -> Step:
    path = f"/small/large-{CONNECTION}"
    # The load replaces marks such as CYCLE in a body, so random bytes would not keep their length.
    body = os.urandom(_LARGE_BYTES // 2).hex().encode()
    return endpoint.step("long", "PUT", path, 201, headers=BLOCK_BLOB, body=body)


def _prepare_large(endpoint: Endpoint) -> None:
    endpoint.make("/small/large", BLOCK_BLOB, os.urandom(_LARGE_BYTES))


BLOB_CONTENTS: Final = (
    requests("Get Block List of 50,000", _prepare_blocks, get("/blocks/one?comp=blocklist")),
    requests("Get Blob of 50,000 blocks", nothing, get("/blocks/one")),
    requests("Put Block List of 50,000", nothing, lambda on: _put_block_list(on, "two")),
    requests("page ranges, 2,000", _prepare_ranges, get("/ranges/one?comp=pagelist")),
    requests("page ranges since a snapshot", nothing, _changed_ranges),
    requests("batch of 256 deletes", nothing, _batch_of_deletes),
    requests("Put Blob of 8 MiB", nothing, _put_large),
    requests("Get Blob of 8 MiB", _prepare_large, get("/small/large")),
)
