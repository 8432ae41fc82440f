"""Get Messages with x-strongroom-wait: a long poll instead of an empty answer."""

from __future__ import annotations

import time
from concurrent.futures import Future

from tests.conformance.answer import Answer, expect, expect_names
from tests.conformance.client import Client, Credential
from tests.conformance.messages import get, messages, put, target, update
from tests.conformance.running import Running


def wait(client: Client, queue: str, seconds: int = 20, **parameters: object) -> Future[Answer]:
    """Ask, and give the request time to arrive."""
    waiting = client.start("GET", target(queue, **parameters), {"x-strongroom-wait": str(seconds)})
    time.sleep(0.15)
    return waiting


def test_a_message_ends_the_wait(server: Running, queues: Client, queue: str) -> None:
    """Q-GET-08: one that is put, one that becomes visible again, one that is updated."""
    waiting = wait(queues, queue, visibilitytimeout=50)
    assert not waiting.done()
    put(queues, queue, "one")
    (got,) = messages(expect(waiting.result(20), 200))
    assert (got.text, got.count) == ("one", 1)
    waiting = wait(queues, queue, visibilitytimeout=50)
    assert not waiting.done()
    server.advance(51)
    (got,) = messages(expect(waiting.result(20), 200))
    assert got.count == 2
    waiting = wait(queues, queue)
    expect(update(queues, queue, got), 204)
    (got,) = messages(expect(waiting.result(20), 200))
    assert got.count == 3


def test_a_wait_ends_empty_when_the_time_is_up(queues: Client, queue: str) -> None:
    """Q-GET-08."""
    assert get(queues, queue, {"x-strongroom-wait": "1"}) == []


def test_who_waits_first_is_served_first(queues: Client, queue: str) -> None:
    """Q-GET-08."""
    waiting = [wait(queues, queue) for _ in range(5)]
    for number in range(5):
        put(queues, queue, str(number))
    found = [messages(expect(one.result(20), 200)) for one in waiting]
    assert [[message.text for message in one] for one in found] == [[str(n)] for n in range(5)]


def test_a_queue_that_goes_ends_the_wait(queues: Client, queue: str) -> None:
    """Q-GET-08."""
    waiting = wait(queues, queue)
    expect(queues.delete(f"/{queue}"), 204)
    expect(waiting.result(20), 404, "QueueNotFound")


def test_who_waits_with_a_key_that_is_removed(server: Running) -> None:
    """B-WAI-10: the request is authorized again, and takes no message."""
    queues = server.queue_account()
    expect(queues.put("/queue"), 201)
    waiting = [wait(queues, "queue") for _ in range(2)]
    other = "b3RoZXI="
    server.set_keys(queues.account, other)
    owner = Client(server.queue_port, Credential(queues.account, other))
    put(owner, "queue", "kept")
    for one in waiting:
        expect(one.result(20), 403, "AuthenticationFailed")
    assert [message.text for message in get(owner, "queue")] == ["kept"]
    owner.close()
    queues.close()


def test_a_client_that_has_gone_takes_nothing(queues: Client, queue: str) -> None:
    """Q-GET-07: a message is not given to a disconnected client."""
    gone = queues.begin("GET", target(queue), {"x-strongroom-wait": "20"}, 0)
    time.sleep(0.15)
    gone.abandon()
    time.sleep(0.15)
    put(queues, queue, "kept")
    assert [message.text for message in get(queues, queue)] == ["kept"]


def test_waiting_is_for_get_messages(queues: Client, queue: str) -> None:
    """Q-GET-08: other operations refuse the header."""
    header = {"x-strongroom-wait": "5"}
    answer = queues.get(target(queue, peekonly="true"), header)
    expect_names(answer, 400, "UnsupportedHeader", "x-strongroom-wait")
    for bad in ("0", "61", "x"):
        answer = queues.get(target(queue), {"x-strongroom-wait": bad})
        expect_names(answer, 400, "InvalidHeaderValue", "x-strongroom-wait")
