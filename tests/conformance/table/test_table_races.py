"""Entities with many concurrent clients, on both engines: none is lost or torn, and a restart keeps
all."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.answer import Answer
from tests.conformance.client import Client
from tests.conformance.concurrent_clients import CLIENTS, ConcurrentClients
from tests.conformance.running import Running
from tests.conformance.table_client import (
    JSON_SENT,
    TableClient,
    entity,
    expect_json,
    insert,
    query,
)

TARGET = entity("Races", "p", "r")
ANY = {**JSON_SENT, "If-Match": "*"}


@pytest.fixture
def races(each_engine: Running) -> Iterator[TableClient]:
    """A client of an account that has one table, `Races`."""
    client = each_engine.table_account()
    expect_json(client.post("/Tables", {"TableName": "Races"}), 201)
    yield client
    client.close()


def send(client: Client, method: str, headers: dict[str, str], document: object = None) -> Answer:
    body = b"" if document is None else json.dumps(document).encode()
    return client.send(method, TARGET, headers, body)


def get(client: Client) -> Any:
    return expect_json(client.get(TARGET), 200)


def codes(answers: list[Answer]) -> Counter[tuple[int, str | None]]:
    """Return how often each answer was given."""
    return Counter((answer.status, answer.code) for answer in answers)


UNMET = (412, "UpdateConditionNotSatisfied")


@pytest.mark.parametrize("method", ["PUT", "MERGE", "DELETE"])
def test_one_of_32_writers_with_one_tag_wins(races: TableClient, method: str) -> None:
    """T-WRI-09."""
    insert(races, "Races", {"PartitionKey": "p", "RowKey": "r", "N": -1})
    tag = races.get(TARGET)["ETag"]

    def write(one: Client, number: int) -> Answer:
        document = None if method == "DELETE" else {"N": number}
        return send(one, method, {**JSON_SENT, "If-Match": tag}, document)

    with ConcurrentClients(races) as clients:
        answers = clients.run(write)
    if method == "DELETE":
        missing = codes(answers)[(404, "ResourceNotFound")]
        assert codes(answers)[(204, None)] == 1
        assert codes(answers)[UNMET] + missing == CLIENTS - 1
        return
    assert codes(answers) == {(204, None): 1, UNMET: CLIENTS - 1}
    (winner,) = (n for n, answer in enumerate(answers) if answer.status == 204)
    found = get(races)
    assert (found["N"], found["odata.etag"]) == (winner, answers[winner]["ETag"])


def test_one_of_32_creators_wins(races: TableClient) -> None:
    """T-WRI-09."""

    def create(one: Client, number: int) -> Answer:
        document = {"PartitionKey": "p", "RowKey": "r", "N": number}
        return one.send("POST", "/Races", JSON_SENT, json.dumps(document).encode())

    with ConcurrentClients(races) as clients:
        answers = clients.run(create)
    assert codes(answers) == {(201, None): 1, (409, "EntityAlreadyExists"): CLIENTS - 1}
    (winner,) = (n for n, answer in enumerate(answers) if answer.status == 201)
    assert get(races)["N"] == winner


def test_one_of_32_creators_of_a_table_wins(races: TableClient) -> None:
    """T-TAB-01."""

    def create(one: Client, number: int) -> Answer:
        name = "Wanted".swapcase() if number % 2 else "Wanted"
        return one.send("POST", "/Tables", JSON_SENT, json.dumps({"TableName": name}).encode())

    with ConcurrentClients(races) as clients:
        answers = clients.run(create)
    assert codes(answers) == {(201, None): 1, (409, "TableAlreadyExists"): CLIENTS - 1}


def test_a_counter_under_optimistic_control_loses_nothing(races: TableClient) -> None:
    """T-WRI-06, T-WRI-09."""
    insert(races, "Races", {"PartitionKey": "p", "RowKey": "r", "N": 0})

    def add(one: Client, number: int) -> None:
        for _ in range(500):
            found = get(one)
            headers = {**JSON_SENT, "If-Match": found["odata.etag"]}
            answer = send(one, "MERGE", headers, {"N": found["N"] + 1})
            if answer.status == 204:
                return
            assert (answer.status, answer.code) == UNMET
        raise AssertionError("never a turn")

    with ConcurrentClients(races, 16) as clients:
        for _ in range(3):
            clients.run(add)
    assert get(races)["N"] == 48


@pytest.mark.parametrize("large", [False, True], ids=["small", "large"])
def test_merges_at_the_same_time_lose_nothing_of_each_other(
    races: TableClient, large: bool
) -> None:
    """T-WRI-10."""
    start = {f"L{n}": "x" * 30_000 for n in range(3)} if large else {}
    insert(races, "Races", {"PartitionKey": "p", "RowKey": "r", **start})

    def merge(one: Client, number: int) -> Answer:
        headers = ANY if number % 2 else JSON_SENT
        # Half of them make the entity larger, so the number of its records changes.
        value = "y" * 5_000 if large and number % 4 == 0 else number
        return send(one, "MERGE", headers, {f"P{number}": value})

    with ConcurrentClients(races) as clients:
        answers = clients.run(merge)
    assert codes(answers) == {(204, None): CLIENTS}
    found = get(races)
    assert {name for name in found if name[0] == "P" and name[1:].isdigit()} == {
        f"P{number}" for number in range(CLIENTS)
    }
    assert all(found[name] == value for name, value in start.items())
    tags = [answer["ETag"] for answer in answers]
    assert len(set(tags)) == CLIENTS and max(tags) == found["odata.etag"]


def test_a_reader_never_sees_half_of_a_write(races: TableClient) -> None:
    """T-WRI-10."""

    def document(number: int) -> dict[str, object]:
        # From one record to several, and back.
        count = (1, 3, 9)[number % 3]
        return {"N": number, **{f"P{n}": f"{number:08}" * 3_000 for n in range(count)}}

    send(races, "PUT", JSON_SENT, document(0))
    done = threading.Event()

    def act(one: Client, number: int) -> int:
        if number < 2:
            try:
                for turn in range(1, 25):
                    answer = send(one, "PUT", JSON_SENT, document(turn * 2 + number))
                    assert answer.status == 204
            finally:
                done.set()
            return 0
        seen = 0
        while not done.is_set() or seen == 0:
            targets = (TARGET, query("Races"), query("Races", filter="N ge 0"))
            found = expect_json(one.get(targets[seen % 3]), 200)
            (row,) = found.get("value", [found])
            wanted = document(row["N"])
            assert {name: row[name] for name in row if name in wanted} == wanted
            assert sum(name.startswith("P") and name[1:].isdigit() for name in row) == (
                len(wanted) - 1
            )
            seen += 1
        return seen

    with ConcurrentClients(races, 6) as clients:
        seen = clients.run(act)
    assert all(count > 0 for count in seen[2:])


def test_timestamps_rise_over_all_writes(races: TableClient) -> None:
    """T-WRI-07."""
    tags: list[str] = []
    for number in range(20):
        for method, headers in (("PUT", JSON_SENT), ("MERGE", ANY)):
            answer = send(races, method, headers, {"N": number})
            tags.append(answer["ETag"])
            found = get(races)
            moment = found["Timestamp"]
            assert answer["ETag"] == f"W/\"datetime'{moment.replace(':', '%3A')}'\""
    assert tags == sorted(set(tags))


def test_a_restart_keeps_tables_entities_and_the_order_of_tags(tmp_path: Path) -> None:
    """T-WRI-07, T-TAB-08."""
    running = Running(tmp_path / "data")
    client = running.tables()
    expect_json(client.post("/Tables", {"TableName": "Races"}), 201)
    large = {f"P{n}": "x" * 30_000 for n in range(12)}
    insert(client, "Races", {"PartitionKey": "p", "RowKey": "r", **large})
    policies = (
        b"<SignedIdentifiers><SignedIdentifier><Id>a</Id></SignedIdentifier></SignedIdentifiers>"
    )
    assert client.put("/Races?comp=acl", (), policies).status == 204
    before = get(client)
    client.close()
    running.stop()
    running = Running(tmp_path / "data")
    client = running.tables()
    after = get(client)
    # The port is another one.
    assert after | {"odata.metadata": ""} == before | {"odata.metadata": ""}
    assert b"<Id>a</Id>" in client.get("/Races?comp=acl").body
    stale = {**JSON_SENT, "If-Match": before["odata.etag"]}
    later = send(client, "MERGE", stale, {"N": 1})
    assert later.status == 204 and later["ETag"] > before["odata.etag"]
    assert send(client, "MERGE", stale, {"N": 2}).code == UNMET[1]
    client.close()
    running.stop()


def test_text_of_any_characters_comes_back(races: TableClient) -> None:
    """T-VAL-07."""
    text = "".join(map(chr, [*range(0x100), 0x20AC, 0xFFFE, 0xFFFF, 0x1F600, 0x10FFFF]))
    document = {"PartitionKey": "p", "RowKey": "r", "T": text, "Ünï": text[::-1], "_": "\u2028"}
    insert(races, "Races", document)
    found = get(races)
    assert {name: found[name] for name in document} == document
    page = expect_json(races.get(query("Races", filter="Ünï gt ''", select="Ünï,T")), 200)
    assert [(row["T"], row["Ünï"]) for row in page["value"]] == [(text, text[::-1])]
    for half in (b'"\\ud800"', b'"x\\udfffx"'):
        body = b'{"T":' + half + b"}"
        expect_json(races.send("PUT", TARGET, JSON_SENT, body), 400, "InvalidInput")
