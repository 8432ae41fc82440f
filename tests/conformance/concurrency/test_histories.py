"""Histories of 32 concurrent clients, recorded over real connections and checked for
linearizability, on both engines: B-CWR-01, B-CWR-03, B-CWR-10, B-LSE-22."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterator

import pytest

from strongroom.testing.history import History, check
from strongroom.testing.models import (
    Acquire,
    BlobModel,
    DeleteContent,
    DeleteIfMatch,
    GetContent,
    LeaseAnswer,
    LeaseModel,
    Observation,
    Put,
    PutIfAbsent,
    PutIfMatch,
    Release,
    Renew,
)
from tests.conformance.answer import expect
from tests.conformance.blobs import put
from tests.conformance.client import PUT_BLOB, Client
from tests.conformance.concurrent_clients import ConcurrentClients
from tests.conformance.leasing import Leased
from tests.conformance.running import Running

OPERATIONS = 24


@pytest.fixture(params=["memory", "embedded"])
def place(
    request: pytest.FixtureRequest,
    server: Running,
    tmp_path_factory: pytest.TempPathFactory,
    new_name: Callable[[], str],
) -> Iterator[tuple[Running, Client, str]]:
    """A server of each engine, a client of it, and a new container."""
    is_shared = request.param == "memory"
    running = server if is_shared else Running(tmp_path_factory.mktemp("histories") / "data")
    client = running.client()
    name = new_name()
    expect(client.put(f"/{name}?restype=container"), 201)
    yield running, client, name
    client.close()
    if not is_shared:
        running.stop()


def send(client: Client, target: str, call: Hashable) -> Observation:
    """One call on a blob, and what the client saw."""
    match call:
        case GetContent():
            answer = client.get(target)
            content = int(answer.body) if answer.status == 200 else None
            return Observation(answer.status, answer.get("ETag"), content)
        case Put(content):
            answer = client.put(target, PUT_BLOB, str(content).encode())
        case PutIfMatch(content, etag):
            answer = client.put(target, {**PUT_BLOB, "If-Match": etag}, str(content).encode())
        case PutIfAbsent(content):
            answer = client.put(target, {**PUT_BLOB, "If-None-Match": "*"}, str(content).encode())
        case DeleteContent():
            answer = client.delete(target)
        case DeleteIfMatch(etag):
            answer = client.delete(target, {"If-Match": etag})
        case _:
            raise TypeError(call)
    return Observation(answer.status, answer.get("ETag"))


def next_call(chance: random.Random, content: int, etag: str | None) -> Hashable:
    """Return a client's next call; `etag` is the last one that it received."""
    kinds: list[Hashable] = [GetContent(), GetContent(), Put(content), PutIfAbsent(content)]
    if etag is not None:
        kinds += [PutIfMatch(content, etag)] * 3 + [DeleteIfMatch(etag)]
    if not chance.randrange(8):
        kinds.append(DeleteContent())
    return chance.choice(kinds)


@pytest.mark.parametrize("seed", range(2))
def test_blobs_are_linearizable(place: tuple[Running, Client, str], seed: int) -> None:
    """B-CWR-01 B-CWR-03 B-CWR-10: one order explains every answer of 32 clients."""
    _, client, container = place
    history = History()

    def act(one: Client, number: int) -> int:
        chance = random.Random(seed * 1000 + number)
        etags: dict[str, str] = {}
        answered = 0
        for index in range(OPERATIONS):
            target = f"/{container}/b{chance.randrange(3)}"
            call = next_call(chance, number * 1000 + index, etags.get(target))
            record = history.invoke(f"client {number}", target, call)
            result = send(one, target, call)
            record.returned(result)
            answered += result.status < 300
            if result.etag is not None:
                etags[target] = result.etag
        return answered

    with ConcurrentClients(client) as clients:
        successes = sum(clients.run(act))
    operations = history.operations()
    assert len(operations) == 32 * OPERATIONS
    assert successes > OPERATIONS
    verdict = check(history, BlobModel())
    assert verdict.linearizable, verdict.explain()


def test_leases_are_linearizable(place: tuple[Running, Client, str]) -> None:
    """B-LSE-22: at most one id holds a lease, and only that id keeps it or gives it back."""
    server, client, container = place
    for name in "ab":
        put(client, f"/{container}/{name}")
    history = History()

    def act(one: Client, number: int) -> int:
        chance = random.Random(number)
        held: dict[str, str] = {}
        acquired = 0
        for index in range(OPERATIONS):
            target = f"/{container}/{chance.choice('ab')}"
            leased = Leased(server, one, target)
            lease_id = held.get(target)
            proposed = f"{number:08x}-0000-4000-8000-{index:012x}"
            call: Hashable = Acquire(proposed)
            if lease_id is not None:
                call = Renew(lease_id) if chance.randrange(2) else Release(lease_id)
            record = history.invoke(f"client {number}", target, call)
            match call:
                case Acquire():
                    answer = leased.act("acquire", proposed_lease_id=proposed, lease_duration=-1)
                    record.returned(LeaseAnswer(answer.status, answer.get("x-ms-lease-id")))
                    if answer.status == 201:
                        held[target] = proposed
                        acquired += 1
                case Renew(lease_id):
                    record.returned(LeaseAnswer(leased.act("renew", lease_id=lease_id).status))
                case Release(lease_id):
                    record.returned(LeaseAnswer(leased.act("release", lease_id=lease_id).status))
                    del held[target]
        return acquired

    with ConcurrentClients(client) as clients:
        assert sum(clients.run(act)) > 2
    verdict = check(history, LeaseModel())
    assert verdict.linearizable, verdict.explain()


def test_a_history_that_is_wrong_is_refused() -> None:
    """The check itself: two writers with one ETag cannot both win."""
    history = History()
    for content, etag in ((1, "a"), (2, "b")):
        history.invoke("client", "b", PutIfMatch(content, "first")).returned(Observation(201, etag))
    assert not check(history, BlobModel("first", 0)).linearizable
