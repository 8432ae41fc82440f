"""The services' results when a scan reads each partition, and each page, at another time.

An engine need not do better: each partition is in the state of one commit, not earlier than the
call, and unchanged records are returned exactly once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from strongroom.auth.request import Service
from strongroom.clock import ManualClock
from strongroom.engines.base import SCAN_BYTES_MAX, Face, Page, Position
from strongroom.engines.conditions import Condition
from strongroom.semantics.core.listing import Prefix
from strongroom.semantics.table.entities import EntityChange
from strongroom.services.blob.list_blobs import ListBlobs, list_blobs
from strongroom.services.core.runner import Services
from strongroom.services.queue.list_queues import ListQueues, list_queues
from strongroom.services.sweeper import Sweeper
from strongroom.services.table import entities, tables
from strongroom.services.table.entities import EntityDocument, WriteEntity
from strongroom.services.table.query_entities import QueryEntities, query_entities
from strongroom.services.table.tables import CreateTable, QueryTables
from tests.services import blob_calls, container_calls, queue_calls
from tests.services.container_calls import call, placed, run
from tests.services.service_engine import ServiceEngine
from tests.services.sweeps import drop_container
from tests.services.table import test_entities

ROWS = ("a", "b", "c")
Between = Callable[[], Awaitable[None]]


class Moments(ServiceEngine):
    """Lets others commit before each partition of a scan is read."""

    between: Between | None = None

    async def scan(
        self,
        keyspace: bytes,
        first: Position,
        until: Position | None,
        max_records: int,
        max_bytes: int = SCAN_BYTES_MAX,
        where: Condition | None = None,
    ) -> Page:
        faces: list[Face] = []
        resume: Position | None = first
        while resume is not None and len(faces) < max_records:
            if self.between is not None:
                await self.between()
            left = max_records - len(faces)
            page = await super().scan(keyspace, resume, until, left, max_bytes)
            found = page.faces()
            mine = [face for face in found if face.partition == found[0].partition]
            faces += mine
            others = found[len(mine) :]
            resume = Position(*others[0][:2]) if others else page.resume
        return Page.of(faces, resume)


def fresh() -> tuple[Services, Moments]:
    store = Moments(ManualClock())
    return container_calls.services(store), store


async def write(on: Services, partition: str, value: int) -> None:
    """Give all entities of a partition one value, in one transaction."""
    document = EntityDocument(properties={"N": str(value)})
    writes = [
        await test_entities.placed(
            on, WriteEntity(EntityChange.INSERT_OR_REPLACE, document), entity=(partition, row)
        )
        for row in ROWS
    ]
    await entities.transact(on, writes)


async def query(on: Services, top: int) -> list[list[tuple[str, str, bytes]]]:
    """Return the pages of a query over a whole table."""
    pages, given = [], QueryEntities(top=top)
    while True:
        page = await query_entities(on, await test_entities.placed(on, given))
        pages.append([(row.partition_key, row.row_key, row.fragment) for row in page.rows])
        if page.next is None:
            return pages
        given = QueryEntities(top=top, start=page.next)


def test_a_page_holds_each_partition_as_one_transaction_left_it() -> None:
    """T-BAT-02, T-QRY-11."""

    async def test() -> None:
        on, store = fresh()
        await test_entities.table(on)
        written = [0]

        async def between() -> None:
            written[0] += 1
            for partition in "pqr":
                await write(on, partition, written[0])

        await between()
        store.between = between
        (page,) = await query(on, 1000)
        values = {key: {value for part, _, value in page if part == key} for key in "pqr"}
        assert [(part, row) for part, row, _ in page] == [(p, r) for p in "pqr" for r in ROWS]
        assert all(len(found) == 1 for found in values.values()), values
        assert len(set.union(*values.values())) > 1, "the partitions were not of several times"

    run(test)


def test_entities_that_stand_still_are_on_one_page_each() -> None:
    async def test() -> None:
        on, store = fresh()
        await test_entities.table(on)
        for partition in "bdf":
            await write(on, partition, 0)
        come = iter("aceg" * 100)

        async def between() -> None:
            await write(on, next(come), 1)

        store.between = between
        for top in (1, 2, 3, 4, 1000):
            seen = [(part, row) for page in await query(on, top) for part, row, _ in page]
            assert len(seen) == len(set(seen))
            assert {(p, r) for p in "bdf" for r in ROWS} <= set(seen)

    run(test)


async def listed(on: Services, most: int) -> list[str]:
    """Return the names of the blobs of a container, page by page."""
    found: list[str] = []
    given = ListBlobs(max_results=most)
    while True:
        page = await list_blobs(on, await placed(on, given))
        found += [str(item.name) for item in page.items if not isinstance(item, Prefix)]
        if page.marker is None:
            return found
        given = ListBlobs(max_results=most, start=page.marker)


def test_blobs_that_stand_still_are_listed_once() -> None:
    async def test() -> None:
        on, store = fresh()
        await container_calls.create(on)
        for name in "bdf":
            await blob_calls.put(on, name, b"x")
        come = iter("aceg" * 100)

        async def between() -> None:
            name = next(come)
            await (blob_calls.delete if await blob_calls.read(on, name) else _put)(on, name)

        store.between = between
        for most in (1, 2, 3, 1000):
            seen = await listed(on, most)
            assert sorted(set(seen)) == seen
            assert [name for name in seen if name in "bdf"] == ["b", "d", "f"]

    run(test)


async def _put(on: Services, name: str) -> None:
    await blob_calls.put(on, name, b"y")


def test_queues_and_tables_that_stand_still_are_listed_once() -> None:
    async def test() -> None:
        on, store = fresh()
        for name in ("bbb", "ddd"):
            await queue_calls.create(on, name)
            await test_entities.table(on, name)
        come = iter(f"{letter}{number:02}" for number in range(100) for letter in "ace")

        async def between() -> None:
            name = next(come)
            await queue_calls.create(on, name)
            asked = call(CreateTable(name), container=name, service=Service.TABLE)
            await tables.create_table(on, asked)

        store.between = between
        page: Any = await list_queues(on, queue_calls.call(ListQueues(), queue=""))
        names = [item.name for item in page.items]
        assert sorted(set(names)) == names and {"bbb", "ddd"} <= set(names)
        page = await tables.query_tables(on, call(QueryTables(), service=Service.TABLE))
        assert sorted(set(page.names)) == page.names and {"bbb", "ddd"} <= set(page.names)

    run(test)


def test_sweeps_meet_all_that_a_deleted_place_held() -> None:
    """Jobs are scanned in the same way: new ones are done in their turn."""

    async def test() -> None:
        on, store = fresh()
        await container_calls.create(on)
        for number in range(8):
            await blob_calls.put(on, f"b{number}", b"x" * 10_000)
        await test_entities.table(on)
        for number in range(8):
            await write(on, f"p{number}", number)
        call_ = await test_entities.placed(on)
        await tables.delete_table(on, call_)
        await queue_calls.create(on, "first")
        come = iter(range(1000))

        async def between() -> None:
            if (number := next(come)) < 20:
                await queue_calls.put(on, str(number), queue="first", ttl_s=1)

        store.between = between
        await drop_container(on)
        for _ in range(40):
            store.advance(2)
            await Sweeper(on).run_once()
        await queue_calls.drop(on, "first")
        store.advance(2)
        await Sweeper(on).run_once()
        assert blob_calls.left(on) == ([], [])

    run(test)
