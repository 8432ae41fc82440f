"""The workload of blobs' tags: a search that finds one blob of 50,000."""

import urllib.parse
from typing import Final

from benchmarks.endpoint import BLOCK_BLOB, Endpoint
from benchmarks.engine import CYCLE, SCATTERED, Report, Step
from benchmarks.workloads import KIB, Workload, make_container

_CONTAINER: Final = "/tagged"
_BLOBS: Final = 50_000


def _prepare(endpoint: Endpoint) -> None:
    make_container(endpoint, _CONTAINER)
    headers = {**BLOCK_BLOB, "x-ms-tags": f"number={CYCLE}&all=yes"}
    put = endpoint.step("put", "PUT", f"{_CONTAINER}/t{CYCLE}", 201, headers=headers, body=KIB)
    endpoint.fill(put, _BLOBS, connections=32)


def _find(endpoint: Endpoint, turn: int) -> tuple[Step, ...]:
    where = urllib.parse.quote("all='yes' AND number='0000") + SCATTERED + "%27"
    path = f"{_CONTAINER}?restype=container&comp=blobs&where={where}"
    return (endpoint.step("find", "GET", path, 200),)


def _requests(report: Report) -> float:
    return sum(step.count for step in report.steps)


TAGS: Final = (Workload("tag query, 50,000 blobs", "req/s", _prepare, _find, _requests),)
