"""Listings of files and of their ranges over REST, as kinds of long work."""

from typing import Final

from benchmarks.endpoint import Endpoint
from benchmarks.engine import CYCLE
from benchmarks.fairness.contents import RANGE_BYTES, RANGES
from benchmarks.fairness.kinds import check_listed, get, nothing, requests
from benchmarks.samba import SHARE

DIRECTORY: Final = "many"
FILES_LISTED: Final = 10_000
_PAGE_FILES: Final = 5_000
_LIST: Final = f"/{SHARE}/{DIRECTORY}?restype=directory&comp=list"


def _prepare_files(endpoint: Endpoint) -> None:
    endpoint.make(f"/{SHARE}?restype=share")
    endpoint.make(f"/{SHARE}/{DIRECTORY}?restype=directory")
    fields = {"x-ms-type": "file", "x-ms-content-length": "0"}
    path = f"/{SHARE}/{DIRECTORY}/{CYCLE}"
    endpoint.fill(endpoint.step("file", "PUT", path, 201, headers=fields), FILES_LISTED)
    check_listed(endpoint, _LIST, "<File>", _PAGE_FILES)


def _prepare_ranges(endpoint: Endpoint) -> None:
    size_bytes = 2 * RANGES * RANGE_BYTES
    fields = {"x-ms-type": "file", "x-ms-content-length": str(size_bytes)}
    endpoint.make(f"/{SHARE}/ranges", fields)
    for at in range(RANGES):
        first = 2 * at * RANGE_BYTES
        fields = {"x-ms-write": "update", "x-ms-range": f"bytes={first}-{first + 511}"}
        endpoint.make(f"/{SHARE}/ranges?comp=range", fields, b"x" * RANGE_BYTES)


FILES: Final = (
    requests(
        "list 5,000 of 10,000 files", _prepare_files,
        get(f"{_LIST}&include=timestamps,etag,attributes"), "file",
    ),
    requests("list an absent file of 10,000", nothing, get(f"{_LIST}&prefix=zz"), "file"),
    requests("file ranges, 2,000", _prepare_ranges, get(f"/{SHARE}/ranges?comp=rangelist"), "file"),
)  # fmt: skip
