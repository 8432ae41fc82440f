"""List Blobs: its rows, their order, pages, concurrent writes, and a real disk."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from strongroom import limits
from strongroom.clock import ManualClock, SystemClock
from strongroom.engines.base import Page
from strongroom.engines.embedded import open_store
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.semantics.core.listing import START, Prefix
from strongroom.services.blob.containers import containers
from strongroom.services.blob.list_blobs import (
    METADATA,
    SNAPSHOTS,
    UNCOMMITTED,
    BlobPage,
    ListBlobs,
    list_blobs,
)
from strongroom.services.core.calls import Place
from strongroom.services.core.place_records import SetPlaceMetadata
from strongroom.services.core.runner import Services
from strongroom.store.blob import blob_records
from strongroom.store.blob.blob_records import BlobRecord
from strongroom.values import Lease
from tests.services import container_calls as given
from tests.services.service_engine import ServiceEngine

NAMES = st.text("aAb/é\U0001f600", min_size=1, max_size=6)


async def page_of(on: Services, **asked: Any) -> BlobPage:
    return await list_blobs(on, await given.placed(on, ListBlobs(**asked)))


async def listed(on: Services, **asked: Any) -> list[str]:
    """Return all pages together: names, `name@snapshot` and `prefix/*`."""
    found: list[str] = []
    start: Any = START
    for _ in range(10_000):
        page = await page_of(on, start=start, **asked)
        assert len(page.items) <= asked.get("max_results", 5000)
        for item in page.items:
            if isinstance(item, Prefix):
                found.append(f"{item}*")
            else:
                found.append(item.name + ("" if item.snapshot is None else f"@{item.snapshot}"))
        if page.marker is None:
            return found
        start = page.marker
    raise AssertionError("the pages do not end")


async def made(on: Services, *names: str, **more: Any) -> int:
    generation = (await given.create(on)).etag
    for name in names:
        await given.put_blob(on, generation, name, **more)
    return generation


def test_names_are_in_ordinal_order_and_a_prefix_keeps_its_own() -> None:
    """B-LST-01, B-LST-03."""

    async def scenario() -> None:
        on = given.services()
        await made(on, "b", "a", "B", "ab", "é", "a/b")
        assert await listed(on) == ["B", "a", "a/b", "ab", "b", "é"]
        assert await listed(on, prefix="a") == ["a", "a/b", "ab"]
        assert await listed(on, prefix="c") == []

    given.run(scenario)


@examples(
    st.lists(NAMES, max_size=25, unique=True),
    st.text("a/b", max_size=2),
    st.sampled_from(["", "/", "a/"]),
    st.integers(1, 7),
)
def test_pages_add_up_to_what_a_plain_model_lists(
    names: list[str], prefix: str, delimiter: str, max_results: int
) -> None:
    """B-LST-03, B-LST-04, B-LST-05, B-CLS-03."""
    expected: list[str] = []
    for name in sorted(names, key=str.encode):
        if not name.startswith(prefix):
            continue
        at = name.find(delimiter, len(prefix)) if delimiter else -1
        shown = name if at < 0 else f"{name[: at + len(delimiter)]}*"
        if shown not in expected:
            expected.append(shown)

    async def scenario() -> None:
        on = given.services()
        await made(on, *names)
        asked = {"prefix": prefix, "delimiter": delimiter, "max_results": max_results}
        assert await listed(on, **asked) == expected

    given.run(scenario)


def test_snapshots_come_before_their_base_oldest_first_when_asked_for() -> None:
    """B-LST-08."""

    async def scenario() -> None:
        on = given.services()
        generation = await made(on, "a", "c")
        await given.put_blob(on, generation, "b", snapshots=(7, 5))
        assert await listed(on) == ["a", "b", "c"]
        include = frozenset((SNAPSHOTS,))
        for max_results in (1, 2, 5000):
            found = await listed(on, include=include, max_results=max_results)
            assert found == ["a", "b@5", "b@7", "b", "c"]
        attempt = page_of(on, include=include, delimiter="/")
        assert await given.refused(attempt) == (400, "InvalidQueryParameterValue")

    given.run(scenario)


def test_uncommitted_blobs_and_prefixes_of_only_such_are_hidden() -> None:
    """B-LST-09, B-BLK-02."""

    async def scenario() -> None:
        on = given.services()
        generation = await made(on, "a", "x/seen")
        for name in ("b", "hidden/1", "hidden/2", "x/unseen"):
            await given.put_blob(on, generation, name, committed=False)
        assert await listed(on) == ["a", "x/seen"]
        for max_results in (1, 5000):
            found = await listed(on, delimiter="/", max_results=max_results)
            assert found == ["a", "x/*"]
        shown = await listed(on, include=frozenset((UNCOMMITTED,)), delimiter="/")
        assert shown == ["a", "b", "hidden/*", "x/*"]

    given.run(scenario)


def test_a_page_works_only_so_much_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """B-LST-05."""
    monkeypatch.setattr(limits, "LIST_SCANNED_RECORDS_MAX", 10)

    async def scenario() -> None:
        on = given.services()
        generation = await made(on)
        for number in range(400):
            await given.put_blob(on, generation, f"{number:03}", committed=number % 150 == 149)
        first = await page_of(on, max_results=1)
        assert first.items == [] and first.marker is not None
        assert await listed(on, max_results=2) == ["149", "299"]

    given.run(scenario)


class CountedScans(ServiceEngine):
    """A store in memory that counts its scans and the records that they return."""

    scans = 0
    scanned = 0

    async def scan(self, *arguments: Any) -> Page:
        page = await super().scan(*arguments)
        self.scans += 1
        self.scanned += len(page.faces())
        return page


def test_few_reads_pass_over_much_that_cannot_be_seen() -> None:
    async def scenario() -> None:
        store = CountedScans(ManualClock())
        on = given.services(store)
        generation = await made(on)
        for number in range(10):
            await given.put_blob(
                on, generation, str(number), snapshots=tuple(range(1, 300)), committed=number == 9
            )
        assert await listed(on, max_results=1) == ["9"]
        assert store.scans < 20

    given.run(scenario)


def test_records_below_a_prefix_that_is_listed_are_not_decoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """B-LST-04."""
    decode, decoded = blob_records.BLOB.decode, list[bytes]()

    def counting(value: bytes) -> BlobRecord:
        decoded.append(value)
        return decode(value)

    async def scenario() -> None:
        on = given.services()
        await made(on, *(f"{prefix}/{number:02}" for prefix in "abc" for number in range(30)), "d")
        monkeypatch.setattr(blob_records.BLOB, "decode", counting)
        assert await listed(on, delimiter="/") == ["a/*", "b/*", "c/*", "d"]
        assert len(decoded) == 4

    given.run(scenario)


def test_a_prefix_of_many_costs_one_short_read() -> None:
    """B-LST-04."""

    async def scenario() -> None:
        store = CountedScans(ManualClock())
        on = given.services(store)
        generation = await made(on)
        for prefix in range(5):
            for number in range(400):
                await given.put_blob(on, generation, f"{prefix}/{number}")
        assert await listed(on, delimiter="/") == [f"{prefix}/*" for prefix in range(5)]
        assert store.scans <= 6 and store.scanned <= 600

    given.run(scenario)


def test_leases_are_judged_by_the_stores_time() -> None:
    """B-LSE-20."""

    async def scenario() -> None:
        on = given.services()
        generation = await made(on, "a")
        lease = Lease("aaaaaaaa-0000-0000-0000-000000000000", -1)
        stamp = await given.put_blob(on, generation, "b", lease=lease)
        (_, row), now = (page := await page_of(on)).items, page.now
        assert not isinstance(row, Prefix) and row.version == stamp and now > 0

    given.run(scenario)


def test_a_container_deleted_or_closed_meanwhile() -> None:
    """B-CON-04, B-CON-10, B-CON-11."""

    async def scenario() -> None:
        on = given.services()
        await made(on, "a")

        def judge(place: Place | None) -> None:
            raise StorageError(errors.RESOURCE_NOT_FOUND)

        old = await given.placed(on, ListBlobs(), authorize=judge)
        change = SetPlaceMetadata((("x", "y"),))
        await containers.set_metadata(on, await given.placed(on, change))
        assert await given.refused(list_blobs(on, old)) == (404, "ResourceNotFound")
        gone = await given.placed(on, ListBlobs())
        await containers.delete_container(on, await given.placed(on))
        assert await given.refused(list_blobs(on, gone)) == (404, "ContainerNotFound")
        await given.create(on)
        assert await given.refused(list_blobs(on, gone)) == (404, "ContainerNotFound")
        assert await listed(on) == []
        assert await given.refused(list_blobs(on, given.call(ListBlobs()))) == (
            404,
            "ContainerNotFound",
        )

    given.run(scenario)


async def under_writes(store: Any, pages_size: int) -> None:
    """Check listings while blobs with even numbers stay unchanged and the others are written and
    deleted."""
    on = given.services(store)
    generation = await made(on)
    still = [f"{number:03}" for number in range(0, 200, 2)]
    await asyncio.gather(*(given.put_blob(on, generation, name) for name in still))
    done = False

    async def churn(first: int) -> None:
        number = first
        while not done:
            name = f"{number % 200:03}"
            await given.put_blob(on, generation, name)
            await given.delete_blob(on, generation, name)
            number += 6

    writers = [asyncio.create_task(churn(first)) for first in (1, 3, 5)]
    for _ in range(5):
        found = await listed(on, max_results=pages_size, include=frozenset((METADATA,)))
        assert found == sorted(set(found))
        assert [name for name in found if int(name) % 2 == 0] == still
    done = True
    await asyncio.gather(*writers)


@pytest.mark.parametrize("pages_size", [1, 7, 5000])
def test_what_stands_still_is_listed_exactly_once(pages_size: int) -> None:
    """B-LST-06."""

    async def test() -> None:
        await under_writes(ServiceEngine(ManualClock()), pages_size)

    given.run(test)


@pytest.mark.parametrize("pages_size", [7, 5000])
def test_what_stands_still_is_listed_exactly_once_on_disk(tmp_path: Path, pages_size: int) -> None:
    """B-LST-06, B-LST-12."""

    async def scenario() -> None:
        store = await open_store(tmp_path, SystemClock())
        try:
            await under_writes(store, pages_size)
        finally:
            await store.close()

    given.run(scenario)


def test_a_marker_works_though_its_blob_is_gone() -> None:
    """B-LST-06."""

    async def scenario() -> None:
        on = given.services()
        generation = await made(on, "a", "b", "c", "d")
        page = await page_of(on, max_results=2)
        assert page.marker is not None
        await given.delete_blob(on, generation, "c")
        rest = await page_of(on, start=page.marker)
        names = [item.name for item in rest.items if not isinstance(item, Prefix)]
        assert names == ["d"] and rest.marker is None

    given.run(scenario)
