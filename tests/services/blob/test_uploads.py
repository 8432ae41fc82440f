"""Two gateways stage blocks on one blob: each counts its own, and together they keep the limit."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Awaitable, Callable

import msgspec
import pytest

from strongroom import limits
from strongroom.engines.base import Ref
from strongroom.operations.blob import block
from strongroom.services.blob.types import blocks, uploads
from strongroom.services.core.runner import Services
from strongroom.services.sweeper import Sweeper
from strongroom.store.blob import blob_records
from strongroom.store.blob.blob_records import Upload
from strongroom.store.core import gateway_keys
from strongroom.store.integrity import Integrity
from tests.services import blob_calls as do
from tests.services.container_calls import create, refused, run
from tests.services.gateways.test_two_gateways import pair
from tests.services.queue.test_ledgers import HeldCommits
from tests.services.queue_calls import MemorySnapshot, overwrite, stored
from tests.services.service_engine import ServiceEngine
from tests.services.sweeps import drop_container

WEEK_S = limits.UNCOMMITTED_LIFETIME_S


async def fresh(staged: str = "") -> list[Services]:
    """Return two gateways whose container has a blob with these blocks: a digit for each, which is
    the gateway."""
    both = pair()
    await create(both[0])
    for number, gateway in enumerate(staged):
        await do.stage(both[int(gateway)], "b", f"{number:03}", gateway.encode())
    return both


def records(on: Services) -> dict[int, Upload]:
    """Return the records of the only upload, by their gateways."""
    return {
        gateway: blob_records.UPLOAD.decode(record.value)
        for ref, record in stored(on).items()
        if (gateway := gateway_keys.upload_gateway(ref.key.name)) is not None
    }


def counts(on: Services) -> dict[int, int]:
    return {gateway: upload.count for gateway, upload in records(on).items()}


def problems(on: Services) -> list[str]:
    """Return the doctor's findings."""
    assert isinstance(on.store, ServiceEngine)
    return [one.problem for one in Integrity(MemorySnapshot(on.store)).findings()]


async def listed(on: Services) -> list[str]:
    """Return the ids of the uncommitted blocks."""
    lists = await do.run(on, block.GET_BLOCK_LIST, "b", blocks.GetBlockList(False, True))
    return [item.id for item in lists.uncommitted]


class HeldDecisions:
    """Holds back the decisions of a gateway, after it has read what they are made on."""

    def __init__(self, on: Services) -> None:
        self.reached = asyncio.Event()
        self.released = asyncio.Event()
        self._update: Callable[..., Awaitable[object]] = on.store.update
        on.store.update = self._held  # type: ignore[assignment]  # a double

    async def _held(self, *given: object) -> object:
        self.reached.set()
        await self.released.wait()
        return await self._update(*given)


async def decisions(first: Callable[[Services], Awaitable[None]], staged: str) -> list[int]:
    """Let a gateway act, and the other one stage a block, both decided before either commits. The
    first one commits first. Return how often each has decided."""
    both = await fresh(staged)
    held = [HeldCommits(on) for on in both]
    tasks = []
    for on, act, one in zip(both, (first, stage_more), held, strict=True):
        tasks.append(asyncio.ensure_future(act(on)))
        await one.reached.wait()
    for task, one in zip(tasks, held, strict=True):
        one.released.set()
        await task
    assert problems(both[0]) == []
    return [one.decisions for one in held]


async def stage_more(on: Services) -> None:
    await do.stage(on, "b", f"9{on.store.gateways.number:02}", b"more")


async def stage_again(on: Services) -> None:
    await do.stage(on, "b", "000", b"again")


@pytest.mark.parametrize("act", [stage_more, stage_again], ids=lambda one: one.__name__)
def test_no_gateway_decides_again_because_of_the_other(act: Callable[..., Awaitable[None]]) -> None:
    async def scenario() -> None:
        assert await decisions(act, "01") == [1, 1]

    run(scenario)


@pytest.mark.parametrize("act", [stage_more, stage_again], ids=lambda one: one.__name__)
def test_with_one_record_for_both_the_later_one_decides_again(
    act: Callable[..., Awaitable[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "counting_gateway", lambda services: 0)

    async def scenario() -> None:
        assert await decisions(act, "01") == [1, 2]

    run(scenario)


@pytest.mark.parametrize("first", [0, 1])
def test_a_list_has_the_blocks_of_all_gateways(first: int) -> None:
    async def scenario() -> None:
        both = await fresh("011" if first == 0 else "100")
        for on in both:
            assert len(await listed(on)) == 3
        await do.commit(both[1], "b", ["002", "000", "001"])
        assert await do.read(both[0], "b") == (b"101" if first == 0 else b"010")
        assert records(both[0]) == {} and problems(both[0]) == []

    run(scenario)


def test_a_block_that_replaces_one_of_the_other_gateway_counts_below_zero() -> None:
    async def scenario() -> None:
        both = await fresh("000")
        for name in ("000", "001", "002"):
            await do.stage(both[1], "b", name, b"again")
        assert counts(both[0]) == {0: 3, 1: 0}
        await do.stage(both[0], "b", "000", b"back")
        await do.stage(both[1], "b", "000", b"again")
        assert counts(both[0]) == {0: 3, 1: 0} and problems(both[0]) == []
        assert len(await listed(both[0])) == 3

    run(scenario)


ENDS: dict[str, Callable[[Services], Awaitable[object]]] = {
    "list": lambda on: do.commit(on, "b", ["000"]),
    "put": lambda on: do.put(on, "b", b"other"),
    "delete": lambda on: do.delete(on, "b"),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("ending", [0, 1])
def test_what_ends_the_upload_ends_it_at_all_gateways(end: str, ending: int) -> None:
    async def scenario() -> None:
        both = await fresh("01")
        if end == "delete":
            await do.commit(both[0], "b", ["000"])
            await do.stage(both[1], "b", "001", b"new")
        await ENDS[end](both[ending])
        assert records(both[0]) == {} and problems(both[0]) == []
        for on in both:
            await do.stage(on, "b", f"{on.store.gateways.number}", b"another length")
        assert counts(both[0]) == {0: 1, 1: 1} and problems(both[0]) == []

    run(scenario)


@pytest.mark.parametrize("order", ["01", "10"])
def test_an_upload_that_the_other_gateway_has_ended_meanwhile_begins_anew(order: str) -> None:
    """A block that was decided before the list's commit comes after it."""

    async def scenario() -> None:
        both = await fresh("01")
        listing, staging = (both[int(digit)] for digit in order)
        held = HeldCommits(staging)
        task = asyncio.ensure_future(stage_more(staging))
        await held.reached.wait()
        await do.commit(listing, "b", ["000", "001"])
        held.released.set()
        await task
        assert await do.read(listing, "b") == b"01" and len(await listed(listing)) == 1
        assert problems(listing) == []

    run(scenario)


@pytest.mark.parametrize(("listing", "staging"), [(0, 1), (1, 0)])
@pytest.mark.parametrize(("name", "content"), [("001", b"0new"), ("002", b"01new")])
def test_a_list_has_what_the_other_gateway_has_staged_before_its_commit(
    listing: int, staging: int, name: str, content: bytes
) -> None:
    """A block that is staged again, and one without which the list would be refused. The list has
    read the blocks before."""

    async def scenario() -> None:
        both = await fresh("01")
        names = ["000", "001", "002"] if name == "002" else ["000", "001"]
        held = (HeldDecisions if name == "002" else HeldCommits)(both[listing])
        task = asyncio.ensure_future(do.commit(both[listing], "b", names))
        await held.reached.wait()
        await do.stage(both[staging], "b", name, b"new")
        held.released.set()
        await task
        assert await do.read(both[0], "b") == content

    run(scenario)


@pytest.mark.parametrize("most", [1, 2, 3, 7, 20])
@pytest.mark.parametrize("pattern", ["0", "1", "01", "0111", "1000"])
def test_together_they_stage_exactly_what_is_permitted(
    most: int, pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B-BLK-09: neither more nor less, whoever stages, also after a block was replaced."""
    monkeypatch.setattr(limits, "UNCOMMITTED_BLOCKS_MAX", most)

    async def scenario() -> None:
        both = await fresh()
        turns = itertools.cycle(pattern)
        for number in range(most):
            await do.stage(both[int(next(turns))], "b", f"{number:03}", b"x")
            assert problems(both[0]) == []
        for on in both:
            assert await refused(stage_more(on)) == (409, "BlockCountExceedsLimit")
            await do.stage(on, "b", "000", b"again")
        assert sum(counts(both[0]).values()) == most and problems(both[0]) == []

    run(scenario)


def test_many_at_both_gateways_stage_no_more_than_is_permitted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """B-BLK-09."""
    monkeypatch.setattr(limits, "UNCOMMITTED_BLOCKS_MAX", 30)

    async def scenario() -> None:
        both = await fresh()
        stagings = (do.stage(both[n % 2], "b", f"{n:03}", b"x") for n in range(50))
        found = await asyncio.gather(*stagings, return_exceptions=True)
        assert Counter(map(str, found)) == {"None": 30, "BlockCountExceedsLimit": 20}
        assert len(await listed(both[0])) == 30
        assert problems(both[0]) == []

    run(scenario)


@pytest.mark.parametrize("last", [0, 1])
def test_an_upload_lasts_a_week_after_the_last_block_at_any_gateway(last: int) -> None:
    async def scenario() -> None:
        both = await fresh("01")
        sweepers = [Sweeper(on) for on in both]
        both[0].store.advance(WEEK_S - 10)
        await do.stage(both[last], "b", "002", b"x")
        for age_s, count in ((20, 3), (WEEK_S - 30, 3), (30, 0)):
            both[0].store.advance(age_s)
            for _ in range(3):
                for sweeper in sweepers:
                    await sweeper.run_once()
                both[0].store.advance(1)
            assert sum(counts(both[0]).values()) == count
            assert problems(both[0]) == []

    run(scenario)


def test_the_sweep_of_a_container_takes_the_records_of_all_gateways() -> None:
    async def scenario() -> None:
        both = await fresh("01")
        await drop_container(both[0])
        for _ in range(3):
            both[0].store.advance(1)
            for on in both:
                await Sweeper(on).run_once()
        assert stored(both[0]) == {}

    run(scenario)


DAMAGES: dict[str, tuple[int, Upload | None, str]] = {
    "one is lost": (1, None, "its upload does not name the records of the gateways"),
    "the first is lost": (0, None, "its upload does not name the records of the gateways"),
    "one is not named": (2, Upload(1, 3, 0, 1), "does not name the records"),
    "one is of another upload": (1, Upload(1, 3, 1, 1, share=1), "does not name the records"),
    "one counts too few": (1, Upload(0, 3, 0, 0, share=9), "2 staged blocks, but 1 are counted"),
    "one may stage too many": (1, Upload(0, 3, 1, 0, share=10**5), "more blocks than the limit"),
    "one has too many": (1, Upload(0, 3, 1, 0, share=0), "more blocks than the limit"),
}
"""The record of a gateway, what is there instead (number 0 = that of the upload), the finding."""


@pytest.mark.parametrize("damage", DAMAGES)
def test_the_doctor_sees_records_that_do_not_agree(damage: str) -> None:
    gateway, record, finding = DAMAGES[damage]

    async def scenario() -> None:
        on = (await fresh("01"))[0]
        (at,) = [ref for ref in stored(on) if gateway_keys.upload_gateway(ref.key.name) == 0]
        upload = records(on)[0]
        value = None
        if record is not None:
            number = record.number or upload.number
            changed = msgspec.structs.replace(record, number=number)
            value = blob_records.UPLOAD.encode(changed)
        await overwrite(on, Ref(at.partition, gateway_keys.upload(gateway)), value)
        assert any(finding in one for one in problems(on)), problems(on)

    run(scenario)


@pytest.mark.parametrize(
    ("upload", "length"),
    [
        (Upload(1, 2, 3, 4), 4),
        (Upload(1, 2, -3, 4, (1, 63)), 5),
        (Upload(1, 2, 3, 4, (1,), 5), 6),
        (Upload(1, 2, 3, 4, (), 0, 7), 7),
        (Upload(1, 2, 3, 4, (), 0, 7, 1), 8),
    ],
)
def test_fields_that_are_not_used_are_not_stored(upload: Upload, length: int) -> None:
    """A gateway alone uses the first four only, in the form that earlier versions read."""
    stored = blob_records.UPLOAD.encode(upload)
    assert stored[:2] == bytes((1, 0x90 + length))
    assert blob_records.UPLOAD.decode(stored) == upload
