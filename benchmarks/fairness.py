"""How long one request can delay the others. For each kind of long work: the longest turn of the
loop, and the p99 of a small GET alone and beside it.

The server runs on a thread of this process. A turn is measured in CPU time of that thread, so that
other programs on the machine do not count. Other processes generate the load.
"""

import asyncio
import base64
import gc
import http.client
import json
import os
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.endpoint import API_VERSION, BLOCK_BLOB, HOST, Endpoint, account_sas
from benchmarks.engine import CONNECTION, CYCLE, Load, Report, Step, StepReport
from benchmarks.results import Row, row
from benchmarks.table_workloads import entity_batches
from benchmarks.workloads import make_container, put_blob
from strongroom.cli.serve import GC_THRESHOLDS
from strongroom.testing.server import InProcessServer

_CLIENTS: Final = 8
_ROUNDS: Final = 3
_ROUND_S: Final = 2.0
_BLOBS: Final = 5_000
_BLOCKS: Final = 50_000
_RANGES: Final = 2_000
_SNAPSHOTS: Final = 2_000
_ENTITIES: Final = 20_000
_PLACES: Final = 2_000
_PAGE_BYTES: Final = 512
_BOUNDARY: Final = "batch_0f"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of long work: its preparation, and its request."""

    name: str
    prepare: Callable[[Endpoint], None]
    step: Callable[[Endpoint], Step]
    service: str = "blob"


class _Turns:
    """The longest turn of a loop, in CPU time of its thread. A turn begins with each pass of
    `_watch`, which the loop resumes once per turn."""

    def __init__(self) -> None:
        self._longest_s = 0.0
        self._ended = threading.Event()

    async def watch(self) -> None:
        began = time.thread_time()
        while not self._ended.is_set():
            await asyncio.sleep(0)
            now = time.thread_time()
            self._longest_s = max(self._longest_s, now - began)
            began = now

    def end(self) -> None:
        self._ended.set()

    def take_ms(self) -> float:
        """Return the longest turn since the last call."""
        longest_s, self._longest_s = self._longest_s, 0.0
        return 1000 * longest_s


def fairness(folder: Path) -> Iterator[Row]:
    """Yield a row for each kind: the longest turn, with the GET's p99 in the note."""
    # As `strongroom serve` does.
    gc.set_threshold(*GC_THRESHOLDS)
    gc.freeze()
    with InProcessServer.start(data=folder / "fairness", test_clock=False) as server:
        turns, sas = _Turns(), account_sas("bqtf")
        urls = {
            "blob": server.url, "queue": server.queue_url, "table": server.table_url,
            "file": server.file_url,
        }  # fmt: skip
        endpoints = {
            service: Endpoint(int(url.rpartition(":")[2]), sas) for service, url in urls.items()
        }
        blob = endpoints["blob"]
        asyncio.run_coroutine_threadsafe(turns.watch(), server.loop)
        try:
            make_container(blob, "/small")
            small = put_blob(blob, "/small/one")
            blob.fill(small, 1)
            alone = statistics.median(_small(blob).p99_ms for _ in range(_ROUNDS))
            for kind in KINDS:
                endpoint = endpoints[kind.service]
                kind.prepare(endpoint)
                yield _measured(kind, endpoint, blob, turns, alone)
        finally:
            turns.end()


def _measured(kind: Kind, endpoint: Endpoint, blob: Endpoint, turns: _Turns, alone: float) -> Row:
    longest, beside, counts = [], [], []
    with ThreadPoolExecutor(1) as pool:
        for _ in range(_ROUNDS):
            load = Load((kind.step(endpoint),), _CLIENTS, _ROUND_S)
            turns.take_ms()
            long = pool.submit(endpoint.load, load)
            beside.append(_small(blob).p99_ms)
            report: Report = long.result()
            longest.append(turns.take_ms())
            counts.append(report.steps[0].count)
            if report.bad:
                raise AssertionError(f"{kind.name}: {report.bad} answers were not expected")
    note = f"small GET p99 {alone:.1f} ms alone, {statistics.median(beside):.1f} ms beside; "
    note += f"{statistics.median(counts):.0f} answers in {_ROUND_S:.0f} s"
    slices = (tuple(longest), ())
    name = f"longest turn: {kind.name}"
    return row(name, _CLIENTS, "ms", statistics.median(longest), None, slices=slices, note=note)


def _small(blob: Endpoint) -> StepReport:
    step = blob.step("get", "GET", "/small/one", 200)
    return blob.load(Load((step,), 1, _ROUND_S * 0.8, 0.1)).step("get")


def _prepare_list(endpoint: Endpoint) -> None:
    make_container(endpoint, "/many")
    endpoint.fill(put_blob(endpoint, f"/many/folder-{CYCLE}/file", b"x"), _BLOBS)


def _prepare_snapshots(endpoint: Endpoint) -> None:
    make_container(endpoint, "/snapped")
    endpoint.fill(put_blob(endpoint, "/snapped/one", b"x"), 1)
    snapshot = endpoint.step("snapshot", "PUT", "/snapped/one?comp=snapshot", 201)
    endpoint.fill(snapshot, _SNAPSHOTS)


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
    size_bytes = 2 * _RANGES * _PAGE_BYTES
    fields = {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": str(size_bytes)}
    endpoint.make("/ranges/one", fields)
    for at in range(_RANGES):
        first = 2 * at * _PAGE_BYTES
        fields = {"x-ms-page-write": "update", "x-ms-range": f"bytes={first}-{first + 511}"}
        endpoint.make("/ranges/one?comp=page", fields, b"x" * _PAGE_BYTES)


def _prepare_tags(endpoint: Endpoint) -> None:
    make_container(endpoint, "/tagged")
    fields = {**BLOCK_BLOB, "x-ms-tags": "kind=one"}
    path = f"/tagged/{CYCLE}"
    endpoint.fill(endpoint.step("put", "PUT", path, 201, headers=fields, body=b"x"), _BLOBS)


def _prepare_queues(endpoint: Endpoint) -> None:
    endpoint.fill(endpoint.step("queue", "PUT", f"/queue{CYCLE}", 201), _PLACES)


def _prepare_containers(endpoint: Endpoint) -> None:
    path = f"/more{CYCLE}?restype=container"
    endpoint.fill(endpoint.step("container", "PUT", path, 201), _PLACES)


def _prepare_files(endpoint: Endpoint) -> None:
    endpoint.make("/share?restype=share")
    fields = {"x-ms-type": "file", "x-ms-content-length": "0"}
    step = endpoint.step("file", "PUT", f"/share/{CYCLE}", 201, headers=fields)
    endpoint.fill(step, _BLOBS)
    size_bytes = 2 * _RANGES * _PAGE_BYTES
    endpoint.make("/share/ranges", {"x-ms-type": "file", "x-ms-content-length": str(size_bytes)})
    for at in range(_RANGES):
        first = 2 * at * _PAGE_BYTES
        fields = {"x-ms-write": "update", "x-ms-range": f"bytes={first}-{first + 511}"}
        endpoint.make("/share/ranges?comp=range", fields, b"x" * _PAGE_BYTES)


def _changed_ranges(endpoint: Endpoint) -> Step:
    """Return a request for the changes of a page blob since a snapshot: every second range has
    changed."""
    target = endpoint.target("/ranges/one?comp=snapshot")
    taken = http.client.HTTPConnection(HOST, endpoint.port)
    taken.request("PUT", target, headers={"x-ms-version": API_VERSION, "Content-Length": "0"})
    time_text = taken.getresponse().headers["x-ms-snapshot"]
    taken.close()
    for at in range(0, _RANGES, 2):
        first = 2 * at * _PAGE_BYTES
        fields = {"x-ms-page-write": "update", "x-ms-range": f"bytes={first}-{first + 511}"}
        endpoint.make("/ranges/one?comp=page", fields, b"y" * _PAGE_BYTES)
    return endpoint.step("long", "GET", f"/ranges/one?comp=pagelist&prevsnapshot={time_text}", 200)


def _multipart(parts: list[str], content_type: str) -> bytes:
    head = f"--{_BOUNDARY}\r\nContent-Type: {content_type}\r\n"
    head += "Content-Transfer-Encoding: binary\r\n\r\n"
    return ("".join(f"{head}{part}\r\n" for part in parts) + f"--{_BOUNDARY}--\r\n").encode()


def _batch_of_deletes(endpoint: Endpoint) -> Step:
    """Return a batch of deletes of 256 blobs that do not exist."""
    target = endpoint.target("/many/none")
    part = f"DELETE {target} HTTP/1.1\r\nContent-Length: 0\r\n\r\n"
    fields = {"Content-Type": f"multipart/mixed; boundary={_BOUNDARY}"}
    body = _multipart([part] * 256, "application/http")
    return endpoint.step("long", "POST", "/?comp=batch", 202, headers=fields, body=body)


def _long_entity(endpoint: Endpoint) -> Step:
    """Return Insert Or Replace Entity of 900 KB in 30 properties."""
    values = {f"Text{number}": "x" * 15_000 for number in range(30)}
    body = json.dumps(values).encode()
    fields = {"Content-Type": "application/json", "Accept": "application/json;odata=nometadata"}
    path = f"/fair(PartitionKey='p',RowKey='{CONNECTION}')"
    return endpoint.step("long", "PUT", path, 204, headers=fields, body=body)


def _refused_json(endpoint: Endpoint) -> Step:
    """Return an insert with a body of 4 MB, which is too large for an entity."""
    body = json.dumps({f"Name{number}": number for number in range(190_000)}).encode()
    fields = {"Content-Type": "application/json", "Accept": "application/json;odata=nometadata"}
    return endpoint.step("long", "POST", "/fair", 400, 413, headers=fields, body=body)


def _put_large(endpoint: Endpoint) -> Step:
    body = os.urandom(8 * 1024 * 1024)
    path = f"/small/large-{CONNECTION}"
    return endpoint.step("long", "PUT", path, 201, headers=BLOCK_BLOB, body=body)


def _prepare_large(endpoint: Endpoint) -> None:
    endpoint.make("/small/large", BLOCK_BLOB, os.urandom(8 * 1024 * 1024))


def _get_large(endpoint: Endpoint) -> Step:
    return endpoint.step("long", "GET", "/small/large", 200)


def _nothing(endpoint: Endpoint) -> None:
    """Do nothing: the data of an earlier kind is used."""


def _get(path: str) -> Callable[[Endpoint], Step]:
    return lambda endpoint: endpoint.step("long", "GET", path, 200)


def _query(text: str) -> Callable[[Endpoint], Step]:
    fields = {"Accept": "application/json;odata=minimalmetadata"}
    path = f"/fair()?$filter={text}"
    return lambda endpoint: endpoint.step("long", "GET", path, 200, headers=fields)


KINDS: Final = (
    Kind("list 5,000 blobs", _prepare_list, _get("/many?restype=container&comp=list")),
    Kind(
        "list 5,000 prefixes", _nothing, _get("/many?restype=container&comp=list&delimiter=/")
    ),
    Kind(
        "list an absent prefix", _nothing,
        _get("/many?restype=container&comp=list&delimiter=/&prefix=zz"),
    ),
    Kind(
        "list 2,000 snapshots", _prepare_snapshots,
        _get("/snapped?restype=container&comp=list&include=snapshots"),
    ),
    Kind("Get Block List of 50,000", _prepare_blocks, _get("/blocks/one?comp=blocklist")),
    Kind("Get Blob of 50,000 blocks", _nothing, _get("/blocks/one")),
    Kind("Put Block List of 50,000", _nothing, lambda on: _put_block_list(on, "two")),
    Kind("page ranges, 2,000", _prepare_ranges, _get("/ranges/one?comp=pagelist")),
    Kind(
        "find 5,000 blobs by a tag", _prepare_tags,
        _get("/?comp=blobs&where=%22kind%22%3D%27one%27"),
    ),
    Kind(
        "filter that matches nothing", lambda on: entity_batches(on, "fair", _ENTITIES // 1000),
        _query("Name%20eq%20'no'"), "table",
    ),
    Kind("1,000 of 20,000 entities", _nothing, _query("Number%20ge%200"), "table"),
    Kind("list 2,000 containers", _prepare_containers, _get("/?comp=list")),
    Kind("list 2,000 queues", _prepare_queues, _get("/?comp=list"), "queue"),
    Kind(
        "list 5,000 files", _prepare_files,
        _get("/share?restype=directory&comp=list&include=timestamps,etag,attributes"), "file",
    ),
    Kind("file ranges, 2,000", _nothing, _get("/share/ranges?comp=rangelist"), "file"),
    Kind("page ranges since a snapshot", _nothing, _changed_ranges),
    Kind("batch of 256 deletes", _nothing, _batch_of_deletes),
    Kind("an entity of 900 KB", _nothing, _long_entity, "table"),
    Kind("JSON of 4 MB", _nothing, _refused_json, "table"),
    Kind("Put Blob of 8 MiB", _nothing, _put_large),
    Kind("Get Blob of 8 MiB", _prepare_large, _get_large),
)  # fmt: skip
