"""Histories of 32 concurrent clients on entities, recorded over real connections and checked for
linearizability, on both engines: T-WRI-08, T-WRI-09, T-BAT-02, T-QRY-11.

An entity is a register with compare-and-swap, as a blob is: the model is the same, in a blob's
statuses.
"""

from __future__ import annotations

import json
import random
from collections.abc import Hashable, Iterator

import pytest

from strongroom.testing.history import History, check
from strongroom.testing.models import (
    BlobModel,
    DeleteContent,
    DeleteIfMatch,
    GetContent,
    Observation,
    Put,
    PutIfAbsent,
    PutIfMatch,
)
from tests.conformance.answer import Answer as Sent
from tests.conformance.concurrency.test_histories import next_call
from tests.conformance.concurrent_clients import ConcurrentClients
from tests.conformance.running import Running
from tests.conformance.table_client import JSON_SENT, TableClient, entity, expect_json, query
from tests.conformance.transactions import Change
from tests.conformance.transactions import send as send_batch

OPERATIONS = 20
ROWS = ("a", "b", "c")


@pytest.fixture(params=["memory", "embedded"])
def place(
    request: pytest.FixtureRequest, server: Running, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TableClient]:
    """A client of an account of its own, with the table `Seen`, on a server of each engine."""
    is_shared = request.param == "memory"
    running = server if is_shared else Running(tmp_path_factory.mktemp("histories") / "data")
    client = running.table_account()
    expect_json(client.post("/Tables", {"TableName": "Seen"}), 201)
    yield client
    client.close()
    if not is_shared:
        running.stop()


def as_blob(sent: Sent, call: Hashable) -> int:
    """The status that a blob would have answered with."""
    match call, sent.status:
        case (PutIfMatch(), 404):
            return 412
        case (Put() | PutIfMatch(), 204):
            return 201
        case (DeleteContent() | DeleteIfMatch(), 204):
            return 202
        case _:
            return sent.status


def send(client: TableClient, row: str, call: Hashable) -> Observation:
    """One call on an entity, and what the client saw."""
    target = entity("Seen", "p", row)
    match call:
        case GetContent():
            sent = client.get(target, JSON_SENT)
            content = json.loads(sent.body)["N"] if sent.status == 200 else None
            return Observation(sent.status, sent.get("ETag"), content)
        case Put(content):
            sent = client.put(target, JSON_SENT, json.dumps({"N": content}).encode())
        case PutIfMatch(content, etag):
            fields = {**JSON_SENT, "If-Match": etag}
            sent = client.put(target, fields, json.dumps({"N": content}).encode())
        case PutIfAbsent(content):
            document = {"PartitionKey": "p", "RowKey": row, "N": content}
            sent = client.post("/Seen", document)
        case DeleteContent():
            sent = client.delete(target, {"If-Match": "*"})
        case DeleteIfMatch(etag):
            sent = client.delete(target, {"If-Match": etag})
        case _:
            raise TypeError(call)
    return Observation(as_blob(sent, call), sent.get("ETag"))


@pytest.mark.parametrize("seed", range(2))
def test_entities_are_linearizable(place: TableClient, seed: int) -> None:
    """T-WRI-08, T-WRI-09: one order explains every answer of 32 clients."""
    history = History()

    def act(one: TableClient, number: int) -> int:
        chance = random.Random(seed * 1000 + number)
        etags: dict[str, str] = {}
        answered = 0
        for index in range(OPERATIONS):
            row = chance.choice(ROWS)
            call = next_call(chance, number * 1000 + index, etags.get(row))
            record = history.invoke(f"client {number}", row, call)
            result = send(one, row, call)
            record.returned(result)
            answered += result.status < 300
            if result.etag is not None:
                etags[row] = result.etag
        return answered

    with ConcurrentClients(place) as clients:
        successes = sum(clients.run(act))  # type: ignore[arg-type]  # act may count
    assert len(history.operations()) == 32 * OPERATIONS
    assert successes > OPERATIONS
    verdict = check(history, BlobModel())
    assert verdict.linearizable, verdict.explain()


def write_all(client: TableClient, value: int) -> Observation:
    """One batch that gives all entities of the partition the same value."""
    changes = [Change("PUT", entity("Seen", "p", row), {"N": value}) for row in ROWS]
    sent = send_batch(client, *changes)
    assert [part.status for part in sent] == [204] * len(ROWS)
    (etag,) = {part.headers["ETag"] for part in sent}
    return Observation(201, etag)


def read_all(client: TableClient) -> Observation:
    """One query over the partition: never a part of a batch."""
    found = expect_json(client.get(query("Seen", filter="PartitionKey eq 'p'"), JSON_SENT), 200)
    seen = {(one["N"], one["odata.etag"]) for one in found["value"]}
    assert len(found["value"]) == len(ROWS)
    assert len(seen) == 1, f"half of a batch was seen: {seen}"
    ((value, etag),) = seen
    return Observation(200, etag, value)


def test_a_partition_that_batches_write_is_one_register(place: TableClient) -> None:
    """T-BAT-02, T-QRY-11: the partition as a whole, with batches and queries, is linearizable."""
    history = History()
    record = history.invoke("first", "p", Put(0))
    record.returned(write_all(place, 0))

    def act(one: TableClient, number: int) -> int:
        chance = random.Random(number)
        for index in range(OPERATIONS):
            call: Hashable = (
                GetContent() if chance.random() < 0.6 else Put(number * 1000 + index + 1)
            )
            record = history.invoke(f"client {number}", "p", call)
            match call:
                case Put(int(value)):
                    record.returned(write_all(one, value))
                case _:
                    record.returned(read_all(one))
        return OPERATIONS

    with ConcurrentClients(place) as clients:
        clients.run(act)  # type: ignore[arg-type]  # act may count
    verdict = check(history, BlobModel())
    assert verdict.linearizable, verdict.explain()


def test_a_history_of_entities_that_is_wrong_is_refused() -> None:
    """The check bites: a read that sees what an earlier read had left behind."""
    history = History()
    history.invoke("one", "a", Put(1)).returned(Observation(201, "first"))
    history.invoke("one", "a", Put(2)).returned(Observation(201, "second"))
    history.invoke("two", "a", GetContent()).returned(Observation(200, "second", 2))
    history.invoke("two", "a", GetContent()).returned(Observation(200, "first", 1))
    assert not check(history, BlobModel()).linearizable
