"""Find Blobs by Tags on services: its cost, its state after crashes, and concurrent changes."""

from __future__ import annotations

import asyncio
import operator as op
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom import limits
from strongroom.auth.request import Service
from strongroom.clock import ManualClock
from strongroom.engines.base import CommitUnknown, Record, Ref
from strongroom.operations.blob import blob as blob_operations
from strongroom.operations.blob import tag
from strongroom.semantics.blob import tag_queries
from strongroom.semantics.blob.tag_queries import START, Resume
from strongroom.semantics.core.conditions import Conditions
from strongroom.services.blob.blobs import PutBlob
from strongroom.services.blob.tags import find_blobs
from strongroom.services.blob.tags.find_blobs import FindBlobs, FoundPage
from strongroom.services.blob.tags.tagging import SetTags
from strongroom.services.core.runner import Services
from strongroom.services.sweeper import Sweeper
from strongroom.store.blob import blob_records
from strongroom.store.blob.tag_integrity import TagEntriesCheck
from strongroom.store.core import keys, records, tag_keys
from strongroom.store.core.records import JobKind
from strongroom.values import Metadata
from tests.effort import examples
from tests.services import blob_calls as do
from tests.services.container_calls import (
    ACCOUNT,
    call,
    create,
    placed,
    put_blob,
    refused,
    run,
    services,
)
from tests.services.service_engine import ServiceEngine
from tests.services.sweeps import drop_container, fresh, swept

AFTER_SWEEP_S = 120


async def put(on: Services, name: str, **tags: str) -> None:
    given = PutBlob(tags=tuple(sorted(tags.items())))
    await do.run(on, blob_operations.PUT_BLOB, name, given, b"x")


async def set_tags(on: Services, name: str, if_tags: str | None = None, **tags: str) -> None:
    more: dict[str, Any] = {}
    if if_tags is not None:
        more["conditions"] = Conditions(if_tags=if_tags)
    given = SetTags(tuple(sorted(tags.items())))
    await do.run(on, tag.SET_BLOB_TAGS, name, given, **more)


async def find(on: Services, where: str, start: Any = START, results: int = 5000) -> FoundPage:
    given = FindBlobs(tag_queries.parse(where), start, results)
    return await find_blobs.find_blobs(on, await placed(on, given, rule=tag.FIND_BLOBS.rule))


async def found(on: Services, where: str) -> list[str]:
    return sorted(item.name for item in (await find(on, where)).items)


def of_index(on: Services) -> list[Ref]:
    return [ref for ref in do.left(on)[0] if tag_keys.is_tag_entries(ref[0].partition.keyspace)]


def tag_jobs(on: Services) -> list[Any]:
    jobs = [one for ref, one in do.left(on)[0] if ref.partition.keyspace == keys.JOBS]
    decoded = [records.JOB.decode(one.value) for one in jobs]
    return [job for job in decoded if job.kind is JobKind.SWEEP_TAGS]


async def problems(on: Services) -> list[str]:
    """Return the findings of the doctor's check of the index, for the container `photos`."""
    check, blobs = TagEntriesCheck(), []
    rows = do.left(on)[0]
    for ref, record in rows:
        space = ref.partition.keyspace
        if tag_keys.is_tag_entries(space):
            assert check.take(ref, record)
        elif space == keys.JOBS:
            check.take_job(records.JOB.decode(record.value))
        elif space[:1] == b"b" and ref.key == keys.HEAD_KEY:
            blobs.append((ref.partition, blob_records.BLOB.decode(record.value)))
    texts = []
    for partition, head in blobs:
        generation = int.from_bytes(partition.keyspace[1:], "big")
        texts += list(check.missing(generation, partition.name.decode(), head))
    return texts + [problem for _, problem in check.strays(rows, lambda _: False)]


def counted(on: Services) -> list[int]:
    """Record from now on how many heads of blobs each read names."""
    real, counts = on.store.read, list[int]()

    async def read(reads: Sequence[Ref]) -> list[Record | None]:
        counts.append(sum(ref.key == keys.HEAD_KEY for ref in reads))
        return await real(reads)

    on.store.read = read  # type: ignore[method-assign]  # a double
    return counts


@pytest.mark.parametrize("where", ["all = '1' AND rare = '7'", "rare > '6' AND all = '1'"])
def test_a_search_looks_at_the_blobs_of_the_rarest_tag(where: str) -> None:
    """B-FND-11."""

    async def test() -> None:
        on, _ = await fresh()
        for number in range(600):
            await put(on, f"{number:04}", all="1", **({} if number % 100 else {"rare": "7"}))
        counts = counted(on)
        assert len(await found(on, where)) == 6
        assert sum(counts) == 6

    run(test)


def test_a_page_looks_at_no_more_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    """B-FND-08, B-FND-11."""
    monkeypatch.setattr(limits, "FIND_SCANNED_ENTRIES_MAX", 100)
    monkeypatch.setattr(find_blobs, "_TOGETHER", 40)

    async def test() -> None:
        on, _ = await fresh()
        for number in range(500):
            await put(on, f"{number:04}", a="1", b=str(number % 250))
        where, start, names, pages = "a = '1' AND b <= '0'", START, list[str](), 0
        while True:
            counts = counted(on)
            page = await find(on, "a >= '0' AND b < '1'", start)
            assert sum(counts) <= 140
            names += [item.name for item in page.items]
            pages += 1
            if page.marker is None:
                break
            start = page.marker
        assert sorted(names) == ["0000", "0250"]
        assert await found(on, where) == ["0000", "0250"]

    run(test)


def test_containers_without_hits_are_work_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """B-FND-08."""
    monkeypatch.setattr(limits, "FIND_SCANNED_ENTRIES_MAX", 20)

    async def test() -> None:
        on = services()
        for number in range(10):
            await create(on, f"box{number}")
        given = PutBlob(tags=(("a", "1"),))
        rule = blob_operations.PUT_BLOB.rule
        late = await placed(on, given, container="box9", blob="x", rule=rule, body=b"x")
        await blob_operations.PUT_BLOB.run(on, late)  # type: ignore[misc]  # run is given
        start: Resume | None = START
        names, pages = list[str](), 0
        while start is not None:
            wanted = FindBlobs(tag_queries.parse("a = '1'"), start)
            page = await find_blobs.find_blobs(on, call(wanted, container=""))
            names += [item.name for item in page.items]
            start, pages = page.marker, pages + 1
        assert (names, pages > 2) == (["x"], True)

    run(test)


CHANGES: list[tuple[str, Callable[[Services], Awaitable[None]]]] = [
    ("set", lambda on: set_tags(on, "b", a="2", c="3")),
    ("clear", lambda on: set_tags(on, "b")),
    ("overwrite", lambda on: put(on, "b", a="2")),
    ("overwrite without", lambda on: put(on, "b")),
    ("delete", lambda on: do.delete(on, "b")),
    ("first", lambda on: put(on, "new", a="2", b="3")),
]


@pytest.mark.parametrize("cut", range(12))
@pytest.mark.parametrize(("name", "change"), CHANGES)
def test_a_crash_between_any_two_steps_leaves_the_index_exact(
    name: str, change: Callable[[Services], Awaitable[None]], cut: int
) -> None:
    """B-FND-06."""

    async def test() -> None:
        on, _ = await fresh()
        await put(on, "b", a="1", b="1")
        await put(on, "other", a="1")
        assert isinstance(on.store, ServiceEngine)
        on.store.cut_after_steps(cut)
        try:
            await change(on)
        except CommitUnknown:
            on = services(on.store.restarted())
        await _is_exact(on)
        assert await problems(on) == []
        assert "other" in await found(on, "a = '1'")
        on.store.advance(AFTER_SWEEP_S)
        await Sweeper(on).run_once()
        await _is_exact(on)
        assert (await problems(on), tag_jobs(on)) == ([], [])
        tagged = sum(len(head.tags) for head in await _heads(on))
        assert len(of_index(on)) == tagged

    run(test)


async def _heads(on: Services) -> list[blob_records.BlobRecord]:
    rows = do.left(on)[0]
    return [
        blob_records.BLOB.decode(record.value) for ref, record in rows if ref.key == keys.HEAD_KEY
    ]


async def _is_exact(on: Services) -> None:
    """Check that a search for each value finds the blobs that have it."""
    rows = do.left(on)[0]
    heads = {
        ref.partition.name.decode(): dict(blob_records.BLOB.decode(record.value).tags)
        for ref, record in rows
        if ref.key == keys.HEAD_KEY
    }
    for key in "abc":
        for value in "123":
            expected = sorted(name for name, tags in heads.items() if tags.get(key) == value)
            assert await found(on, f"{key} = '{value}'") == expected


def test_the_index_without_its_job_would_keep_what_a_crash_left() -> None:
    """A commit stops after the entries are added, and its job removes them."""

    async def test() -> None:
        on, _ = await fresh()
        assert isinstance(on.store, ServiceEngine)
        on.store.cut_after_steps(3)
        with pytest.raises(CommitUnknown):
            await put(on, "b", a="1", b="2")
        on = services(on.store.restarted())
        assert (len(of_index(on)), len(tag_jobs(on))) == (2, 1)
        assert await Sweeper(on).run_once() == 0, "a commit may still be under way"
        on.store.advance(AFTER_SWEEP_S)
        assert await Sweeper(on).run_once() == 1
        assert (of_index(on), tag_jobs(on)) == ([], [])

    run(test)


def test_a_commit_leaves_no_job() -> None:
    async def test() -> None:
        on, _ = await fresh()
        await put(on, "b", a="1")
        await set_tags(on, "b", a="2", b="2")
        await put(on, "b", a="3")
        assert (len(of_index(on)), tag_jobs(on)) == (1, [])
        await do.metadata(on, "b", "x")
        assert len(of_index(on)) == 1
        await do.delete(on, "b")
        assert (of_index(on), tag_jobs(on)) == ([], [])

    run(test)


def test_tags_that_stay_keep_their_entries() -> None:
    """Every search finds a blob with unchanged tags, whatever else is written."""

    async def test() -> None:
        on, _ = await fresh()
        await put(on, "b", a="1")
        before = of_index(on)
        await do.metadata(on, "b", "x")
        await put(on, "b", a="1")
        await set_tags(on, "b", a="1")
        await do.snapshot(on, "b")
        assert of_index(on) == before

    run(test)


def test_the_index_of_a_deleted_container_is_swept() -> None:
    """B-FND-06."""

    async def test() -> None:
        on, sweeper = await fresh()
        for number in range(30):
            await put(on, f"b{number}", a="1", b=str(number))
        await drop_container(on)
        await create(on)
        assert await found(on, "a = '1'") == []
        await put(on, "new", a="1")
        await swept(on, sweeper)
        assert len(of_index(on)) == 1
        assert await found(on, "a = '1'") == ["new"]

    run(test)


def test_a_container_that_is_deleted_during_a_search_is_not_found() -> None:
    """B-FND-10."""

    async def test() -> None:
        on, sweeper = await fresh()
        await put(on, "b", a="1")
        real = on.store.scan
        done: list[int] = []

        async def scan(*given: Any) -> Any:
            if tag_keys.is_tag_entries(given[0]) and not done:
                done.append(1)
                await drop_container(on)
                await swept(on, sweeper)
            return await real(*given)

        on.store.scan = scan  # type: ignore[assignment, method-assign]  # a double
        assert await refused(find(on, "a = '1'")) == (404, "ContainerNotFound")

    run(test)


def test_tags_that_change_between_the_index_and_the_blob() -> None:
    """Every result has matched; an entry of removed tags is no result."""

    async def test() -> None:
        on, _ = await fresh()
        await put(on, "b", a="1", b="1")
        real, turns = on.store.read, list[dict[str, str]]()

        async def read(reads: Sequence[Ref]) -> list[Record | None]:
            if turns and any(ref.key == keys.HEAD_KEY for ref in reads):
                on.store.read = real  # type: ignore[method-assign]  # a double
                await set_tags(on, "b", **turns.pop())
            return await real(reads)

        for changed in ({"a": "2", "b": "1"}, {"a": "1", "b": "2"}, {}):
            await set_tags(on, "b", a="1", b="1")
            turns.append(changed)
            on.store.read = read  # type: ignore[method-assign]  # a double
            assert (await find(on, "a = '1' AND b = '1'")).items == []
            assert turns == []

    run(test)


def test_entries_of_an_older_token_do_not_count() -> None:
    """A late removal of old entries, on another gateway, removes no entry that counts."""

    async def test() -> None:
        store = ServiceEngine(ManualClock())
        one, two = services(store), services(store.second())
        await create(one)
        await put(one, "b", a="1")
        old = of_index(one)
        await set_tags(two, "b", a="2")
        await set_tags(one, "b", a="1")
        assert len(of_index(one)) == 1
        assert of_index(one) != old
        assert await found(two, "a = '1'") == ["b"]

    run(test)


def test_one_of_many_writers_on_two_gateways_wins() -> None:
    """B-TAG-17."""

    async def test() -> None:
        store = ServiceEngine(ManualClock())
        gateways = [services(store), services(store.second())]
        await create(gateways[0])
        await put(gateways[0], "b", state="0")

        async def attempt(number: int, state: int) -> bool:
            made = {"state": str(state + 1), "by": str(number)}
            try:
                await set_tags(gateways[number % 2], "b", f"state = '{state}'", **made)
            except Exception:
                return False
            return True

        for state in range(5):
            won = await asyncio.gather(*[attempt(number, state) for number in range(32)])
            assert won.count(True) == 1
            where = f"state = '{state + 1}' AND by = '{won.index(True)}'"
            assert [await found(on, where) for on in gateways] == [["b"], ["b"]]
            assert len(of_index(gateways[0])) == 2

    run(test)


async def _stored_before_there_was_an_index(on: Services) -> None:
    place = await on.place(Service.BLOB, ACCOUNT, "photos")
    assert place is not None
    tags: Metadata = (("a", "1"),)
    await put_blob(on, place.generation, "old", tags=tags)


def test_tags_without_an_index_get_one_by_the_next_write() -> None:
    async def test() -> None:
        on, _ = await fresh()
        await _stored_before_there_was_an_index(on)
        assert await problems(on) == [
            "its tags are in no index; set them again, and searches find it"
        ]
        await do.metadata(on, "old", "x")
        assert (await found(on, "a = '1'"), await problems(on)) == (["old"], [])

    run(test)


TAGS = st.dictionaries(st.sampled_from("abc"), st.text("12", max_size=2), max_size=3)
ACTS = st.tuples(
    st.sampled_from(["put", "set", "delete", "metadata"]), st.sampled_from("xyz"), TAGS
)
QUERY = st.dictionaries(
    st.sampled_from("abc"),
    st.tuples(st.sampled_from(["=", ">", ">=", "<", "<="]), st.text("12", max_size=2)),
    min_size=1,
    max_size=3,
)


async def _act(on: Services, act: str, name: str, tags: dict[str, str]) -> None:
    if act == "put":
        await put(on, name, **tags)
    elif act == "set":
        await set_tags(on, name, **tags)
    elif act == "delete":
        await do.delete(on, name)
    else:
        await do.metadata(on, name, "x")


@examples(180)
@given(st.lists(ACTS, max_size=12), QUERY, st.integers(1, 3))
def test_every_search_finds_what_a_look_at_every_blob_finds(
    acts: list[tuple[str, str, dict[str, str]]], query: dict[str, tuple[str, str]], results: int
) -> None:
    """B-FND-02, B-FND-06, B-FND-08."""
    where = " AND ".join(f"{key} {sign} '{value}'" for key, (sign, value) in query.items())
    signs = {"=": op.eq, ">": op.gt, ">=": op.ge, "<": op.lt, "<=": op.le}

    def matches(tags: dict[str, str]) -> bool:
        return all(
            key in tags and signs[sign](tags[key], value) for key, (sign, value) in query.items()
        )

    async def test() -> None:
        on, _ = await fresh()
        model: dict[str, dict[str, str]] = {}
        for act, name, tags in acts:
            if act != "put" and name not in model:
                continue
            await _act(on, act, name, tags)
            if act == "delete":
                del model[name]
            elif act != "metadata":
                model[name] = tags
            start: Resume | None = START
            names = list[str]()
            while start is not None:
                page = await find(on, where, start, results)
                names += [item.name for item in page.items]
                start = page.marker
            assert sorted(names) == sorted(name for name, has in model.items() if matches(has))
            assert await problems(on) == []

    run(test)
