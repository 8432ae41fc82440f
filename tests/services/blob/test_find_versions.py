"""Find Blobs by Tags where blobs have tagged versions: the entries that it reads, and complete
pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from strongroom.operations.blob import blob, tag
from strongroom.semantics.blob import tag_queries
from strongroom.semantics.blob.tag_queries import START, Resume
from strongroom.services.blob import blobs
from strongroom.services.blob.tags import find_blobs
from strongroom.services.blob.tags.find_blobs import FindBlobs
from strongroom.services.core.runner import Services
from strongroom.store.core import tag_keys
from tests.services import blob_calls as do
from tests.services import version_calls as ver
from tests.services.container_calls import placed, run

BLOBS, VERSIONS = 20, 12


async def put(on: Services, name: str, value: str) -> int:
    given = blobs.PutBlob(tags=(("k", value),))
    written = await do.run(on, blob.PUT_BLOB, name, given, b"x")
    version: int = written.version
    return version


async def find(
    on: Services, where: str, results: int, include: Sequence[str] = ()
) -> list[tuple[str, int]]:
    """Return (name, version) of each result, page by page."""
    hits, start = list[tuple[str, int]](), START
    while True:
        given = FindBlobs(tag_queries.parse(where), start, results, frozenset(include))
        called = await placed(on, given, rule=tag.FIND_BLOBS.rule)
        page = await find_blobs.find_blobs(on, called)
        assert len(page.items) <= results
        hits += [(item.name, item.version) for item in page.items]
        if page.marker is None:
            return hits
        start = Resume(*page.marker)


def rows_scanned(on: Services) -> list[int]:
    """Record from now on how many rows each scan of the index returns."""
    real, counts = on.store.scan, list[int]()

    async def scan(keyspace: bytes, *given: Any) -> Any:
        page = await real(keyspace, *given)
        if tag_keys.is_tag_entries(keyspace):
            counts.append(len(page.partitions))
        return page

    on.store.scan = scan  # type: ignore[assignment, method-assign]  # a double
    return counts


@pytest.mark.parametrize("where", ["k = 'same'", "k >= 'a'", "k = 'same' AND k2 > ''"])
def test_a_plain_search_reads_no_entries_of_versions(where: str) -> None:
    """B-FND-11, B-VER-17: as many rows as blobs with the tag, however many versions they have."""

    async def test() -> None:
        on, _ = await ver.versioned()
        for number in range(BLOBS):
            for _ in range(VERSIONS):
                await put(on, f"{number:02}", "same")
        counts = rows_scanned(on)
        hits = await find(on, where, 5000)
        assert len(hits) == (0 if "k2" in where else BLOBS)
        assert sum(counts) <= 2 * BLOBS

    run(test)


@pytest.mark.parametrize("results", [1, 3, 7, 5000])
@pytest.mark.parametrize("together", [2, 250])
def test_pages_of_versions_hold_each_once_and_in_order(
    monkeypatch: pytest.MonkeyPatch, results: int, together: int
) -> None:
    """B-FND-08, B-VER-17: by value, then by name; blobs and versions in one order."""
    monkeypatch.setattr(find_blobs, "_LEAST", 1)
    monkeypatch.setattr(find_blobs, "_TOGETHER", together)

    async def test() -> None:
        on, _ = await ver.versioned()
        made = list[tuple[str, str, int]]()
        for number in range(6):
            for turn in range(4):
                name, value = f"b{number}", str((number * turn) % 3)
                made.append((value, name, await put(on, name, value)))
        made.sort()
        values = {version: value for value, _, version in made}
        hits = await find(on, "k >= '0'", results, ["versions"])
        assert sorted(hits) == sorted((name, version) for _, name, version in made)
        places = [(values[version], name) for name, version in hits]
        assert places == sorted(places)
        latest = dict(sorted((name, version) for _, name, version in made))
        current = sorted((value, name) for value, name, version in made if version == latest[name])
        assert await find(on, "k >= '0'", results) == [(name, 0) for _, name in current]

    run(test)
