"""Histories of 32 concurrent clients of one queue, checked message by message on both engines. A
message is put once, held by one client at a time, counted exactly, and permanently deleted."""

from __future__ import annotations

import itertools
import random
from collections.abc import Hashable

import pytest

from strongroom.testing.histories.queue_model import (
    DeleteStep,
    GetStep,
    Got,
    MessageModel,
    PutStep,
    QueueHistory,
    UpdateStep,
)
from strongroom.testing.history import check
from tests.conformance.answer import expect
from tests.conformance.client import Client
from tests.conformance.concurrent_clients import ConcurrentClients
from tests.conformance.messages import Message, delete, get, put, update
from tests.conformance.running import Running

OPERATIONS = 30
HIDDEN_S = 600
_numbers = itertools.count(1)


class Actor:
    """One client: what it holds, and what it does next."""

    def __init__(self, history: QueueHistory, queue: str, client: Client, number: int) -> None:
        self._history = history
        self._queue = queue
        self._client = client
        self._name = f"client {number}"
        self._chance = random.Random(number)
        self._held: list[Message] = []

    def act(self) -> None:
        """One random operation, recorded."""
        verbs = [self.put, self.get, self.get]
        if self._held:
            verbs += [self.delete, self.update]
        self._chance.choice(verbs)()

    def put(self) -> None:
        begun = self._history.begin()
        made = put(self._client, self._queue)
        self._end(begun, {made.id: (PutStep(), made.receipt)})
        if not self._chance.randrange(3):
            # The first receipt is valid too, until a client gets the message.
            self._held.append(made)

    def get(self) -> None:
        begun = self._history.begin()
        wanted = self._chance.randrange(1, 5)
        found = get(self._client, self._queue, numofmessages=wanted, visibilitytimeout=HIDDEN_S)
        self._end(
            begun,
            {one.id: (GetStep(), Got(one.receipt or "", one.count or 0)) for one in found},
        )
        self._held += found

    def delete(self) -> None:
        message = self._pick()
        begun = self._history.begin()
        answer = delete(self._client, self._queue, message)
        assert answer.status in (204, 404), answer
        call = DeleteStep(message.receipt or "")
        self._end(begun, {message.id: (call, answer.status == 204)})

    def update(self) -> None:
        message = self._pick()
        begun = self._history.begin()
        answer = update(self._client, self._queue, message, seconds=0)
        assert answer.status in (204, 404), answer
        call = UpdateStep(message.receipt or "")
        self._end(begun, {message.id: (call, answer.get("x-ms-popreceipt"))})

    def _pick(self) -> Message:
        # One that is used up may be used again: it must be refused then.
        chosen = self._chance.randrange(len(self._held))
        return self._held[chosen] if not self._chance.randrange(4) else self._held.pop(chosen)

    def _end(self, begun: int, seen: dict[str, tuple[Hashable, Hashable]]) -> None:
        self._history.end(self._name, begun, seen)


def test_messages_are_received_once_within_their_visibility(each_engine: Running) -> None:
    """Q-GET-07, Q-POP-02: one order explains every answer of 32 clients, message by message."""
    running = each_engine
    client = running.queues()
    queue = f"histories-{next(_numbers)}"
    expect(client.put(f"/{queue}"), 201)
    history = QueueHistory()

    def act(one: Client, number: int) -> None:
        actor = Actor(history, queue, one, number)
        for index in range(OPERATIONS):
            actor.act()
            if number == 0 and index % 10 == 9:
                begun = history.begin()
                running.advance(HIDDEN_S + 1)
                history.time_passed("clock", begun)

    with ConcurrentClients(client) as clients:
        clients.run(act)
    operations = history.operations()
    calls = [operation.call for operation in operations]
    for kind, least in ((PutStep, 100), (GetStep, 100), (DeleteStep, 30)):
        assert sum(isinstance(call, kind) for call in calls) > least, kind
    verdict = check(operations, MessageModel())
    assert verdict.linearizable, verdict.explain()
    client.close()


@pytest.mark.parametrize(
    "wrong",
    [
        # Two hold it at once.
        [(GetStep(), Got("a", 1)), (GetStep(), Got("b", 2))],
        # The count stands still.
        [(GetStep(), Got("a", 1)), (UpdateStep("a"), "b"), (GetStep(), Got("c", 1))],
        # A receipt outlives the next one.
        [(GetStep(), Got("a", 1)), (UpdateStep("a"), "b"), (DeleteStep("a"), True)],
        # A receipt that holds is refused.
        [(GetStep(), Got("a", 1)), (DeleteStep("a"), False)],
        # It comes back.
        [(DeleteStep("put"), True), (GetStep(), Got("a", 1))],
        # The same receipt twice.
        [(GetStep(), Got("put", 1))],
    ],
)
def test_a_history_that_is_wrong_is_refused(wrong: list[tuple[Hashable, Hashable]]) -> None:
    """The check itself."""
    history = QueueHistory()
    for call, result in [(PutStep(), "put"), *wrong]:
        history.end("client", history.begin(), {"m": (call, result)})
    assert not check(history.operations(), MessageModel()).linearizable


def test_time_passes_for_messages_that_nobody_has_been_told_of_yet() -> None:
    """The recorder: the answers of Put and Get come after the clock was moved."""
    history = QueueHistory()
    putting, getting, moving = history.begin(), history.begin(), history.begin()
    history.time_passed("clock", moving)
    history.end("client", putting, {"m": (PutStep(), "put")})
    history.end("client", getting, {"m": (GetStep(), Got("a", 1))})
    again = history.begin()
    history.end("client", again, {"m": (GetStep(), Got("b", 2))})
    assert check(history.operations(), MessageModel()).linearizable
    third = history.begin()
    history.end("client", third, {"m": (GetStep(), Got("c", 3))})
    assert not check(history.operations(), MessageModel()).linearizable
