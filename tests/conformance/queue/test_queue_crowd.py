"""64 consumers and 8 producers at once: one holder per message, no loss, exact counts."""

from __future__ import annotations

import itertools
import threading

from tests.conformance.client import Client
from tests.conformance.concurrent_clients import ConcurrentClients
from tests.conformance.messages import Message, count, delete, get, put
from tests.conformance.running import Running

PRODUCERS, CONSUMERS = 8, 64
EACH = 25


def test_each_message_has_one_consumer(each_engine: Running) -> None:
    """Q-GET-07: no client gets a message that another holds; nothing is lost; counts are exact."""
    running = each_engine
    client = running.queues()
    queue = "crowd"
    assert client.put(f"/{queue}").status == 201
    put_ids: list[str] = []
    seen: dict[str, list[int]] = {}
    deleted: list[str] = []
    lock = threading.Lock()
    done = threading.Event()
    producing = itertools.count(1)

    def consume(one: Client, number: int) -> None:
        # Every third is a failure: it takes the message and is never heard of again.
        while True:
            wait = {"x-strongroom-wait": "1"} if number % 2 else ()
            found = get(one, queue, wait, numofmessages=1 + number % 5, visibilitytimeout=600)
            for message in found:
                work(one, number, message)
            if not found and done.is_set():
                return

    def work(one: Client, number: int, message: Message) -> None:
        assert message.count is not None
        with lock:
            seen.setdefault(message.id, []).append(message.count)
        if number % 3:
            assert delete(one, queue, message).status == 204
            with lock:
                deleted.append(message.id)

    def act(one: Client, number: int) -> None:
        if number >= PRODUCERS:
            consume(one, number)
            return
        for index in range(EACH):
            made = put(one, queue, f"{number}/{index}")
            with lock:
                put_ids.append(made.id)
        if next(producing) == PRODUCERS:
            done.set()

    with ConcurrentClients(client, PRODUCERS + CONSUMERS) as clients:
        clients.run(act)
    assert len(put_ids) == len(set(put_ids)) == PRODUCERS * EACH
    assert set(seen) == set(put_ids)
    assert all(counts == [1] for counts in seen.values())
    assert len(deleted) == len(set(deleted))
    held = set(put_ids) - set(deleted)
    assert count(client, queue) == len(held)
    running.advance(601)
    again: list[Message] = []
    while found := get(client, queue, numofmessages=32):
        again += found
    assert sorted(message.id for message in again) == sorted(held)
    assert all(message.count == 2 for message in again)
    client.delete(f"/{queue}")
    client.close()
