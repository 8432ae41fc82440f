"""Messages under power cuts: a state that an answer has shown is never lost.

All clients use one queue. The known state of a message is that of its last answer. It stays until a
client sends another change, and a change without an answer may have been applied. Two clients use
one receipt at the same time. The 404 of the second shows that the first change was applied, even if
it has no answer yet. Each client also has a queue of its own, which it clears.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from strongroom.auth.request import Service
from tests.conformance.answer import Answer
from tests.conformance.messages import Message, document, messages, one, target
from tests.durability.power_cuts import WORKERS, NoAnswer, SocketlessClient

QUEUE: Final = "cut"
HIDDEN_S: Final = 600
CHARS: Final = (0, 20, 3_000, 60_000)
MESSAGES_MAX: Final = 60
OWN_MAX: Final = 20
DEAD_JUDGED: Final = 60


@dataclass
class Known:
    """A message: the last shown text and count, the valid receipt ("" = unknown), and the possible
    effects of unanswered changes."""

    text: str
    dequeued: int = 0
    receipt: str = ""
    hidden: bool = False
    new_text: str | None = None
    past: list[str] = field(default_factory=list)
    busy: bool = False
    deleting: bool = False

    def now_has(self, text: str) -> None:
        """Note a new text; a read that began before may still show the previous one."""
        if text != self.text:
            self.past.append(self.text)
            self.text = text


@dataclass
class QueuePlay:
    """See Play."""

    service: Service = Service.QUEUE
    ready: bool = False
    known: dict[str, Known] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    dead: list[tuple[str, str]] = field(default_factory=list)
    putting: set[str] = field(default_factory=set)
    gets_under_way: int = 0
    own: dict[int, list[str]] = field(default_factory=dict)
    own_after: dict[int, list[str]] = field(default_factory=dict)

    async def prepare(self, client: SocketlessClient) -> None:
        """Create the queues; existing ones stay."""
        for name in (QUEUE, *(f"own-{worker}" for worker in range(WORKERS))):
            made = await client.ask("PUT", f"/{name}")
            assert made.status in (201, 204), made
        self.ready = True

    async def act(self, client: SocketlessClient, worker: int, chance: random.Random) -> None:
        """Send one random request."""
        verbs = [self._put, self._own, self._get, self._peek]
        if len(self.known) > MESSAGES_MAX:
            verbs = verbs[1:]
        if any(map(_usable, self.known.values())):
            verbs += [self._update, self._update, self._delete]
        if self.dead:
            verbs.append(self._use_dead)
        await chance.choice(verbs)(client, worker, chance)

    async def _put(self, client: SocketlessClient, worker: int, chance: random.Random) -> None:
        text = f"{chance.getrandbits(64):x} " + "p" * chance.choice(CHARS)
        self.putting.add(text)
        answer = await client.ask("POST", target(QUEUE), None, document(text))
        assert answer.status == 201, answer
        self.putting.discard(text)
        (made,) = messages(answer)
        # Another client may have got the message before this answer was read.
        if made.id not in self.gone:
            self.known.setdefault(made.id, Known(text, receipt=made.receipt or ""))

    async def _get(self, client: SocketlessClient, worker: int, chance: random.Random) -> None:
        self.gets_under_way += 1
        wanted = target(QUEUE, numofmessages=chance.randint(1, 4), visibilitytimeout=HIDDEN_S)
        answer = await client.ask("GET", wanted)
        self.gets_under_way -= 1
        for message in _messages(answer):
            assert message.count is not None
            assert message.id not in self.gone, "a deleted message came back"
            known = self._seen(message)
            assert message.count > known.dequeued, "a retrieval was not counted"
            if known.receipt:
                self.dead.append((message.id, known.receipt))
            known.dequeued, known.receipt, known.hidden = message.count, message.receipt or "", True

    async def _peek(self, client: SocketlessClient, worker: int, chance: random.Random) -> None:
        before = {message_id: len(known.past) for message_id, known in self.known.items()}
        answer = await client.ask("GET", target(QUEUE, peekonly="true", numofmessages=8))
        for message in _messages(answer):
            assert message.count is not None
            if message.id not in self.gone:
                seen = self.known.get(message.id)
                if seen is not None and message.text in seen.past[before.get(message.id, 0) :]:
                    continue  # this read began before an update that was answered earlier
                known = self._seen(message)
                if message.count > known.dequeued:
                    known.dequeued, known.receipt, known.hidden = message.count, "", False

    def _seen(self, message: Message) -> Known:
        known = self.known.setdefault(message.id, Known(message.text or ""))
        assert message.text in (known.text, known.new_text), "another text"
        # The update may have been applied without an answer yet.
        known.now_has(message.text or "")
        return known

    async def _update(self, client: SocketlessClient, worker: int, chance: random.Random) -> None:
        """Update once, or twice with one receipt: the later update is refused."""
        message_id, known = self._pick(chance)
        receipt, count, text = known.receipt, known.dequeued, known.text
        if chance.random() < 0.5:
            known.new_text = text = f"{chance.getrandbits(64):x} " + "u" * chance.choice(CHARS)
        body = document(text) if known.new_text else b""
        seconds = chance.choice((0, HIDDEN_S))
        where = f"{one(QUEUE, message_id, receipt)}&visibilitytimeout={seconds}"
        known.busy, known.hidden = True, known.hidden and seconds > 0

        def seen(answer: Answer) -> None:
            if (message_id, receipt) not in self.dead:
                self.dead.append((message_id, receipt))
            if answer.status == 204 and known.dequeued == count:
                known.now_has(text)
                known.receipt = answer["x-ms-popreceipt"]
                known.hidden = seconds > 0

        await _once_or_twice(chance, lambda: client.ask("PUT", where, None, body), seen)
        known.busy, known.new_text = False, None

    async def _delete(self, client: SocketlessClient, worker: int, chance: random.Random) -> None:
        """Delete once, or twice with one receipt: after any answer, the message is deleted."""
        message_id, known = self._pick(chance)
        known.busy = known.deleting = True
        where = one(QUEUE, message_id, known.receipt)
        visible, count = not known.hidden, known.dequeued

        def seen(answer: Answer) -> None:
            if answer.status == 204 or not visible:
                self.gone.add(message_id)
                self.known.pop(message_id, None)

        await _once_or_twice(chance, lambda: client.ask("DELETE", where), seen)
        if message_id not in self.gone:
            # Another client got the message at the same time, and has or will have its new receipt.
            assert known.dequeued >= count
            known.busy = known.deleting = False

    def _pick(self, chance: random.Random) -> tuple[str, Known]:
        return chance.choice([item for item in self.known.items() if _usable(item[1])])

    async def _use_dead(self, client: SocketlessClient, worker: int, chance: random.Random) -> None:
        message_id, receipt = chance.choice(self.dead)
        answer = await client.ask("DELETE", one(QUEUE, message_id, receipt))
        assert answer.status == 404, "a receipt came back to life"

    async def _own(self, client: SocketlessClient, worker: int, chance: random.Random) -> None:
        texts = self.own.setdefault(worker, [])
        queue = f"own-{worker}"
        if len(texts) >= OWN_MAX or (texts and chance.random() < 0.2):
            self.own_after[worker] = []
            answer = await client.ask("DELETE", target(queue))
            assert answer.status == 204, answer
        else:
            text = f"{chance.getrandbits(64):x} " + "o" * chance.choice(CHARS)
            self.own_after[worker] = [*texts, text]
            answer = await client.ask("POST", target(queue), None, document(text))
            assert answer.status == 201, answer
        self.own[worker] = self.own_after.pop(worker)

    async def judge(self, client: SocketlessClient) -> None:
        """See Play."""
        if not self.ready:
            return
        for message_id, receipt in self.dead[-DEAD_JUDGED:]:
            answer = await client.ask("DELETE", one(QUEUE, message_id, receipt))
            assert answer.status == 404, "a receipt came back to life"
        for message_id, known in self.known.items():
            if known.receipt and known.hidden and not known.busy:
                where = f"{one(QUEUE, message_id, known.receipt)}&visibilitytimeout={HIDDEN_S}"
                answer = await client.ask("PUT", where)
                assert answer.status == 204, f"a receipt that was given is answered {answer.code}"
        # All hidden messages are visible again.
        client.clock.advance(HIDDEN_S + 1)
        found = await _drained(client)
        self._judge_found(found)
        counted = await client.ask("GET", f"/{QUEUE}?comp=metadata")
        assert int(counted["x-ms-approximate-messages-count"]) == len(found)
        for worker, own in self.own.items():
            await self._judge_own(client, worker, own)
        await self._settle(client, found)

    def _judge_found(self, found: dict[str, Message]) -> None:
        assert not self.gone & set(found), "a deleted message is there again"
        for message_id, known in self.known.items():
            message = found.get(message_id)
            if message is None:
                assert known.deleting, "a message is lost"
                continue
            assert message.text in (known.text, known.new_text), "a text is torn or another"
            assert message.count is not None
            most = self.gets_under_way if not known.hidden or known.busy else 0
            # The judge's own retrieval counts as one.
            assert 0 <= message.count - 1 - known.dequeued <= most, "a count was taken back"
        for message_id, message in found.items():
            if message_id not in self.known:
                assert message.text in self.putting, "a message that nobody has put"
                self.putting.discard(message.text)

    async def _judge_own(self, client: SocketlessClient, worker: int, texts: list[str]) -> None:
        answer = await client.ask("GET", target(f"own-{worker}", peekonly="true", numofmessages=32))
        found = [message.text for message in _messages(answer)]
        assert found in (texts, self.own_after.pop(worker, texts)), "a clearing is torn or undone"
        self.own[worker] = [text for text in found if text is not None]

    async def _settle(self, client: SocketlessClient, found: dict[str, Message]) -> None:
        """Make the found messages the known state of the next life, all of them visible."""
        self.known.clear()
        self.putting.clear()
        self.gets_under_way = 0
        for message_id, message in found.items():
            assert message.count is not None and message.text is not None
            where = f"{one(QUEUE, message_id, message.receipt)}&visibilitytimeout=0"
            answer = await client.ask("PUT", where)
            self.known[message_id] = Known(message.text, message.count, answer["x-ms-popreceipt"])


async def _once_or_twice(
    chance: random.Random, ask: Callable[[], Awaitable[Answer]], seen: Callable[[Answer], None]
) -> None:
    """Send a request once, or twice at the same time, and pass on every answer.

    Raises NoAnswer after all answers if one was lost.
    """
    lost: NoAnswer | None = None
    asked = [asyncio.ensure_future(ask()) for _ in range(chance.choice((1, 2)))]
    for coming in asyncio.as_completed(asked):
        try:
            answer = await coming
        except NoAnswer as error:
            lost = error
            continue
        assert answer.status in (204, 404), answer
        seen(answer)
    if lost is not None:
        raise lost


def _usable(known: Known) -> bool:
    return bool(known.receipt) and not known.busy


def _messages(answer: Answer) -> list[Message]:
    assert answer.status == 200, answer
    return messages(answer)


async def _drained(client: SocketlessClient) -> dict[str, Message]:
    """Return all messages, each once."""
    found: dict[str, Message] = {}
    while True:
        wanted = target(QUEUE, numofmessages=32, visibilitytimeout=HIDDEN_S)
        batch = _messages(await client.ask("GET", wanted))
        if not batch:
            return found
        assert not {message.id for message in batch} & set(found), "a message was got twice"
        found |= {message.id: message for message in batch}
