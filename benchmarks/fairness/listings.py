"""Listings and searches of blobs, containers and queues, as kinds of long work."""

from typing import Final

from benchmarks.endpoint import BLOCK_BLOB, Endpoint
from benchmarks.engine import CYCLE
from benchmarks.fairness.kinds import get, nothing, requests
from benchmarks.workloads import make_container, put_blob

_BLOBS: Final = 5_000
_TAGGED: Final = 20_000
_SNAPSHOTS: Final = 2_000
_PLACES: Final = 2_000


def _prepare_list(endpoint: Endpoint) -> None:
    make_container(endpoint, "/many")
    endpoint.fill(put_blob(endpoint, f"/many/folder-{CYCLE}/file", b"x"), _BLOBS)


def _prepare_snapshots(endpoint: Endpoint) -> None:
    make_container(endpoint, "/snapped")
    endpoint.fill(put_blob(endpoint, "/snapped/one", b"x"), 1)
    snapshot = endpoint.step("snapshot", "PUT", "/snapped/one?comp=snapshot", 201)
    endpoint.fill(snapshot, _SNAPSHOTS)


def _prepare_tags(endpoint: Endpoint) -> None:
    make_container(endpoint, "/tagged")
    fields = {**BLOCK_BLOB, "x-ms-tags": f"kind=one&number={CYCLE}"}
    path = f"/tagged/{CYCLE}"
    put = endpoint.step("put", "PUT", path, 201, headers=fields, body=b"x")
    endpoint.fill(put, _TAGGED, connections=32)


def _prepare_queues(endpoint: Endpoint) -> None:
    endpoint.fill(endpoint.step("queue", "PUT", f"/queue{CYCLE}", 201), _PLACES)


def _prepare_containers(endpoint: Endpoint) -> None:
    path = f"/more{CYCLE}?restype=container"
    endpoint.fill(endpoint.step("container", "PUT", path, 201), _PLACES)


_FIND: Final = "/?comp=blobs&where=%22kind%22%3D%27one%27"
_LIST: Final = "/many?restype=container&comp=list"

LISTINGS: Final = (
    requests("list 5,000 blobs", _prepare_list, get(_LIST)),
    requests("list 5,000 prefixes", nothing, get(f"{_LIST}&delimiter=/")),
    requests("list an absent prefix", nothing, get(f"{_LIST}&delimiter=/&prefix=zz")),
    requests(
        "list 2,000 snapshots", _prepare_snapshots,
        get("/snapped?restype=container&comp=list&include=snapshots"),
    ),
    requests("find 5,000 of 20,000 blobs by a tag", _prepare_tags, get(_FIND)),
    requests(
        "find a blob of 20,000 by two tags", nothing,
        get(f"{_FIND}%20AND%20%22number%22%3D%270000010000%27"),
    ),
    requests(
        "find blobs by a range of tags", nothing,
        get("/?comp=blobs&where=%22number%22%3E%270000000100%27%20AND%20%22kind%22%3D%27two%27"),
    ),
    requests("list 2,000 containers", _prepare_containers, get("/?comp=list")),
    requests("list 2,000 queues", _prepare_queues, get("/?comp=list"), "queue"),
)  # fmt: skip
