"""Listings with versions: their rows, page by page, and the cost of a listing without them."""

from __future__ import annotations

import pytest

from strongroom.services.blob import list_blobs
from tests.services import blob_calls as do
from tests.services import version_calls as ver
from tests.services.container_calls import placed, run


@pytest.mark.parametrize("results", [1, 2, 3, 7, 5000])
def test_a_listing_of_versions_goes_on_where_a_page_ended(
    results: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B-VER-19, B-VER-20."""
    monkeypatch.setattr(list_blobs, "_VERSIONS_TOGETHER", 2)

    async def test() -> None:
        on, _ = await ver.versioned()
        for name in ("a", "b/1", "b/2", "c"):
            for number in range(5):
                await do.put(on, name, b"%d" % number)
        await do.snapshot(on, "a")
        await ver.delete_blob(on, "c")
        await do.put(on, "d", b"")
        rows = await ver.listed(on, "versions", max_results=results)
        counts = {name: len([row for row in rows if row.name == name]) for name in "acd"}
        assert counts == {"a": 6, "c": 5, "d": 1}
        assert rows == sorted(rows, key=lambda row: (row.name, row.past is None, row.past))
        assert len({(row.name, row.blob.version) for row in rows}) == len(rows) == 22
        words = ("versions", "snapshots", "deletedwithversions")
        everything = await ver.listed(on, *words, max_results=results)
        assert len(everything) == 24
        assert [row.name for row in everything if row.blob.vacant] == ["c"]
        plain = await ver.listed(on, max_results=results)
        assert [row.name for row in plain] == ["a", "b/1", "b/2", "d"]
        beginning = await ver.listed(on, "versions", max_results=results, prefix="b/2")
        assert len(beginning) == 5

    run(test)


def test_prefixes_stand_for_versions_too() -> None:
    """B-VER-20."""

    async def test() -> None:
        on, _ = await ver.versioned()
        await do.put(on, "dir/a", b"1")
        await ver.delete_blob(on, "dir/a")
        await do.put(on, "top", b"1")
        given = list_blobs.ListBlobs(delimiter="/", include=frozenset(("versions",)))
        page = await list_blobs.list_blobs(on, await placed(on, given))
        assert [str(item) for item in page.items[:1]] == ["dir/"]
        given = list_blobs.ListBlobs(delimiter="/")
        page = await list_blobs.list_blobs(on, await placed(on, given))
        assert len(page.items) == 1

    run(test)


def test_a_listing_without_versions_reads_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """B-VER-26: neither their records nor anything that grows with them is read."""

    async def test() -> None:
        on, _ = await ver.versioned()
        for _ in range(20):
            await do.put(on, "a", b"1")
        await do.put(on, "b", b"1")
        read: list[int] = []
        scan = on.store.scan

        async def counted(*given: object) -> object:
            found = await scan(*given)  # type: ignore[arg-type]  # passed on as they came
            read.append(len(found.values))
            return found

        async def no_range(*given: object) -> None:
            raise AssertionError("a range of hidden records is read")

        monkeypatch.setattr(on.store, "scan", counted)
        monkeypatch.setattr(on.store, "read_range", no_range)
        assert len(await ver.listed(on)) == 2
        assert read == [2]

    run(test)


@pytest.mark.parametrize("results", [1, 5000])
def test_a_blob_that_is_written_while_it_is_listed(
    results: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B-VER-19: each state that existed before is listed once."""

    async def test() -> None:
        on, _ = await ver.versioned()
        made = [await ver.put(on, "b", b"%d" % number) for number in range(4)]
        scan, count = on.store.scan, 0

        async def scan_and_write(*given: object) -> object:
            nonlocal count
            found = await scan(*given)  # type: ignore[arg-type]  # passed on as they came
            count += 1
            if count <= 3:
                await do.put(on, "b", b"later")
            return found

        monkeypatch.setattr(on.store, "scan", scan_and_write)
        rows = await ver.listed(on, "versions", max_results=results)
        shown = [row.blob.version for row in rows]
        assert shown[:4] == made
        assert sorted(set(shown)) == shown

    run(test)
