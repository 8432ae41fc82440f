"""A model of one queue message for the history checker, and a recorder for a queue's clients.

Every message of a queue is checked separately. It is put once, held by at most one consumer at a
time, counted exactly, and deleted for good. A retrieval of several messages is one operation on
each of them. Receipts are opaque: the model learns them from the responses, and no receipt may be
issued twice. Source of the rules: Microsoft's "Get Messages", "Update Message", "Delete Message".
The model does not say which messages a retrieval returns, or in which order.
"""

import itertools
import threading
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from strongroom.testing.histories.linearizability import UNKNOWN, CompletedCall


@dataclass(frozen=True, slots=True)
class PutStep:
    """Put the message, visible at once. The result is its receipt."""


@dataclass(frozen=True, slots=True)
class GetStep:
    """Get the message, which hides it. The result is `Got`."""


@dataclass(frozen=True, slots=True)
class UpdateStep:
    """Make it visible again with `receipt`. The result is the new receipt, or None if refused."""

    receipt: str


@dataclass(frozen=True, slots=True)
class DeleteStep:
    """Delete the message with `receipt`. The result is whether it was deleted."""

    receipt: str


@dataclass(frozen=True, slots=True)
class TimePasses:
    """More time passes than any retrieval hides a message for. The result is None."""


class Got(NamedTuple):
    """A message as a retrieval returned it: its receipt, and its dequeue count."""

    receipt: str
    dequeued: int


class MessageState(NamedTuple):
    """The state of a message.

    Attributes:
        receipt: the valid receipt; None: no client has seen it.
        dequeued: how often the message was retrieved.
        hidden: whether it is hidden from retrievals.
    """

    receipt: str | None
    dequeued: int
    hidden: bool


ABSENT: Final = MessageState(None, -1, True)
"""The state of a message that was not put yet."""
GONE: Final = MessageState(None, -2, True)
"""The state of a deleted message, which is final."""


class MessageModel:
    """The model of one message, from its Put to its deletion."""

    def initial(self, object_key: str) -> MessageState:
        """Return the state of a message that was not put yet."""
        return ABSENT

    def step(self, state: MessageState, call: Hashable, result: Hashable) -> Iterable[MessageState]:
        """Return the states after one call; see the calls for their possible results."""
        there = state not in (ABSENT, GONE)
        match call:
            case TimePasses():
                # A message that was retrieved while time was passing may still be hidden
                # afterwards.
                return [state, state._replace(hidden=False)] if there else [state]
            case PutStep():
                return [] if state != ABSENT else [MessageState(_receipt(result), 0, False)]
            case GetStep():
                return self._get(state, result) if there and not state.hidden else []
            case UpdateStep(receipt):
                after = MessageState(_receipt(result), state.dequeued, False)
                return self._use(state, receipt, after, result, result is not None)
            case DeleteStep(receipt):
                return self._use(state, receipt, GONE, result, result is True)
        raise TypeError(f"not a call on a message: {call!r}")

    def _get(self, state: MessageState, result: Hashable) -> Iterable[MessageState]:
        if result is UNKNOWN:
            return [MessageState(None, state.dequeued + 1, True)]
        if not isinstance(result, Got):
            raise TypeError(f"not an answer about a message: {result!r}")
        fits = result.dequeued == state.dequeued + 1 and result.receipt != state.receipt
        return [MessageState(result.receipt, result.dequeued, True)] if fits else []

    def _use(
        self,
        state: MessageState,
        receipt: str,
        after: MessageState,
        result: Hashable,
        accepted: bool,
    ) -> Iterable[MessageState]:
        holds = state not in (ABSENT, GONE) and state.receipt == receipt
        if result is UNKNOWN:
            return [after if holds else state]
        if accepted:
            return [after] if holds else []
        return [] if holds else [state]


def _receipt(result: Hashable) -> str | None:
    return result if isinstance(result, str) else None


class QueueHistory:
    """The operations of a queue's clients. Threads record them as they happen.

    begun = history.begin()
    ... the request ...
    history.end("client 7", begun, {message.id: (GetMessage(), Got(receipt, 1))})
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._position = 0
        self._operations: list[CompletedCall] = []
        self._keys: set[str] = set()
        self._passed: list[tuple[str, int, int]] = []

    def begin(self) -> int:
        """Return the position in time of a request that is about to be sent."""
        with self._lock:
            self._position += 1
            return self._position

    def end(
        self, client: str, begin_position: int, seen: dict[str, tuple[Hashable, Hashable]]
    ) -> None:
        """Record the response to a request.

        Arguments:
            client: the name of the caller, for people.
            begin_position: the value that `begin` returned.
            seen: (call, result) for each message, by its id.
        """
        with self._lock:
            self._position += 1
            for key, (call, result) in seen.items():
                self._add(client, key, call, result, begin_position)

    def time_passed(self, client: str, begin_position: int) -> None:
        """Record that time has passed, for all messages, including those recorded later."""
        with self._lock:
            self._position += 1
            self._passed.append((client, begin_position, self._position))

    def operations(self) -> Sequence[CompletedCall]:
        """Return all operations that were recorded so far."""
        with self._lock:
            operations = list(self._operations)
            for (client, begin_position, ended), key in itertools.product(self._passed, self._keys):
                number = len(operations)
                operations.append(
                    CompletedCall(number, client, key, TimePasses(), None, begin_position, ended)
                )
            return tuple(operations)

    def _add(
        self, client: str, key: str, call: Hashable, result: Hashable, begin_position: int
    ) -> None:
        number = len(self._operations)
        self._keys.add(key)
        self._operations.append(
            CompletedCall(number, client, key, call, result, begin_position, self._position)
        )
