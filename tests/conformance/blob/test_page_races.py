"""Page blobs under 32 clients at once: rules B-PAG-19, B-PAG-10, B-PAG-12."""

from __future__ import annotations

import random
import time

from tests.conformance.answer import expect
from tests.conformance.client import Client
from tests.conformance.concurrent_clients import CLIENTS, ConcurrentClients
from tests.conformance.pages import PAGE, create, send

NUMBER = "x-ms-blob-sequence-number"


def test_of_many_increments_none_is_lost(client: Client, container: str) -> None:
    """B-PAG-12, B-PAG-19."""
    target = f"/{container}/b"
    create(client, target, PAGE)

    def increment(one: Client, number: int) -> list[int]:
        headers = {"x-ms-sequence-number-action": "increment"}
        found = [one.put(f"{target}?comp=properties", headers) for _ in range(5)]
        return [int(expect(answer, 200)[NUMBER]) for answer in found]

    with ConcurrentClients(client) as clients:
        numbers = [number for found in clients.run(increment) for number in found]
    assert sorted(numbers) == list(range(1, 5 * CLIENTS + 1))


def test_each_number_has_one_winner_and_no_write_is_lost(client: Client, container: str) -> None:
    """B-PAG-10, B-PAG-19: a counter in a page, whose number says how often it was written."""
    target = f"/{container}/b"
    create(client, target, PAGE)
    until = time.monotonic() + 20

    def add(one: Client, number: int) -> int:
        """Take the number of this state, then write what follows from it."""
        done = 0
        while done < 3 and time.monotonic() < until:
            seen = expect(one.get(target), 200)
            data = int(seen.body[:8].hex(), 16) + 1
            update = {
                "x-ms-sequence-number-action": "increment",
                "If-Match": seen.etag,
            }
            taken = one.put(f"{target}?comp=properties", update)
            if taken.status == 412:
                continue
            mine = expect(taken, 200)
            page = data.to_bytes(8, "big") * (PAGE // 8)
            condition = {"x-ms-if-sequence-number-eq": mine[NUMBER], "If-Match": mine.etag}
            if send(one, target, 0, page, condition).status == 201:
                done += 1
        return done

    with ConcurrentClients(client, 8) as clients:
        done = sum(clients.run(add))
    assert done > 8
    found = client.get(target).body
    assert found == done.to_bytes(8, "big") * (PAGE // 8)


def test_of_many_writes_with_one_condition_one_wins(client: Client, container: str) -> None:
    """B-PAG-10, B-PAG-19."""
    target = f"/{container}/b"
    made = create(client, target, PAGE)

    def write(one: Client, number: int) -> int:
        data = bytes([number]) * PAGE
        return send(one, target, 0, data, {"If-Match": made.etag}).status

    with ConcurrentClients(client) as clients:
        statuses = clients.run(write)
    assert sorted(statuses) == [201] + [412] * (CLIENTS - 1)
    assert client.get(target).body == bytes([statuses.index(201)]) * PAGE


def test_overlapping_writes_leave_no_torn_page(client: Client, container: str) -> None:
    """B-PAG-19: each page is of one write, and what each read shows agrees with some order."""
    target, pages = f"/{container}/b", 200
    create(client, target, pages * PAGE)

    def write(one: Client, number: int) -> set[bytes]:
        chance, torn = random.Random(number), set()
        for turn in range(6):
            start = chance.randrange(pages - 8)
            count = chance.randrange(1, pages - start)
            mark = bytes([number, turn]) * (PAGE // 2)
            if number % 4:
                expect(send(one, target, start * PAGE, mark * count), 201)
            else:
                body = expect(one.get(target), 200).body
                torn |= {page for page in split(body) if page != page[:2] * (PAGE // 2)}
        return torn

    with ConcurrentClients(client) as clients:
        assert set().union(*clients.run(write)) == set()
    body = client.get(target).body
    assert all(page == page[:2] * (PAGE // 2) for page in split(body))


def test_a_write_of_many_pages_is_seen_whole_or_not_at_all(client: Client, container: str) -> None:
    """B-PAG-19: writers of the whole blob, and readers that must see one of them."""
    target, size = f"/{container}/b", 300 * 1024
    create(client, target, size)

    def act(one: Client, number: int) -> set[int]:
        kinds = set()
        for turn in range(4):
            if number % 2:
                mark = bytes([number * 4 + turn])
                expect(send(one, target, 0, mark * size), 201)
            else:
                kinds.add(len(set(expect(one.get(target), 200).body)))
        return kinds

    with ConcurrentClients(client, 16) as clients:
        assert set().union(*clients.run(act)) == {1}


def split(body: bytes) -> list[bytes]:
    return [body[start : start + PAGE] for start in range(0, len(body), PAGE)]
