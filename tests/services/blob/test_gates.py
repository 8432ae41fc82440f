"""A list gets its turn against Put Blocks at other gateways, and holds nobody up for long."""

from __future__ import annotations

import asyncio

import pytest

from strongroom.engines.base import Unavailable
from strongroom.operations.blob import block
from strongroom.services.blob.decisions.precedence import Precedence
from strongroom.services.blob.types import blocks, gates
from strongroom.services.blob.types.gates import GATE_TICKS, ListTurn
from strongroom.services.core.runner import Services
from strongroom.store.blob.blob_records import Upload
from strongroom.values import TICKS_PER_S
from tests.services import blob_calls as do
from tests.services.blob.test_uploads import fresh, problems, records
from tests.services.container_calls import create, placed, refused, run, services
from tests.services.service_engine import settle

OPEN = Upload(1, 3, 5, 9, (1,), 50)
CLOSED = Upload(1, 3, 5, 9, (1,), 50, 100, 2)
STAGINGS = 40
GATE_S = GATE_TICKS / TICKS_PER_S


@pytest.mark.parametrize(
    ("upload", "gateway", "now", "until"),
    [(OPEN, 0, 7, 7 + GATE_TICKS), (CLOSED, 0, 100, 100 + GATE_TICKS)],
)
def test_a_gate_is_closed_for_some_seconds(
    upload: Upload, gateway: int, now: int, until: int
) -> None:
    seen = gates.closed(upload, gateway, now)
    assert seen == Upload(1, 3, 5, 9, (1,), 50, until, gateway)


@pytest.mark.parametrize("gateway", [0, 2])
def test_a_closed_gate_stays_as_it_is(gateway: int) -> None:
    assert gates.closed(CLOSED, gateway, 99) is None


@pytest.mark.parametrize(
    ("upload", "gateway", "expected"), [(OPEN, 2, None), (CLOSED, 0, None), (CLOSED, 2, OPEN)]
)
def test_only_who_closed_a_gate_opens_it(
    upload: Upload, gateway: int, expected: Upload | None
) -> None:
    assert gates.opened(upload, gateway) == expected


@pytest.mark.parametrize(
    ("upload", "gateway", "now", "ticks"),
    [(OPEN, 0, 1, 0), (CLOSED, 0, 90, 10), (CLOSED, 0, 100, 0), (CLOSED, 2, 90, 0)],
)
def test_others_wait_until_it_ends(upload: Upload, gateway: int, now: int, ticks: int) -> None:
    assert gates.waiting_ticks(upload, gateway, now) == ticks


async def turn_of(on: Services) -> ListTurn:
    rule = block.PUT_BLOCK_LIST.rule
    return ListTurn(on, await placed(on, blocks.PutBlockList(()), blob="b", rule=rule))


async def closed_by(on: Services) -> ListTurn:
    """Close the gate as a list that was refused repeatedly."""
    turn = await turn_of(on)
    for _ in range(gates.REFUSALS_BEFORE_GATE):
        assert not records(on)[0].gate_until
        await turn.note_refusal()
    assert records(on)[0].gate_until
    return turn


async def staging(on: Services) -> asyncio.Task[None]:
    """Begin to stage a block, and return when it waits or is done."""
    task = asyncio.ensure_future(do.stage(on, "b", "999", b"x"))
    await settle()
    return task


@pytest.mark.parametrize("gateway", [0, 1])
def test_who_stages_elsewhere_waits_until_the_list_is_committed(gateway: int) -> None:
    async def scenario() -> None:
        both = await fresh("01")
        await closed_by(both[gateway])
        task = await staging(both[1 - gateway])
        assert not task.done()
        await do.commit(both[gateway], "b", ["000", "001"])
        await task
        assert await do.read(both[0], "b") == b"01" and problems(both[0]) == []
        assert sum(one.count for one in records(both[0]).values()) == 1

    run(scenario)


def test_who_stages_at_the_same_gateway_does_not_wait_at_the_gate() -> None:
    async def scenario() -> None:
        both = await fresh("01")
        await closed_by(both[0])
        await do.stage(both[0], "b", "999", b"x")
        assert records(both[0])[0].gate_until, "it stays closed for others"

    run(scenario)


@pytest.mark.parametrize("gateway", [0, 1])
def test_the_gate_of_a_gateway_that_died_ends_by_itself(gateway: int) -> None:
    async def scenario() -> None:
        both = await fresh("01")
        await closed_by(both[gateway])
        task = await staging(both[1 - gateway])
        both[0].store.advance(GATE_S - 0.1)
        await settle()
        assert not task.done()
        both[0].store.advance(0.2)
        await task

    run(scenario)


def test_a_list_that_is_refused_for_good_opens_the_gate() -> None:
    async def scenario() -> None:
        both = await fresh("01")
        turn = await closed_by(both[0])
        task = await staging(both[1])
        assert not task.done()
        await turn.give_up()
        await task
        assert not records(both[0])[0].gate_until

    run(scenario)


def test_a_refused_list_leaves_the_gate_of_another() -> None:
    async def scenario() -> None:
        both = await fresh("01")
        await closed_by(both[0])
        other = await turn_of(both[1])
        for _ in range(gates.REFUSALS_BEFORE_GATE):
            await other.note_refusal()
        await other.give_up()
        assert records(both[0])[0].gate_by == 0 and records(both[0])[0].gate_until

    run(scenario)


def test_who_waited_at_one_gate_does_not_wait_at_the_next() -> None:
    async def scenario() -> None:
        both = await fresh("01")
        first = await closed_by(both[0])
        task = await staging(both[1])
        both[0].store.advance(1)
        await asyncio.gather(first.give_up(), first.note_refusal())
        assert records(both[0])[0].gate_until
        await task

    run(scenario)


def test_a_gateway_alone_closes_no_gate() -> None:
    async def scenario() -> None:
        on = services()
        await create(on)
        await do.stage(on, "b", "000", b"x")
        before = records(on)
        turn = await turn_of(on)
        for _ in range(5):
            await turn.note_refusal()
        assert records(on) == before

    run(scenario)


async def reads_of_a_list(both: list[Services]) -> int:
    """Commit a list at the first gateway while clients stage at the second one without a pause.
    Return how often the list was read. The clients end once it was committed, or after a while."""
    reads, real = 0, both[0].store.read_range

    async def counted(*arguments: object) -> object:
        nonlocal reads
        reads += 1
        return await real(*arguments)  # type: ignore[arg-type]

    both[0].store.read_range = counted  # type: ignore[method-assign, assignment]  # a double
    begun, committed = asyncio.Event(), asyncio.Event()

    async def stage(number: int) -> None:
        for _ in range(STAGINGS):
            if not committed.is_set():
                await do.stage(both[1], "b", f"{number:03}", b"y")
                begun.set()

    staging = [asyncio.create_task(stage(number)) for number in range(1, 9)]
    await begun.wait()
    reads = 0
    await do.commit(both[0], "b", ["000"])
    committed.set()
    await asyncio.gather(*staging)
    return reads


@pytest.mark.parametrize(("refusals", "is_overtaken"), [(2, False), (10**9, True)])
def test_a_list_is_not_overtaken_for_ever_from_another_gateway(
    refusals: int, is_overtaken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a gate it would be."""
    monkeypatch.setattr(gates, "REFUSALS_BEFORE_GATE", refusals)

    async def scenario() -> None:
        both = await fresh("0")
        assert (await reads_of_a_list(both) > STAGINGS // 2) is is_overtaken
        assert await do.read(both[0], "b") == b"0" and problems(both[0]) == []
        assert not both[0].disposable.of(Precedence)._taken

    run(scenario)


def test_a_list_without_its_blocks_leaves_no_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has closed the gate, since a block was staged while it was read."""
    monkeypatch.setattr(gates, "REFUSALS_BEFORE_GATE", 1)

    async def scenario() -> None:
        both = await fresh("01")
        real, gated = both[0].store.read_range, list[int]()

        async def read_range(*arguments: object) -> object:
            gated.append(records(both[0])[0].gate_until)
            found = await real(*arguments)  # type: ignore[arg-type]
            if len(gated) == 1:
                await do.stage(both[1], "b", "999", b"x")
            return found

        both[0].store.read_range = read_range  # type: ignore[method-assign, assignment]  # a double
        refusal = await refused(do.commit(both[0], "b", ["missing"]))
        assert refusal == (400, "InvalidBlockList")
        assert [bool(one) for one in gated] == [False, True]
        assert not records(both[0])[0].gate_until

    run(scenario)


@pytest.mark.parametrize("is_cancelled", [True, False])
def test_a_list_that_is_cut_off_leaves_no_gate(
    is_cancelled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gates, "REFUSALS_BEFORE_GATE", 1)

    async def scenario() -> None:
        both = await fresh("01")
        real, gated = both[0].store.read_range, list[int]()

        async def read_range(*arguments: object) -> object:
            gated.append(records(both[0])[0].gate_until)
            if len(gated) > 1:
                if not is_cancelled:
                    raise Unavailable("for a moment")
                await asyncio.Event().wait()
            found = await real(*arguments)  # type: ignore[arg-type]
            await do.stage(both[1], "b", "999", b"x")
            return found

        both[0].store.read_range = read_range  # type: ignore[method-assign, assignment]  # a double
        committing = asyncio.ensure_future(do.commit(both[0], "b", ["000"]))
        await settle()
        committing.cancel()
        with pytest.raises((asyncio.CancelledError, Unavailable)):
            await committing
        assert [bool(one) for one in gated] == [False, True]
        assert not records(both[0])[0].gate_until

    run(scenario)


def test_a_list_that_is_cut_off_while_it_closes_the_gate_leaves_none() -> None:
    async def scenario() -> None:
        both = await fresh("01")
        turn, released = await turn_of(both[0]), asyncio.Event()
        await turn.note_refusal()

        async def hold() -> None:
            await released.wait()

        on = both[0].store
        on.before_commit = hold  # type: ignore[attr-defined]  # of the store in memory
        closing = asyncio.ensure_future(turn.note_refusal())
        await settle()
        closing.cancel()
        await settle()
        assert not closing.done()
        released.set()
        with pytest.raises(asyncio.CancelledError):
            await closing
        await turn.give_up()
        assert not records(both[0])[0].gate_until

    run(scenario)
