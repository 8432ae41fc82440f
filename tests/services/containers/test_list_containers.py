"""List Containers: names in order, prefixes, pages, leases, and only the account's own
containers."""

from __future__ import annotations

import asyncio
from typing import Any

from strongroom.semantics.core.listing import START
from strongroom.services.blob import leasing
from strongroom.services.blob.containers import containers
from strongroom.services.blob.containers.list_containers import (
    ContainerPage,
    ListContainers,
    list_containers,
)
from strongroom.services.core.leasing import AcquireLease
from strongroom.services.core.runner import Services
from tests.services import container_calls as given


async def page_of(on: Services, **asked: Any) -> ContainerPage:
    return await list_containers(on, given.call(ListContainers(**asked), container=""))


async def listed(on: Services, **asked: Any) -> list[str]:
    found: list[str] = []
    start: Any = START
    for _ in range(1000):
        page = await page_of(on, start=start, **asked)
        assert len(page.items) <= asked.get("max_results", 5000)
        found += [item.name for item in page.items]
        if page.marker is None:
            return found
        start = page.marker
    raise AssertionError("the pages do not end")


def test_names_are_in_order_over_pages_and_a_prefix_keeps_its_own() -> None:
    """B-CLS-01, B-CLS-02, B-CLS-03."""

    async def scenario() -> None:
        on = given.services()
        assert await listed(on) == []
        names = ["logs-2", "$root", "photos", "logs-10", "logs", "zoo"]
        for name in names:
            await given.create(on, name)
        for max_results in (1, 2, 6, 5000):
            assert await listed(on, max_results=max_results) == sorted(names)
        assert await listed(on, prefix="logs-", max_results=1) == ["logs-10", "logs-2"]
        assert await listed(on, prefix="x") == []

    given.run(scenario)


def test_a_page_that_is_full_and_last_has_no_marker() -> None:
    async def scenario() -> None:
        on = given.services()
        await given.create(on, "one")
        page = await page_of(on, max_results=1)
        assert len(page.items) == 1 and page.marker is None

    given.run(scenario)


def test_rows_carry_the_record_and_the_time_of_leases() -> None:
    """B-CLS-01."""

    async def scenario() -> None:
        on = given.services()
        made = await given.create(on)
        page = await page_of(on)
        assert page.items[0].record.etag == made.etag
        acquire = await given.placed(on, AcquireLease(15))
        await leasing.lease_container(on, acquire)
        page = await page_of(on)
        assert page.items[0].record.lease is not None
        assert page.now > 0
        await containers.delete_container(on, await given.placed(on))
        assert (await page_of(on)).items == []

    given.run(scenario)


def test_accounts_do_not_see_each_other() -> None:
    async def scenario() -> None:
        on = given.services()
        await given.create(on)
        other = given.call(ListContainers(), account="accounts")
        assert (await list_containers(on, other)).items == []

    given.run(scenario)


def test_what_stands_still_is_listed_exactly_once() -> None:
    """B-CLS-03."""

    async def scenario() -> None:
        on = given.services()
        still = [f"still-{number:03}" for number in range(0, 100, 2)]
        for name in still:
            await given.create(on, name)
        done = False

        async def churn() -> None:
            number = 1
            while not done:
                name = f"still-{number % 100:03}"
                await given.create(on, name)
                gone = await given.placed(on, container=name)
                await containers.delete_container(on, gone)
                number += 2

        writer = asyncio.create_task(churn())
        for _ in range(10):
            found = await listed(on, max_results=7)
            assert found == sorted(set(found))
            assert [name for name in found if int(name[-3:]) % 2 == 0] == still
        done = True
        await writer

    given.run(scenario)
