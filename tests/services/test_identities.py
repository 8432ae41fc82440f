"""Accounts and roles as rows of a store: whole, in order, and no change lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

import pytest

from strongroom.clock import ManualClock
from strongroom.engines.base import Commit, Item, Key, Partition, Record, Ref, Step, Write
from strongroom.services.identities import (
    ROWS_MAX,
    DamagedRecord,
    IdentityRows,
    RowsRefused,
    StoreIdentities,
)
from strongroom.store.core import identity_rows, keys
from strongroom.store.core.identity_rows import CHUNK_BYTES, CHUNKS_MAX
from tests.services.service_engine import ServiceEngine

T = TypeVar("T")


def run(test: Callable[[ServiceEngine], Awaitable[T]]) -> T:
    async def bounded() -> T:
        return await asyncio.wait_for(test(ServiceEngine(ManualClock())), 30)

    return asyncio.run(bounded())


def putting(**rows: bytes) -> Callable[[Mapping[str, bytes]], dict[str, bytes]]:
    return lambda before: {**before, **rows}


def test_rows_are_read_as_they_were_written_and_each_kind_by_itself() -> None:
    async def test(engine: ServiceEngine) -> None:
        store = StoreIdentities(engine)
        assert await store.accounts.read() == IdentityRows(None, {})
        await store.accounts.edit(putting(orders=b"1", more=b"2"))
        await store.roles.edit(putting(orders=b"3"))
        assert (await store.accounts.read()).rows == {"more": b"2", "orders": b"1"}
        assert (await store.roles.read()).rows == {"orders": b"3"}
        await store.accounts.edit(lambda before: {"more": before["more"]})
        assert (await store.accounts.read()).rows == {"more": b"2"}
        assert (await store.roles.read()).rows == {"orders": b"3"}

    run(test)


def test_each_change_has_another_version_and_no_change_has_none() -> None:
    async def test(engine: ServiceEngine) -> None:
        store = StoreIdentities(engine)
        await store.accounts.edit(dict)
        assert await store.versions() == (None, None)
        await store.accounts.edit(putting(orders=b"1"))
        first, roles = await store.versions()
        assert (first, roles) == ((await store.accounts.read()).version, None)
        await store.accounts.edit(putting(orders=b"1"))
        assert await store.versions() == (first, None)
        await store.accounts.edit(lambda before: {})
        last, _ = await store.versions()
        assert last is not None and first is not None and last > first
        assert await store.accounts.read() == IdentityRows(last, {})

    run(test)


@pytest.mark.parametrize("sizes", [(CHUNK_BYTES - 1, CHUNK_BYTES), (3 * CHUNK_BYTES, 9)])
def test_a_row_that_grows_and_shrinks_over_records_is_whole(sizes: tuple[int, int]) -> None:
    async def test(engine: ServiceEngine) -> None:
        store = StoreIdentities(engine)
        for size in (*sizes, *reversed(sizes)):
            wanted = {"a": b"first", "long": bytes(i % 251 for i in range(size)), "z": b"last"}
            await store.accounts.edit(putting(**wanted))
            assert (await store.accounts.read()).rows == wanted
        await store.accounts.edit(lambda before: {})
        assert len(await engine.read_range(keys.ACCOUNTS, False, b"", None, 100)) == 1

    run(test)


def test_what_is_too_long_or_too_many_is_refused_and_changes_nothing() -> None:
    async def test(engine: ServiceEngine) -> None:
        store = StoreIdentities(engine)
        await store.accounts.edit(putting(orders=b"1"))
        before = await store.accounts.read()
        with pytest.raises(RowsRefused, match="'orders' is longer"):
            await store.accounts.edit(putting(orders=bytes(CHUNK_BYTES * CHUNKS_MAX)))
        with pytest.raises(RowsRefused, match=str(ROWS_MAX)):
            await store.accounts.edit(lambda _: {str(at): b"" for at in range(ROWS_MAX + 1)})
        assert await store.accounts.read() == before

    run(test)


def test_a_change_of_thousands_of_rows_takes_several_commits() -> None:
    async def test(engine: ServiceEngine) -> None:
        store = StoreIdentities(engine)
        wanted = {f"{at:05}": bytes(2000) for at in range(ROWS_MAX)}
        await store.roles.edit(lambda _: wanted)
        assert (await store.roles.read()).rows == wanted

    run(test)


def test_a_change_that_another_one_overtakes_is_made_anew_upon_it() -> None:
    async def test(engine: ServiceEngine) -> None:
        store = StoreIdentities(engine)
        reached, goes_on = asyncio.Event(), asyncio.Event()

        async def first_commit_waits() -> None:
            engine.before_commit = None
            reached.set()
            await goes_on.wait()

        engine.before_commit = first_commit_waits
        seen: list[dict[str, bytes]] = []

        def edit(before: Mapping[str, bytes]) -> dict[str, bytes]:
            seen.append(dict(before))
            return {**before, "slow": b"1"}

        slow = asyncio.create_task(store.accounts.edit(edit))
        await reached.wait()
        await StoreIdentities(engine.second()).accounts.edit(putting(quick=b"2"))
        goes_on.set()
        await slow
        assert seen == [{}, {"quick": b"2"}]
        assert (await store.accounts.read()).rows == {"quick": b"2", "slow": b"1"}

    run(test)


def test_of_many_changes_at_once_none_is_lost() -> None:
    async def test(engine: ServiceEngine) -> None:
        tables = [StoreIdentities(one).accounts for one in (engine, engine.second())]
        names = [f"account{at}" for at in range(24)]
        edits = [tables[at % 2].edit(putting(**{name: b"1"})) for at, name in enumerate(names)]
        await asyncio.gather(*edits)
        assert sorted((await tables[0].read()).rows) == sorted(names)

    run(test)


def test_an_edit_that_raises_changes_nothing() -> None:
    async def test(engine: ServiceEngine) -> None:
        store = StoreIdentities(engine)

        def refuse(before: Mapping[str, bytes]) -> dict[str, bytes]:
            raise RuntimeError("no")

        with pytest.raises(RuntimeError):
            await store.accounts.edit(refuse)
        assert await store.versions() == (None, None)

    run(test)


def test_a_row_of_which_a_part_is_missing_is_damaged() -> None:
    whole = [Item(b"\0", b"\1", 9), Item(b"a", b"\1x", 9), Item(b"a\0\1", b"y", 9)]
    assert identity_rows.rows_of(whole) == {"a": b"xy"}
    for cut in ([whole[2]], [whole[1], Item(b"a\0\2", b"z", 9)]):
        with pytest.raises(DamagedRecord, match="'a'"):
            identity_rows.rows_of(cut)
    with pytest.raises(DamagedRecord, match="version"):
        identity_rows.rows_of([Item(b"a", b"\2x", 9)])


def test_a_version_of_another_program_is_no_row() -> None:
    async def test(engine: ServiceEngine) -> None:
        step = Step(keys.ACCOUNTS, (Write(Key(False, b"orders"), b"\7{}"),))
        await engine.update(keys.ACCOUNTS, (), lambda records, stamp: Commit(None, (step,)))
        with pytest.raises(DamagedRecord, match="'orders'"):
            await StoreIdentities(engine).accounts.read()

    run(test)


@pytest.mark.parametrize(
    ("partition", "hidden", "belongs"),
    [(b"a", False, True), (b"r", False, True), (b"x", False, False), (b"a", True, False)],
)
def test_the_integrity_check_knows_their_addresses(
    partition: bytes, hidden: bool, belongs: bool
) -> None:
    ref = Ref(Partition(keys.IDENTITIES, partition), Key(hidden, b"orders"))
    assert identity_rows.check(ref, Record(b"\1{}", 1)) is belongs
