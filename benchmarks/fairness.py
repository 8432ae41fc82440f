"""How long one request can hold up the others: the longest turn of the loop beside each kind of
long work, and a small GET's p99 alone and beside it.

The server runs on a thread of this process. A turn is measured in CPU time of that thread, so that
other programs on the machine do not count. The load comes from processes of its own.
"""

import asyncio
import base64
import gc
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.endpoint import BLOCK_BLOB, Endpoint, account_sas
from benchmarks.engine import CYCLE, Load, Report, Step, StepReport
from benchmarks.results import Row, row
from benchmarks.table_workloads import entity_batches
from benchmarks.workloads import make_container, put_blob
from strongroom.cli.serve import COLLECTED_AT
from strongroom.testing.server import InProcessServer

_CLIENTS: Final = 8
_ROUNDS: Final = 3
_ROUND_S: Final = 2.0
_BLOBS: Final = 5_000
_BLOCKS: Final = 50_000
_RANGES: Final = 2_000
_SNAPSHOTS: Final = 2_000
_ENTITIES: Final = 20_000
_PAGE_BYTES: Final = 512


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of long work: what it needs, and its request."""

    name: str
    prepare: Callable[[Endpoint], None]
    step: Callable[[Endpoint], Step]
    service: str = "blob"


class _Turns:
    """The longest turn of a loop, in CPU time of its thread. A turn begins with each pass of
    `_watch`, which the loop resumes once a turn."""

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
        """The longest turn since the last call."""
        longest_s, self._longest_s = self._longest_s, 0.0
        return 1000 * longest_s


def fairness(folder: Path) -> Iterator[Row]:
    """A row for each kind: the longest turn, and the GET's p99 in the note."""
    # As `strongroom serve` does.
    gc.set_threshold(COLLECTED_AT)
    gc.freeze()
    with InProcessServer.start(data=folder / "fairness", test_clock=False) as server:
        turns, sas = _Turns(), account_sas()
        blob = Endpoint(server.port, sas)
        table = Endpoint(int(server.table_url.rpartition(":")[2]), sas)
        asyncio.run_coroutine_threadsafe(turns.watch(), server.loop)
        try:
            make_container(blob, "/small")
            small = put_blob(blob, "/small/one")
            blob.fill(small, 1)
            alone = statistics.median(_small(blob).p99_ms for _ in range(_ROUNDS))
            for kind in KINDS:
                endpoint = table if kind.service == "table" else blob
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


def _nothing(endpoint: Endpoint) -> None:
    """What an earlier kind prepared is there."""


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
)  # fmt: skip
