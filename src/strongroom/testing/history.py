"""Histories of concurrent clients, and whether a sequential object could have answered so.

Here live the recorder and `check`. A test's clients record every call before they send it and its
answer after it came. `check` says object by object whether the history is linearizable, and shows
the shortest beginning that is not. No clock is read: the order of the records is the time.

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

from strongroom.testing.counterexample import Counterexample, counterexample
from strongroom.testing.linearizability import (
    NEVER,
    UNKNOWN,
    CompletedCall,
    Model,
    ModelHints,
    State,
)
from strongroom.testing.search import SearchLimitError, find_order

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

MAX_STEPS: Final = 5_000_000  # about half a minute of asking a model


class PendingCall:
    """A call under way: its answer is told once, by `returned` or by `unknown`."""

    def __init__(self, history: "History", number: int) -> None:
        self._history = history
        self._number = number

    def returned(self, result: Hashable) -> None:
        """The answer came.

        Raises:
            ValueError: the end of this call was told before, or the result is UNKNOWN.
        """
        if result is UNKNOWN:
            raise ValueError("an answer that came is not UNKNOWN: use unknown()")
        self._history._end(self._number, result, lost=False)

    def unknown(self) -> None:
        """The answer was lost: the call may happen or have happened, now, later or never.

        Raises:
            ValueError: the end of this call was told before.
        """
        self._history._end(self._number, UNKNOWN, lost=True)


class History:
    """The observations of a test's clients, recorded by threads or tasks as they happen."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._position = 0
        self._operations: list[CompletedCall] = []
        self._open: set[int] = set()

    def invoke(self, client: str, object_key: str, call: Hashable) -> PendingCall:
        """Records a call, before it is sent.

        Arguments:
            client: who calls, for people.
            object_key: the object; every object is judged for itself.
            call: a value that the model of the check knows.
        """
        with self._lock:
            number = len(self._operations)
            self._position += 1
            operation = CompletedCall(number, client, object_key, call, UNKNOWN, self._position)
            self._operations.append(operation)
            self._open.add(number)
        return PendingCall(self, number)

    def operations(self) -> Sequence[CompletedCall]:
        """Everything recorded so far; calls under way count as lost."""
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
    """Whether a history is linearizable, and if not, where it fails first.

    Arguments:
        objects: how many objects were judged.
        counterexample: the proof against; None if every object has a linearization.
    """

    objects: int
    counterexample: Counterexample | None = None

    @property
    def linearizable(self) -> bool:
        """Whether every object has an order that the model allows."""
        return self.counterexample is None

    def explain(self) -> str:
        """A text for people: a table of the operations that have no order."""
        if self.counterexample is None:
            return f"linearizable ({self.objects} objects)"
        return self.counterexample.render()


def check(
    history: History | Iterable[CompletedCall], model: Model[State], *, max_steps: int = MAX_STEPS
) -> Verdict:
    """Judges a history object by object, and stops at the first that fails.

    Arguments:
        history: a recorder, or operations with positions of one common order.
        model: what one object may do; with `ModelHints` if it has them.
        max_steps: how many times one search may ask the model.

    Raises:
        SearchLimitError: a search came to its limit; nothing is proved then.
    """
    operations = history.operations() if isinstance(history, History) else history
    objects: dict[str, list[CompletedCall]] = {}
    for operation in operations:
        objects.setdefault(operation.object_key, []).append(operation)
    for object_key, of_object in objects.items():
        if not find_order(of_object, model, object_key, max_steps).complete:
            return Verdict(len(objects), counterexample(of_object, model, object_key, max_steps))
    return Verdict(len(objects))
