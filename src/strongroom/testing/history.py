"""Records histories of concurrent clients, and checks whether they are linearizable.

Lives here: the recorder and `check`. A test's clients record every call before they send it, and
its response after it came. `check` checks each object separately. It shows the shortest prefix of
the history that is not linearizable. No clock is read: the order of the records is the time.

    history = History()
    call = history.invoke("client 7", "container/blob", PutIfMatch(b"new", etag))
    try:
        call.returned(Answer(201, new_etag))
    except ConnectionError:
        call.unknown()
    verdict = check(history, BlobModel())
    assert verdict.linearizable, verdict.explain()
"""

import threading
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from strongroom.testing.histories.counterexample import Counterexample, counterexample
from strongroom.testing.histories.linearizability import (
    NEVER,
    UNKNOWN,
    CompletedCall,
    Model,
    ModelHints,
    State,
)
from strongroom.testing.histories.search import SearchLimitError, find_order

__all__ = [
    "NEVER",
    "UNKNOWN",
    "CompletedCall",
    "History",
    "Model",
    "ModelHints",
    "PendingCall",
    "SearchLimitError",
    "Verdict",
    "check",
]

MAX_STEPS: Final = 5_000_000  # about half a minute of model steps


class PendingCall:
    """A call in progress; end it once, with `returned` or `unknown`."""

    def __init__(self, history: "History", number: int) -> None:
        self._history = history
        self._number = number

    def returned(self, result: Hashable) -> None:
        """Record the response.

        Raises:
            ValueError: the call has ended already, or the result is UNKNOWN.
        """
        if result is UNKNOWN:
            raise ValueError("an answer that came is not UNKNOWN: use unknown()")
        self._history._end(self._number, result, lost=False)

    def unknown(self) -> None:
        """Record that the response was lost: the call may take effect at any time, or never.

        Raises:
            ValueError: the call has ended already.
        """
        self._history._end(self._number, UNKNOWN, lost=True)


class History:
    """The operations of a test's clients. Threads or tasks record them as they happen."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._position = 0
        self._operations: list[CompletedCall] = []
        self._open: set[int] = set()

    def invoke(self, client: str, object_key: str, call: Hashable) -> PendingCall:
        """Record a call before it is sent, and return it so that its end can be recorded.

        Arguments:
            client: the name of the caller, for people.
            object_key: the object; each object is checked separately.
            call: a value that the model of the check understands.
        """
        with self._lock:
            number = len(self._operations)
            self._position += 1
            operation = CompletedCall(number, client, object_key, call, UNKNOWN, self._position)
            self._operations.append(operation)
            self._open.add(number)
        return PendingCall(self, number)

    def operations(self) -> Sequence[CompletedCall]:
        """Return all operations that were recorded so far; calls in progress count as lost."""
        with self._lock:
            return tuple(self._operations)

    def _end(self, number: int, result: Hashable, *, lost: bool) -> None:
        with self._lock:
            if number not in self._open:
                raise ValueError(f"the end of call {number} was told twice")
            self._open.remove(number)
            self._position += 1
            if not lost:
                self._operations[number] = replace(
                    self._operations[number], result=result, returned=self._position
                )


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a history is linearizable, and if not, where it first fails.

    Arguments:
        objects: the number of objects that were checked.
        counterexample: the proof of a failure; None if every object has a linearization.
    """

    objects: int
    counterexample: Counterexample | None = None

    @property
    def linearizable(self) -> bool:
        """Whether the model allows some order of every object's operations."""
        return self.counterexample is None

    def explain(self) -> str:
        """Return a text for people: a table of the operations that have no valid order."""
        if self.counterexample is None:
            return f"linearizable ({self.objects} objects)"
        return self.counterexample.render()


def check(
    history: History | Iterable[CompletedCall], model: Model[State], *, max_steps: int = MAX_STEPS
) -> Verdict:
    """Check a history object by object, and stop at the first object that fails.

    Arguments:
        history: a recorder, or operations with positions on one timeline.
        model: the behaviour of one object; it may also implement `ModelHints`.
        max_steps: the limit of model steps for one search.

    Raises:
        SearchLimitError: a search reached its limit, so there is no verdict.
    """
    operations = history.operations() if isinstance(history, History) else history
    objects: dict[str, list[CompletedCall]] = {}
    for operation in operations:
        objects.setdefault(operation.object_key, []).append(operation)
    for object_key, of_object in objects.items():
        if not find_order(of_object, model, object_key, max_steps).complete:
            return Verdict(len(objects), counterexample(of_object, model, object_key, max_steps))
    return Verdict(len(objects))
