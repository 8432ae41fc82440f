"""Histories of clients of entities, and of a partition with transactions, while servers are killed.

An entity is a register with compare-and-swap, like a blob, and has the same model (see
tests/conformance/table/test_table_histories.py). The same holds for a partition whose entities
are always written together. Used by the short test here and the long one in tests/proof.
"""

from __future__ import annotations

import json
import random
from collections.abc import Hashable

from strongroom.testing.history import History, Verdict, check
from strongroom.testing.models import BlobModel, GetContent, Observation, Put, PutIfMatch
from tests.conformance.concurrency.test_histories import next_call
from tests.conformance.table.test_table_histories import send
from tests.conformance.table_client import JSON_SENT, expect_json, query
from tests.conformance.table_client import entity as entity_target
from tests.conformance.transactions import Change
from tests.conformance.transactions import send as send_batch
from tests.durability.crashes import LOST, Crashes, OnceTables, while_crashing

TABLE = "Seen"
TOGETHER = ("a", "b", "c")


def make_table(crashes: Crashes) -> None:
    """Create the table of both histories."""
    expect_json(crashes.tables().post("/Tables", {"TableName": TABLE}), 201)


def entities(crashes: Crashes, clients: int, steps: int, kills: int, seed: int) -> Verdict:
    """Return the verdict on a history of writes of single entities."""
    history = History()
    chances = [random.Random(seed * 1000 + number) for number in range(clients)]
    etags: list[dict[str, str]] = [{} for _ in range(clients)]
    rows = [f"{seed}-{row}" for row in range(max(2, clients // 4))]

    def act(client: OnceTables, number: int) -> None:
        row = chances[number].choice(rows)
        content = len(history.operations())
        call = next_call(chances[number], number * 1_000_000 + content, etags[number].get(row))
        record = history.invoke(f"client {number}", row, call)
        try:
            result = send(client, row, call)
        except LOST as error:
            record.unknown()
            crashes.after_loss(error)
            return
        record.returned(result)
        if result.etag is not None:
            etags[number][row] = result.etag

    _work(crashes, clients, steps, kills, seed, act)
    return check(history, BlobModel())


def transactions(crashes: Crashes, clients: int, steps: int, kills: int, seed: int) -> Verdict:
    """Return the verdict on a history of transactions and queries of a whole partition.

    No query may show half of a transaction, even after a kill.
    """
    history = History()
    chances = [random.Random(seed * 1000 + number) for number in range(clients)]
    etags: dict[int, str] = {}
    partition = f"p{seed}"
    _record(history, crashes.tables(), -1, partition, Put(-1))

    def act(client: OnceTables, number: int) -> None:
        chance, value = chances[number], number * 1_000_000 + len(history.operations())
        call: Hashable = GetContent()
        if chance.random() < 0.5:
            etag = etags.get(number)
            call = Put(value) if etag is None or chance.random() < 0.3 else PutIfMatch(value, etag)
        try:
            result = _record(history, client, number, partition, call)
        except LOST as error:
            crashes.after_loss(error)
            return
        if result.etag is not None:
            etags[number] = result.etag

    _work(crashes, clients, steps, kills, seed, act)
    return check(history, BlobModel())


def _work(
    crashes: Crashes,
    clients: int,
    steps: int,
    kills: int,
    seed: int,
    act: object,
) -> None:
    assert callable(act)
    made = [crashes.tables() for _ in range(clients)]
    done = while_crashing(crashes, kills, made, act, steps, random.Random(seed))
    assert done == clients * steps


def _record(
    history: History, client: OnceTables, number: int, partition: str, call: Hashable
) -> Observation:
    record = history.invoke(f"client {number}", partition, call)
    try:
        result = _read(client, partition) if isinstance(call, GetContent) else _write(
            client, partition, call
        )  # fmt: skip
    except LOST:
        record.unknown()
        raise
    record.returned(result)
    return result


def _write(client: OnceTables, partition: str, call: Hashable) -> Observation:
    """Send a transaction that gives all entities one value, if the middle entity is unchanged."""
    assert isinstance(call, Put | PutIfMatch)
    etag = call.etag if isinstance(call, PutIfMatch) else None
    changes = [
        Change(
            "PUT",
            entity_target(TABLE, partition, row),
            {"N": call.content, "Long": "x" * (number * 15_000)},
            (("If-Match", etag),) if etag is not None and number == 1 else (),
        )
        for number, row in enumerate(TOGETHER)
    ]
    sent = send_batch(client, *changes)
    if sent[0].status == 412:
        assert sent[0].message.startswith("1:")
        return Observation(412)
    assert [part.status for part in sent] == [204] * len(TOGETHER), sent
    (found,) = {part.headers["ETag"] for part in sent}
    return Observation(201, found)


def _read(client: OnceTables, partition: str) -> Observation:
    """One query over the partition."""
    target = query(TABLE, filter=f"PartitionKey eq '{partition}'", select="N")
    found = expect_json(client.get(target, JSON_SENT), 200)["value"]
    if not found:
        return Observation(404)
    seen = {(one["N"], one["odata.etag"]) for one in found}
    assert len(found) == len(TOGETHER) and len(seen) == 1, f"half of a batch was seen: {found}"
    ((value, etag),) = seen
    return Observation(200, etag, value)


def explained(verdict: Verdict) -> bool:
    """Whether the history is linearizable, for assertions; fail with the reason if not."""
    assert verdict.linearizable, verdict.explain()
    return json.dumps(verdict.objects) != "0"
