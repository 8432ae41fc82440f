"""Histories of many clients of one queue, judged per message, while the server is killed.

An unanswered request before a kill was applied before the kill, or never. It is judged as one
operation that may have had no effect. A lost retrieval may have taken any message. A message whose
put was lost is identified by its text. Used by the short test here and the long one in tests/proof.
"""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Final

from strongroom.testing.histories.linearizability import UNKNOWN
from strongroom.testing.histories.queue_model import (
    DeleteStep,
    GetStep,
    Got,
    MessageModel,
    MessageState,
    PutStep,
    QueueHistory,
    UpdateStep,
)
from strongroom.testing.history import CompletedCall, Verdict, check
from tests.conformance.answer import expect
from tests.conformance.messages import Message, delete, get, put, update
from tests.durability.crashes import LOST, Crashes, OnceQueues, while_crashing

HIDDEN_S: Final = 600


@dataclass(frozen=True, slots=True)
class LostCall:
    """A call whose answer was lost in a crash: it happened before the crash, or never."""

    call: Hashable


class CrashModel(MessageModel):
    """One message on servers that crash."""

    def step(self, state: MessageState, call: Hashable, result: Hashable) -> Iterable[MessageState]:
        """Return the states of MessageModel; LostCall leaves the state, or applies its call."""
        if not isinstance(call, LostCall):
            return super().step(state, call, result)
        return [state, *super().step(state, call.call, UNKNOWN)]


@dataclass(slots=True)
class _Lost:
    """A call without an answer. `message_id` "" = unknown; `text` is that of a put."""

    begun: int
    call: Hashable
    message_id: str = ""
    text: str = ""


@dataclass
class Recorder:
    """The answers of all clients, and the lost calls.

    Attributes:
        crashed: the position in time of each kill.
        texts: the texts of the messages that were put or got, by id.
    """

    history: QueueHistory = field(default_factory=QueueHistory)
    lost: list[_Lost] = field(default_factory=list)
    crashed: list[int] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def crash(self) -> None:
        """Note that the server is dead, so that earlier requests can no longer be applied."""
        self.crashed.append(self.history.begin())

    def lose(self, lost: _Lost) -> None:
        """Note a lost answer."""
        with self.lock:
            self.lost.append(lost)

    def operations(self) -> list[CompletedCall]:
        """Return all operations, with the lost calls at their possible positions."""
        found = list(self.history.operations())
        keys = {operation.object_key for operation in found}
        by_text = {text: key for key, text in self.texts.items()}
        retrievals: dict[int, int] = {}
        for one in self.lost:
            ended = min(position for position in self.crashed if position > one.begun)
            if isinstance(one.call, GetStep):
                retrievals[ended] = min(one.begun, retrievals.get(ended, one.begun))
            elif (key := one.message_id or by_text.get(one.text, "")) in keys:
                found.append(_perhaps(len(found), key, one.call, one.begun, ended))
        # If several retrievals were lost in a crash, the first one hides a message from the others.
        for (ended, begun), key in itertools.product(retrievals.items(), keys):
            found.append(_perhaps(len(found), key, GetStep(), begun, ended))
        return found


def _perhaps(number: int, key: str, call: Hashable, begun: int, ended: int) -> CompletedCall:
    return CompletedCall(number, "a client", key, LostCall(call), None, begun, ended)


@dataclass
class Actor:
    """One client: the messages that it has got, and its next actions."""

    recorder: Recorder
    queue: str
    number: int
    chance: random.Random
    held: list[Message] = field(default_factory=list)
    puts: int = 0

    def act(self, client: OnceQueues, consumes_only: bool = False) -> None:
        """Run and record one random operation. Raises the errors in LOST."""
        verbs = [self._get] if consumes_only else [self._put, self._get, self._get]
        if self.held:
            verbs += [self._delete, self._update]
        self.chance.choice(verbs)(client)

    def _put(self, client: OnceQueues) -> None:
        self.puts += 1
        text = f"{self.number}/{self.puts} " + "x" * self.chance.choice((0, 3_000))
        begun = self.recorder.history.begin()
        try:
            made = put(client, self.queue, text)
        except LOST:
            self.recorder.lose(_Lost(begun, PutStep(), text=text))
            raise
        self._end(begun, {made.id: (PutStep(), made.receipt)})
        self.recorder.texts[made.id] = text
        if not self.chance.randrange(3):
            # The first receipt is valid too, until a client gets the message.
            self.held.append(made)

    def _get(self, client: OnceQueues) -> None:
        begun = self.recorder.history.begin()
        wanted = self.chance.randrange(1, 5)
        try:
            found = get(client, self.queue, numofmessages=wanted, visibilitytimeout=HIDDEN_S)
        except LOST:
            self.recorder.lose(_Lost(begun, GetStep()))
            raise
        seen: dict[str, tuple[Hashable, Hashable]] = {
            one.id: (GetStep(), Got(one.receipt or "", one.count or 0)) for one in found
        }
        self._end(begun, seen)
        for one in found:
            self.recorder.texts[one.id] = one.text or ""
        self.held += found

    def _delete(self, client: OnceQueues) -> None:
        message = self._pick()
        call, begun = DeleteStep(message.receipt or ""), self.recorder.history.begin()
        try:
            answer = delete(client, self.queue, message)
        except LOST:
            self.recorder.lose(_Lost(begun, call, message.id))
            raise
        assert answer.status in (204, 404), answer
        self._end(begun, {message.id: (call, answer.status == 204)})

    def _update(self, client: OnceQueues) -> None:
        message = self._pick()
        call, begun = UpdateStep(message.receipt or ""), self.recorder.history.begin()
        try:
            answer = update(client, self.queue, message, seconds=0)
        except LOST:
            self.recorder.lose(_Lost(begun, call, message.id))
            raise
        assert answer.status in (204, 404), answer
        self._end(begun, {message.id: (call, answer.get("x-ms-popreceipt"))})

    def _pick(self) -> Message:
        # A used receipt may be used again, and must then be refused.
        chosen = self.chance.randrange(len(self.held))
        return self.held[chosen] if not self.chance.randrange(4) else self.held.pop(chosen)

    def _end(self, begun: int, seen: dict[str, tuple[Hashable, Hashable]]) -> None:
        self.recorder.history.end(f"client {self.number}", begun, seen)


def messages(
    crashes: Crashes, producers: int, consumers: int, steps: int, kills: int, seed: int
) -> Verdict:
    """Return the verdict on the clients' history. Time passes after each kill except the last.

    Arguments:
        producers: the number of clients that do everything; consumers never put.
    """
    queue, recorder = f"histories-{seed}", Recorder()
    expect(crashes.queues().put(f"/{queue}"), 201)
    count = producers + consumers
    actors = [
        Actor(recorder, queue, number, random.Random(seed * 1000 + number))
        for number in range(count)
    ]

    def act(client: OnceQueues, number: int) -> None:
        try:
            actors[number].act(client, consumes_only=number >= producers)
        except LOST as error:
            crashes.after_loss(error)

    def pass_time() -> None:
        begun = recorder.history.begin()
        crashes.server.clock.advance(HIDDEN_S + 1)
        recorder.history.time_passed("clock", begun)

    made = [crashes.queues() for _ in range(count)]
    chance = random.Random(seed)
    done = while_crashing(crashes, kills, made, act, steps, chance, recorder.crash, pass_time)
    assert done == count * steps
    _drain(crashes, Actor(recorder, queue, count, chance), pass_time)
    return check(recorder.operations(), CrashModel())


def _drain(crashes: Crashes, actor: Actor, pass_time: object) -> None:
    """Let time pass and get all remaining messages, so that lost ones show."""
    assert callable(pass_time)
    pass_time()
    client, recorder = crashes.queues(), actor.recorder
    there: set[str] = set()
    while True:
        begun = recorder.history.begin()
        found = get(client, actor.queue, numofmessages=32, visibilitytimeout=HIDDEN_S)
        if not found:
            break
        there |= {one.id for one in found}
        # By its text, a put without an answer is found.
        recorder.texts.update({one.id: one.text or "" for one in found})
        recorder.history.end(
            "the judge",
            begun,
            {one.id: (GetStep(), Got(one.receipt or "", one.count or 0)) for one in found},
        )
    deleted = {
        operation.object_key
        for operation in recorder.history.operations()
        if isinstance(operation.call, DeleteStep) and operation.result is True
    }
    perhaps = {one.message_id for one in recorder.lost if isinstance(one.call, DeleteStep)}
    lost = set(recorder.texts) - there - deleted - perhaps
    assert not lost, f"messages are lost: {lost}"
    assert not there & deleted, f"messages came back: {there & deleted}"
