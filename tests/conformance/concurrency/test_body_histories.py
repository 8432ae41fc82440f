"""Histories of 32 clients on append blobs, page blobs, block lists, batches and leased blobs, on
both engines: one order explains every answer. B-APP-03 to B-APP-05, B-PAG-10, B-PAG-19, B-CWR-10,
B-BAT-08, B-LOP-01 to B-LOP-03.

Must not live here: the models (history_models.py).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import pytest

from strongroom.testing.history import History, Model, check
from strongroom.testing.models import (
    BlobModel,
    DeleteContent,
    DeleteIfMatch,
    GetContent,
    Put,
    PutIfAbsent,
    PutIfMatch,
)
from strongroom.testing.models import Observation as Seen
from tests.conformance import appending, blob_batches, pages
from tests.conformance.answer import Answer, expect
from tests.conformance.appending import MAX_SIZE, POSITION
from tests.conformance.blobs import block_list, block_target, put
from tests.conformance.client import PUT_BLOB, Client
from tests.conformance.concurrent_clients import CLIENTS, ConcurrentClients
from tests.conformance.guarded_writes import APPENDING, BLOCKS, PAGING, GuardedWrites
from tests.conformance.history_models import (
    CELL,
    CELLS,
    DONE,
    PAGE_BLOB_BYTES,
    Append,
    Appended,
    AppendModel,
    Cells,
    GiveBack,
    GuardedModel,
    GuardedWrite,
    Increment,
    PageModel,
    ReadBlocks,
    ReadCells,
    Refused,
    Seal,
    Take,
    WriteCells,
    Written,
    block,
    blocks,
    cells_of,
    marks_of,
)
from tests.conformance.leasing import Leased
from tests.conformance.running import Running
from tests.effort import scaled

NUMBER = "x-ms-blob-sequence-number"
OPERATIONS = 24
NOTHING = (0,) * CELLS
OUTDATED = Refused("SequenceNumberConditionNotMet")


@pytest.fixture
def place(each_engine: Running, new_name: Callable[[], str]) -> Iterator[tuple[Client, str]]:
    """A client of a server of each engine, and a new container."""
    client = each_engine.client()
    name = new_name()
    expect(client.put(f"/{name}?restype=container"), 201)
    yield client, name
    client.close()


Place = tuple[Client, str]
Call = tuple[str, Hashable, Callable[[], Hashable]]
"""The object, the call, and the function that sends it and gives the result."""


def play(client: Client, choose: Callable[[Client, int, int, random.Random], Call]) -> History:
    """Let 32 clients send what `choose(client, its number, turn, chance)` says."""
    history = History()

    def act(one: Client, number: int) -> None:
        chance = random.Random(number)
        for turn in range(scaled(OPERATIONS)):
            target, call, send = choose(one, number, turn, chance)
            record = history.invoke(f"client {number}", target, call)
            record.returned(send())

    with ConcurrentClients(client) as clients:
        clients.run(act)
    assert len(history.operations()) == CLIENTS * scaled(OPERATIONS)
    return history


def etag_of(answer: Answer) -> int:
    return int(answer.etag.strip('"'), 16)


# --- append blobs -------------------------------------------------------------------------------


def send_to_log(client: Client, target: str, call: Hashable) -> Hashable:
    """One call on an append blob, and what the client saw."""
    match call:
        case ReadBlocks():
            return blocks(expect(client.get(target), 200).body)
        case Seal():
            expect(appending.seal(client, target), 200)
            return DONE
        case Append(number, position, size_max):
            given = {POSITION: position, MAX_SIZE: size_max}
            headers = {name: str(value) for name, value in given.items() if value is not None}
            answer = appending.append(client, target, block(number), headers)
            if answer.status != 201:
                return Refused(answer.code or "")
            offset = int(answer["x-ms-blob-append-offset"])
            return Appended(offset, int(answer["x-ms-blob-committed-block-count"]))
    raise TypeError(call)


def test_appends_are_linearizable(place: Place) -> None:
    """B-APP-03 B-APP-04 B-APP-05: offsets, counts, both conditions, and a seal in the end."""
    client, container = place
    targets = [f"/{container}/log{number}" for number in range(3)]
    for target in targets:
        appending.create(client, target)
    ends: dict[tuple[int, str], int] = {}

    def choose(one: Client, number: int, turn: int, chance: random.Random) -> Call:
        target = chance.choice(targets)
        end = ends.get((number, target), 0)
        own = number * 1000 + turn
        kinds: list[Hashable] = [ReadBlocks(), Append(own), Append(own, size_max=end + 25_000)]
        kinds += [Append(own, position=end)] * 2
        if number == 0 and turn == scaled(OPERATIONS) - 1:
            kinds = [Seal()]
        call = chance.choice(kinds)

        def send() -> Hashable:
            result = send_to_log(one, target, call)
            if isinstance(result, Appended):
                ends[number, target] = result.offset + len(block(own))
            elif isinstance(result, Refused):
                ends[number, target] = int(one.head(target)["Content-Length"])
            return result

        return target, call, send

    history = play(client, choose)
    results = [operation.result for operation in history.operations()]
    assert any(isinstance(result, Appended) for result in results)
    assert Refused("AppendPositionConditionNotMet") in results
    verdict = check(history, AppendModel())
    assert verdict.linearizable, verdict.explain()


# --- page blobs ---------------------------------------------------------------------------------


def send_to_pages(client: Client, target: str, call: Hashable) -> Hashable:
    """One call on a page blob, and what the client saw."""
    match call:
        case ReadCells():
            found = expect(client.get(target), 200)
            return Cells(etag_of(found), int(found[NUMBER]), marks_of(found.body))
        case Increment():
            headers = {"x-ms-sequence-number-action": "increment"}
            answer = client.put(f"{target}?comp=properties", headers)
        case WriteCells(first, count, mark, number, if_match):
            headers = {}
            if number is not None:
                headers["x-ms-if-sequence-number-eq"] = str(number)
            if if_match is not None:
                headers["If-Match"] = f'"0x{if_match:X}"'
            if mark:
                answer = pages.send(client, target, first * CELL, cells_of(mark, count), headers)
            else:
                answer = pages.clear(client, target, first * CELL, count * CELL, headers)
        case _:
            raise TypeError(call)
    if answer.status >= 300:
        return Refused(answer.code or "")
    return Written(etag_of(answer), int(answer[NUMBER]))


def test_writes_of_pages_are_linearizable(place: Place) -> None:
    """B-PAG-10 B-PAG-19 B-CWR-10: writes, clears, sequence numbers and both conditions."""
    client, container = place
    targets = [f"/{container}/pages{number}" for number in range(2)]
    made = {name: etag_of(pages.create(client, name, PAGE_BLOB_BYTES)) for name in targets}
    # The number and the ETag that each client saw last.
    last: dict[tuple[int, str], tuple[int, int]] = {}

    def choose(one: Client, number: int, turn: int, chance: random.Random) -> Call:
        target, first = chance.choice(targets), chance.randrange(CELLS)
        count = chance.randrange(1, CELLS - first + 1)
        mark = (number + 1) * 1000 + turn if chance.randrange(4) else 0
        seen, etag = last.get((number, target), (0, made[target]))
        plain = WriteCells(first, count, mark)
        of_number = WriteCells(first, count, mark, number=seen)
        of_etag = WriteCells(first, count, mark, if_match=etag)
        call = chance.choice((ReadCells(), plain, of_number, of_number, of_etag, Increment()))

        def send() -> Hashable:
            result = send_to_pages(one, target, call)
            if isinstance(result, Cells | Written):
                last[number, target] = result.number, result.etag
            return result

        return target, call, send

    history = play(client, choose)
    results = [operation.result for operation in history.operations()]
    assert any(isinstance(result, Cells) for result in results)
    assert OUTDATED in results
    verdict = check(history, PageModel(made))
    assert verdict.linearizable, verdict.explain()


# --- block lists and batches --------------------------------------------------------------------


def next_call(chance: random.Random, content: int, etag: str | None) -> Hashable:
    """Return a client's next call; `etag` is the last one that it received."""
    kinds: list[Hashable] = [GetContent(), PutIfAbsent(content)]
    return chance.choice(kinds if etag is None else [*kinds, *[PutIfMatch(content, etag)] * 3])


def send_list(client: Client, target: str, call: Hashable) -> Seen:
    """One call on a blob that is made of two blocks, which are staged within the call."""
    if isinstance(call, GetContent):
        answer = client.get(target)
        if answer.status != 200:
            return Seen(answer.status)
        first, second = answer.body.split()
        assert first == second, "blocks of two lists"
        return Seen(200, answer.get("ETag"), int(first))
    assert isinstance(call, PutIfMatch | PutIfAbsent)
    ids = [f"{call.content:08}-{part}" for part in range(2)]
    for name in ids:
        expect(client.put(block_target(target, name), {}, f"{call.content} ".encode()), 201)
    headers = {"If-Match": call.etag} if isinstance(call, PutIfMatch) else {"If-None-Match": "*"}
    answer = client.put(f"{target}?comp=blocklist", headers, block_list(*ids))
    # Another list has dropped the blocks: it was committed within this call.
    status = 412 if answer.code == "InvalidBlockList" else answer.status
    return Seen(status, answer.get("ETag"))


def test_block_lists_are_linearizable(place: Place) -> None:
    """B-CWR-01 B-CWR-03 B-BLK-09: no blob is of two lists, and each ETag has one successor."""
    client, container = place
    etags: dict[tuple[int, str], str] = {}

    def choose(one: Client, number: int, turn: int, chance: random.Random) -> Call:
        target = f"/{container}/b{chance.randrange(2)}"
        call = next_call(chance, number * 1000 + turn, etags.get((number, target)))

        def send() -> Hashable:
            result = send_list(one, target, call)
            if result.etag is not None:
                etags[number, target] = result.etag
            return result

        return target, call, send

    verdict = check(play(client, choose), BlobModel())
    assert verdict.linearizable, verdict.explain()


def test_parts_of_batches_are_linearizable(place: Place) -> None:
    """B-BAT-08: each part is a request by itself, beside writes outside of batches."""
    client, container = place
    targets = [f"/{container}/b{number}" for number in range(6)]
    history = History()

    def act(one: Client, number: int) -> int:
        chance, etags, deleted = random.Random(number), dict[str, str](), 0
        for turn in range(scaled(OPERATIONS)):
            content = number * 1000 + turn
            if number % 4:
                target = chance.choice(targets)
                call: Hashable = chance.choice((GetContent(), Put(content), PutIfAbsent(content)))
                record = history.invoke(f"client {number}", target, call)
                answer = send_single(one, target, call)
                record.returned(answer)
                continue
            calls: list[tuple[str, Hashable]] = []
            for target in chance.sample(targets, 4):
                etags[target] = one.head(target).get("ETag") or '"0x1"'
                given = DeleteIfMatch(etags[target]) if chance.randrange(2) else DeleteContent()
                calls.append((target, given))
            deleted += send_batch(one, number, history, calls)
        return deleted

    with ConcurrentClients(client) as clients:
        assert sum(clients.run(act)) > 0
    verdict = check(history, BlobModel())
    assert verdict.linearizable, verdict.explain()


def send_single(client: Client, target: str, call: Hashable) -> Seen:
    """One call outside of a batch."""
    if isinstance(call, GetContent):
        answer = client.get(target)
        content = int(answer.body) if answer.status == 200 else None
        return Seen(answer.status, answer.get("ETag"), content)
    assert isinstance(call, Put | PutIfAbsent)
    absent = {"If-None-Match": "*"} if isinstance(call, PutIfAbsent) else {}
    answer = client.put(target, {**PUT_BLOB, **absent}, str(call.content).encode())
    return Seen(answer.status, answer.get("ETag"))


def send_batch(
    client: Client, number: int, history: History, calls: list[tuple[str, Hashable]]
) -> int:
    """Deletions in one batch; how many blobs they deleted."""
    records = [history.invoke(f"client {number}", target, call) for target, call in calls]
    parts = [
        blob_batches.delete(
            target, {"If-Match": call.etag} if isinstance(call, DeleteIfMatch) else None
        )
        for target, call in calls
    ]
    answers = blob_batches.send(client, *parts)
    for record, answer in zip(records, answers, strict=True):
        record.returned(Seen(answer.status))
    return sum(answer.status == 202 for answer in answers)


# --- writes under a lease -----------------------------------------------------------------------


@pytest.mark.parametrize("writes", [BLOCKS, APPENDING, PAGING], ids=str)
def test_a_lease_and_every_write_have_one_order(
    each_engine: Running, place: Place, writes: GuardedWrites
) -> None:
    """B-LOP-01 B-LOP-02 B-LOP-03: a write passes exactly as long as its id is that of the lease."""
    client, container = place
    target = f"/{container}/b"
    put(client, f"/{container}/source", bytes(512))
    writes.create(client, target)
    held: dict[int, str] = {}

    def choose(one: Client, number: int, turn: int, chance: random.Random) -> Call:
        leased = Leased(each_engine, one, target)
        proposed = f"{number:08x}-0000-4000-8000-{turn:012x}"
        kind = (*writes.kinds,)[(number + turn) % len(writes.kinds)]
        mine = held.get(number)
        calls: list[Take | GiveBack | GuardedWrite] = [Take(proposed), GuardedWrite(None, kind)]
        if mine is not None:
            calls = [GiveBack(mine), GuardedWrite(mine, kind), GuardedWrite(None, kind)]
        call = chance.choice(calls)

        def send() -> Hashable:
            match call:
                case Take(lease_id):
                    answer = leased.act("acquire", proposed_lease_id=lease_id, lease_duration=-1)
                    if answer.status == 201:
                        held[number] = lease_id
                case GiveBack(lease_id):
                    answer = leased.act("release", lease_id=lease_id)
                    if chance.randrange(2):
                        # Otherwise it continues to use an id that it no longer holds.
                        del held[number]
                case GuardedWrite(lease_id, name):
                    headers = {} if lease_id is None else {"x-ms-lease-id": lease_id}
                    answer = writes.kinds[name](one, target, headers)
            # The lease let it pass: a sealed blob is refused afterwards.
            passes = answer.status < 300 or answer.code == "BlobIsSealed"
            return DONE if passes else Refused(answer.code or "")

        return target, call, send

    history = play(client, choose)
    verdict = check(history, GuardedModel())
    assert verdict.linearizable, verdict.explain()
    answers = {operation.result for operation in history.operations()}
    assert {DONE, Refused("LeaseIdMissing"), Refused("LeaseAlreadyPresent")} <= answers


def test_of_a_lease_and_31_deletions_one_wins(each_engine: Running, place: Place) -> None:
    """B-LOP-01: what is leased is not deleted, and what is deleted is not leased."""
    client, container = place
    target = f"/{container}/b"
    with ConcurrentClients(client) as clients:
        for turn in range(scaled(12)):
            put(client, target)

            def act(one: Client, number: int, turn: int = turn) -> Answer:
                if number == turn % CLIENTS:
                    leased = Leased(each_engine, one, target)
                    return leased.act("acquire", lease_duration=-1)
                return one.delete(target)

            answers = clients.run(act)
            taken = answers.pop(turn % CLIENTS)
            seen = [(answer.status, answer.code) for answer in answers]
            if taken.status == 201:
                assert seen == [(412, "LeaseIdMissing")] * (CLIENTS - 1)
                expect(client.delete(target, {"x-ms-lease-id": taken["x-ms-lease-id"]}), 202)
            else:
                expect(taken, 404, "BlobNotFound")
                assert seen.count((202, None)) == 1
                assert seen.count((404, "BlobNotFound")) == CLIENTS - 2


# --- the models bite ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "pairs"),
    [
        (AppendModel(), [(Append(1), Appended(0, 1)), (Append(2), Appended(0, 2))]),
        (AppendModel(), [(Append(1), Appended(0, 1)), (ReadBlocks(), blocks(b""))]),
        (AppendModel(), [(Seal(), DONE), (Append(1), Appended(0, 1))]),
        (AppendModel(), [(Append(1, position=0), Refused("AppendPositionConditionNotMet"))]),
        (AppendModel(), [(Append(1, size_max=1), Appended(0, 1))]),
        (PageModel({"b": 1}), [(Increment(), Written(2, 1)), (Increment(), Written(3, 1))]),
        (
            PageModel({"b": 1}),
            [(WriteCells(0, 1, 7), Written(2, 0)), (ReadCells(), Cells(2, 0, NOTHING))],
        ),
        (PageModel({"b": 1}), [(WriteCells(0, 1, 7, number=1), Written(2, 0))]),
        (PageModel({"b": 1}), [(WriteCells(0, 1, 7, number=0), OUTDATED)]),
        (PageModel({"b": 1}), [(WriteCells(0, 1, 7, if_match=9), Written(2, 0))]),
        (GuardedModel(), [(Take("a"), DONE), (GuardedWrite(None, "any"), DONE)]),
        (GuardedModel(), [(Take("a"), DONE), (Take("b"), DONE)]),
        (GuardedModel(), [(GuardedWrite("a", "any"), DONE)]),
    ],
)
def test_a_history_that_is_wrong_is_refused(
    model: Model[Any], pairs: list[tuple[Hashable, Hashable]]
) -> None:
    """The models themselves: one answer after the other, of which the last is wrong."""
    history = History()
    for call, result in pairs:
        history.invoke("client", "b", call).returned(result)
    assert not check(history, model).linearizable
    before = History()
    for call, result in pairs[:-1]:
        before.invoke("client", "b", call).returned(result)
    assert check(before, model).linearizable
