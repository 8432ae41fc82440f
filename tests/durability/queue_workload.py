"""Random users of queues, which know the expected state after the server was killed.

Each worker owns its queue. Every acknowledged change must be found: a message that was put exists,
a deleted one does not. A message that was got comes back with its count, and an updated one has its
text. A change in progress at the kill may or may not have been applied. Used by the kill rounds;
must not live here: starting and killing of servers (rounds.py).
"""

from __future__ import annotations

import http.client
import random
import threading
import time
from dataclasses import dataclass, field

from tests.conformance.client import Client
from tests.conformance.messages import Message, count, delete, get, put, update

# Short, so that a message of a lost answer comes back while the check waits.
HIDDEN_S = 1
SIZES = (0, 20, 2_000, 9_000, 60_000)
MESSAGES_MAX = 40
PATIENCE_S = 20.0


@dataclass(slots=True)
class Known:
    """The acknowledged state of one message; `new_text` and `deleting` are the change in
    progress."""

    message: Message
    text: str
    dequeued: int = 0
    new_text: str | None = None
    deleting: bool = False


@dataclass(slots=True)
class QueueWorker:
    """One client that uses its own queue until the server is gone.

    Arguments:
        number: names its queue.
        seed: determines its actions.
    """

    number: int
    seed: int
    acknowledged: int = 0
    failure: str = ""
    known: dict[str, Known] = field(default_factory=dict)
    putting: str | None = None
    getting: bool = False

    @property
    def queue(self) -> str:
        """The name of its queue."""
        return f"durable-{self.number}"

    def run(self, client: Client, stop: threading.Event) -> None:
        """Work until `stop` is set or the connection breaks."""
        rng = random.Random(self.seed)
        while not stop.is_set():
            try:
                self._one(client, rng)
            except (OSError, http.client.HTTPException):
                return
            except AssertionError as error:
                self.failure = f"{self.queue}: {error}"
                return

    def _one(self, client: Client, rng: random.Random) -> None:
        verbs = [self._put] if len(self.known) < MESSAGES_MAX else []
        if self.known:
            verbs += [self._get, self._update, self._delete]
        rng.choice(verbs)(client, rng)
        self.acknowledged += 1

    def _put(self, client: Client, rng: random.Random) -> None:
        text = f"{rng.getrandbits(64):x} " + "x" * rng.choice(SIZES)
        self.putting = text
        made = put(client, self.queue, text)
        self.known[made.id], self.putting = Known(made, text), None

    def _get(self, client: Client, rng: random.Random) -> None:
        self.getting = True
        wanted = rng.randint(1, 5)
        for message in get(client, self.queue, numofmessages=wanted, visibilitytimeout=HIDDEN_S):
            known = self.known[message.id]
            assert (message.text, message.count) == (known.text, known.dequeued + 1), message.id
            known.message, known.dequeued = message, known.dequeued + 1
        self.getting = False

    def _update(self, client: Client, rng: random.Random) -> None:
        known = rng.choice(list(self.known.values()))
        text = f"{rng.getrandbits(64):x} " + "y" * rng.choice(SIZES)
        known.new_text = text
        answer = update(client, self.queue, known.message, text, seconds=rng.choice((0, HIDDEN_S)))
        assert answer.status == 204, f"Update Message: {answer.status} {answer.code}"
        self._renew(known, answer["x-ms-popreceipt"])
        known.text, known.new_text = text, None

    def _delete(self, client: Client, rng: random.Random) -> None:
        known = rng.choice(list(self.known.values()))
        known.deleting = True
        answer = delete(client, self.queue, known.message)
        assert answer.status == 204, f"Delete Message: {answer.status} {answer.code}"
        del self.known[known.message.id]

    def _renew(self, known: Known, receipt: str) -> None:
        old = known.message
        known.message = Message(old.id, old.inserted, old.expires, receipt)

    def verify(self, client: Client) -> list[str]:
        """Return the differences from the expected state. The found state becomes the known one."""
        lost = self._check_receipts(client)
        found = self._drain(client)
        for message_id, known in list(self.known.items()):
            message = found.pop(message_id, None)
            if message is None:
                if not known.deleting:
                    lost.append(f"{self.queue}: the message {message_id} is lost")
                del self.known[message_id]
                continue
            lost += self._compare(known, message)
        for message in found.values():
            if message.text != self.putting:
                lost.append(f"{self.queue}: the message {message.id} was deleted, or never put")
            self.known[message.id] = Known(message, message.text or "", message.count or 0)
        self.putting, self.getting = None, False
        if not lost and count(client, self.queue) != len(self.known):
            lost.append(f"{self.queue}: the count is not {len(self.known)}")
        for known in self.known.values():
            answer = update(client, self.queue, known.message, seconds=0)
            self._renew(known, answer["x-ms-popreceipt"])
        return lost

    def _check_receipts(self, client: Client) -> list[str]:
        """Check that acknowledged receipts are valid, unless a lost answer may have replaced
        them."""
        lost = []
        for known in self.known.values():
            answer = update(client, self.queue, known.message, seconds=0)
            if answer.status == 204:
                self._renew(known, answer["x-ms-popreceipt"])
            elif not (self.getting or known.deleting or known.new_text is not None):
                lost.append(f"{self.queue}: a receipt was answered {answer.status} {answer.code}")
        return lost

    def _drain(self, client: Client) -> dict[str, Message]:
        """Return all messages, after a wait for those that a lost answer has hidden."""
        found: dict[str, Message] = {}
        until = time.monotonic() + PATIENCE_S
        total = count(client, self.queue)
        while len(found) < total and time.monotonic() < until:
            batch = get(client, self.queue, numofmessages=32, visibilitytimeout=600)
            found |= {message.id: message for message in batch}
            if not batch:
                time.sleep(0.05)
        return found

    def _compare(self, known: Known, message: Message) -> list[str]:
        lost = []
        if message.text not in (known.text, known.new_text):
            lost.append(f"{self.queue}: the message {message.id} has another text")
        extra = (message.count or 0) - 1 - known.dequeued
        if extra not in ((0, 1) if self.getting else (0,)):
            lost.append(f"{self.queue}: {message.id} was got {extra} times more than it was")
        known.message, known.dequeued = message, message.count or 0
        known.text, known.new_text, known.deleting = message.text or "", None, False
        return lost
