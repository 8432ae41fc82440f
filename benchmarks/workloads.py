"""The workloads: the requests of a cycle, and the count that is its rate.

Each is one row of `WORKLOADS`, in the order in which they run. A workload that leaves many blobs
comes last, because they slow a server whose cost per request grows with their number.
"""

import base64
import os
import random
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from benchmarks.endpoint import APPEND_BLOB, BLOCK_BLOB, Endpoint, UnexpectedAnswer
from benchmarks.engine import CAPTURED, CONNECTION, CYCLE, SCATTERED, Load, Report, Step

CONTAINER: Final = "/bench"
KIB: Final = b"x" * 1024
_FOUR_KIB: Final = 4 * KIB
_PAGE_BLOB_BYTES: Final = 64 << 20
BLOCK_BYTES: Final = 4 << 20
BLOCKS: Final = 16
_READ_BLOBS: Final = 1000
_BULK_SLICE_FACTOR: Final = 2.0
BATCHED: Final = 256
SUPPLIED: Final = 4
_SUPPLIED_LIMIT_S: Final = 60.0
_BOUNDARY: Final = "batch_0f"


@dataclass(frozen=True, slots=True)
class Workload:
    """One workload.

    Arguments:
        name, unit: the texts in the tables.
        prepare: creates what the requests need; called once per server.
        steps: the requests of a cycle, from the endpoint and the number of the turn.
        rate: the count in the measured time that is divided by that time.
        prologue: how many of the steps each connection runs only once.
        service: the measured service.
        slice_factor: the factor by which its slices are longer, since a cycle takes long.
        supply: creates what the requests of a turn consume, from the endpoint and the number of the
            turn. It is not measured, and the turn ends after `SUPPLIED` cycles.
    """

    name: str
    unit: str
    prepare: Callable[[Endpoint], None]
    steps: Callable[[Endpoint, int], tuple[Step, ...]]
    rate: Callable[[Report], float]
    prologue: int = 0
    service: str = "blob"
    slice_factor: float = 1.0
    supply: Callable[[Endpoint, int], None] | None = None

    def load(self, endpoint: Endpoint, turn: int, connections: int, slice_s: float) -> Load:
        """Return the load of one turn, with a warm-up of a quarter of the slice."""
        if self.supply is not None:
            self.supply(endpoint, turn)
            return Load(
                self.steps(endpoint, turn), connections, _SUPPLIED_LIMIT_S, cycles_max=SUPPLIED
            )
        return Load(
            self.steps(endpoint, turn), connections, slice_s, slice_s / 4,
            modulo=_READ_BLOBS, prologue=self.prologue,
        )  # fmt: skip


def make_container(endpoint: Endpoint, container: str = CONTAINER) -> None:
    """Create a container unless it exists."""
    endpoint.make(f"{container}?restype=container")


def put_blob(endpoint: Endpoint, path: str, body: bytes = KIB) -> Step:
    """Return a Put Blob of a small body."""
    return endpoint.step("put", "PUT", path, 201, headers=BLOCK_BLOB, body=body)


def upload(endpoint: Endpoint, path: str) -> tuple[Step, ...]:
    """Return a 64 MiB upload as clients do it: 16 blocks of 4 MiB in sequence, and their block
    list."""
    body = os.urandom(BLOCK_BYTES).replace(b"\x01", b"\x02")
    ids = [base64.b64encode(b"%06d" % number).decode() for number in range(BLOCKS)]
    blocks = tuple(
        endpoint.step(
            f"block{number:02}", "PUT",
            f"{path}?comp=block&blockid={urllib.parse.quote(block_id)}", 201, body=body,
        )
        for number, block_id in enumerate(ids)
    )  # fmt: skip
    latest = "".join(f"<Latest>{block_id}</Latest>" for block_id in ids)
    listed = f'<?xml version="1.0" encoding="utf-8"?><BlockList>{latest}</BlockList>'.encode()
    kind = {"Content-Type": "application/xml"}
    commit = endpoint.step(
        "commit", "PUT", f"{path}?comp=blocklist", 201, headers=kind, body=listed
    )
    return (*blocks, commit)


def upload_one(endpoint: Endpoint, path: str) -> None:
    """Upload one blob of 64 MiB."""
    endpoint.load(Load(upload(endpoint, path), 1, 120, cycles_max=1))


def _prepare_reads(endpoint: Endpoint) -> None:
    make_container(endpoint)
    endpoint.fill(put_blob(endpoint, f"{CONTAINER}/r{CYCLE}"), _READ_BLOBS)


def _prepare_hot(endpoint: Endpoint) -> None:
    make_container(endpoint)
    endpoint.make(f"{CONTAINER}/hot", BLOCK_BLOB, KIB)


def _prepare_big(endpoint: Endpoint) -> None:
    make_container(endpoint)
    upload_one(endpoint, f"{CONTAINER}/big")


def _get(endpoint: Endpoint, turn: int) -> tuple[Step, ...]:
    return (endpoint.step("get", "GET", f"{CONTAINER}/r0000{SCATTERED}", 200),)


def _put(endpoint: Endpoint, turn: int) -> tuple[Step, ...]:
    return (put_blob(endpoint, f"{CONTAINER}/p{turn}-{CYCLE}"),)


def _append(endpoint: Endpoint, turn: int) -> tuple[Step, ...]:
    """Return the appends of each connection to a blob of its own."""
    path = f"{CONTAINER}/a{turn}-{CONNECTION}"
    return (
        endpoint.step("create", "PUT", path, 201, headers=APPEND_BLOB),
        endpoint.step("append", "PUT", f"{path}?comp=appendblock", 201, body=KIB * 4),
    )


def _lease(endpoint: Endpoint, turn: int) -> tuple[Step, ...]:
    path = f"{CONTAINER}/l{turn}-{CONNECTION}"
    lease = f"{path}?comp=lease"
    acquire = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "15"}
    renew = {"x-ms-lease-action": "renew", "x-ms-lease-id": CAPTURED}
    release = {"x-ms-lease-action": "release", "x-ms-lease-id": CAPTURED}
    return (
        put_blob(endpoint, path),
        endpoint.step(
            "acquire", "PUT", lease, 201, headers=acquire, captured_header="x-ms-lease-id"
        ),
        endpoint.step("renew", "PUT", lease, 200, headers=renew),
        endpoint.step("release", "PUT", lease, 200, headers=release),
    )


def _compare_and_swap(endpoint: Endpoint, turn: int) -> tuple[Step, ...]:
    path, condition = f"{CONTAINER}/hot", {**BLOCK_BLOB, "If-Match": CAPTURED}
    return (
        endpoint.step("look", "HEAD", path, 200, captured_header="etag"),
        endpoint.step("swap", "PUT", path, 201, 412, headers=condition, body=KIB),
    )


def _upload(endpoint: Endpoint, turn: int) -> tuple[Step, ...]:
    return upload(endpoint, f"{CONTAINER}/u{turn % 2}-{CONNECTION}")


def _supply_batches(endpoint: Endpoint, turn: int) -> None:
    puts = tuple(put_blob(endpoint, _batched(turn, number)) for number in range(BATCHED))
    report = endpoint.load(Load(puts, SUPPLIED, _SUPPLIED_LIMIT_S, cycles_max=SUPPLIED))
    if report.cycles < SUPPLIED or report.bad:
        raise UnexpectedAnswer(f"{report.cycles} of {SUPPLIED} batches of blobs were put in time")


def _batched(turn: int, number: int) -> str:
    return f"{CONTAINER}/d{turn}-{CYCLE}-{number:03}"


def _delete_batch(endpoint: Endpoint, turn: int) -> tuple[Step, ...]:
    """Return a Blob Batch of the account, since Azurite fails at those of a container.

    Each of its deletes has the token in its URL.
    """
    parts = "".join(
        f"--{_BOUNDARY}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n"
        f"Content-ID: {number}\r\n\r\nDELETE {endpoint.target(_batched(turn, number))} HTTP/1.1\r\n"
        "Content-Length: 0\r\n\r\n\r\n"
        for number in range(BATCHED)
    )
    fields = {"Content-Type": f"multipart/mixed; boundary={_BOUNDARY}"}
    body = f"{parts}--{_BOUNDARY}--\r\n".encode()
    return (endpoint.step("batch", "POST", "/?comp=batch", 202, headers=fields, body=body),)


def _download(endpoint: Endpoint, turn: int) -> tuple[Step, ...]:
    return (endpoint.step("get", "GET", f"{CONTAINER}/big", 200),)


def _offsets(turn: int) -> list[int]:
    """Return where a cycle writes or reads 4 KiB of a page blob: shuffled, the same for all
    servers."""
    pages = _PAGE_BLOB_BYTES // len(_FOUR_KIB)
    return [number * len(_FOUR_KIB) for number in random.Random(turn).sample(range(pages), 16)]


def _page_blob(endpoint: Endpoint, path: str) -> Step:
    headers = {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": str(_PAGE_BLOB_BYTES)}
    return endpoint.step("create", "PUT", path, 201, headers=headers)


def _page_writes(endpoint: Endpoint, path: str, turn: int) -> tuple[Step, ...]:
    steps = []
    for offset in _offsets(turn):
        headers = {
            "x-ms-page-write": "update",
            "x-ms-range": f"bytes={offset}-{offset + len(_FOUR_KIB) - 1}",
        }
        written = endpoint.step(
            "write", "PUT", f"{path}?comp=page", 201, headers=headers, body=_FOUR_KIB
        )
        steps.append(written)
    return tuple(steps)


def _write_pages(endpoint: Endpoint, turn: int) -> tuple[Step, ...]:
    path = f"{CONTAINER}/g{turn}-{CONNECTION}"
    return (_page_blob(endpoint, path), *_page_writes(endpoint, path, turn))


def _read_pages(endpoint: Endpoint, turn: int) -> tuple[Step, ...]:
    path = f"{CONTAINER}/h{turn}-{CONNECTION}"
    reads = [
        endpoint.step(
            "read", "GET", path, 206,
            headers={"x-ms-range": f"bytes={offset}-{offset + len(_FOUR_KIB) - 1}"},
        )
        for offset in _offsets(turn)
    ]  # fmt: skip
    return (_page_blob(endpoint, path), *_page_writes(endpoint, path, turn), *reads)


def _named(name: str) -> Callable[[Report], float]:
    """Return a function that counts all steps of one name."""
    return lambda report: sum(step.count for step in report.steps if step.name == name)


def _requests(report: Report) -> float:
    return sum(step.count for step in report.steps)


WORKLOADS: Final = (
    Workload("GET 1 KiB", "req/s", _prepare_reads, _get, _requests),
    Workload(
        "lease cycle", "cycles/s", make_container, _lease,
        lambda report: report.step("release").count, prologue=1,
    ),
    Workload(
        "compare-and-swap", "swaps/s", _prepare_hot, _compare_and_swap,
        lambda report: report.step("swap").by_status.get("201", 0),
    ),
    Workload(
        "batch delete of 256", "blobs/s", make_container, _delete_batch,
        lambda report: BATCHED * report.step("batch").count, supply=_supply_batches,
    ),
    Workload(
        "page 4 KiB write", "req/s", make_container, _write_pages, _named("write"), prologue=1
    ),
    Workload(
        "page 4 KiB read", "req/s", make_container, _read_pages, _named("read"), prologue=17
    ),
    Workload("PUT 1 KiB", "req/s", make_container, _put, _requests),
    Workload(
        "append 4 KiB", "req/s", make_container, _append,
        lambda report: report.step("append").count, prologue=1,
    ),
    Workload(
        "64 MiB down", "MB/s", _prepare_big, _download, lambda report: report.bytes_in / 1e6,
        slice_factor=_BULK_SLICE_FACTOR,
    ),
    Workload(
        "64 MiB up", "MB/s", make_container, _upload, lambda report: report.bytes_out / 1e6,
        slice_factor=_BULK_SLICE_FACTOR,
    ),
)  # fmt: skip
