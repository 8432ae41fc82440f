"""The search for a linearization: may these concurrent operations have happened one at a time?

Here live the values that a history is made of, the protocol of a model, and the search. Recording
is in `history.py`, the readable answer in `counterexample.py`, the models in `models.py`.

The definition is Herlihy and Wing's ("Linearizability: a correctness condition for concurrent
objects", 1990): an order of all operations that the model allows, in which an operation that
returned before another was invoked also comes before it. The search is Wing and Gong's (1993)
with Lowe's memory of (linearized set, state) pairs ("Testing for linearizability", 2017). It adds
four reductions, each of which keeps the answer exact:

- an operation that cannot change the state and is allowed now is taken at once;
- of pending operations with equal call and result only the one that must return first is tried;
- an operation whose answer was lost is not tried where it would change nothing;
- a state is given up when it leaves a version, never to return, that a later answer still shows.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol, TypeVar, runtime_checkable

State = TypeVar("State", bound=Hashable)

NEVER: Final = 1 << 62  # the position of a return that did not happen


class Lost(Enum):
    """The type of `UNKNOWN`, so that type checkers can tell it from every real result."""

    UNKNOWN = "unknown"

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = Lost.UNKNOWN


@dataclass(frozen=True, slots=True)
class Operation:
    """One call of one client on one object, and what came back.

    Arguments:
        number: its place in the history, from 0; unique.
        client: who called; only shown to people.
        object_key: the object called; objects are judged one by one.
        call: what was asked, hashable, a value that the model knows.
        result: what was answered, hashable; UNKNOWN if the answer was lost.
        invoked: position in time, before the request left.
        returned: position in time, after the answer came; NEVER if it was lost.
    """

    number: int
    client: str
    object_key: str
    call: Hashable
    result: Hashable
    invoked: int
    returned: int = NEVER


@runtime_checkable
class Model(Protocol[State]):
    """What one object may do, as a pure step function. States are hashable."""

    def initial(self, object_key: str) -> State:
        """The state before the first operation."""

    def step(self, state: State, call: Hashable, result: Hashable) -> Iterable[State]:
        """The states in which `call` may leave `state` when it answers `result`.

        Empty: the answer is impossible there. Several: the model does not know which. With
        UNKNOWN as the result: every state that the call may leave behind, whatever it answered.
        """


@runtime_checkable
class Hints(Protocol[State]):
    """What a model may tell beside its steps to make the search short. All must be true."""

    def never_changes(self, call: Hashable, result: Hashable) -> bool:
        """Whether the call with this result leaves every state that allows it as it was."""

    def version(self, state: State) -> Hashable | None:
        """A mark of the state that no later state has again once it is gone; None: no mark."""

    def needs(self, call: Hashable, result: Hashable) -> Hashable | None:
        """The version that a state must have for the call to answer so; None: no certain one."""

    def simplify(self, operations: Sequence[Operation]) -> Sequence[Operation]:
        """The same operations in the same order without details that cannot matter."""


class SearchLimitError(Exception):
    """The search gave up: the history is neither accepted nor refused."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a search came to.

    Arguments:
        complete: whether an order of all returned operations exists.
        order: numbers of the operations in that order; if there is none, the longest beginning.
        states: the states in which that order may leave the object.
    """

    complete: bool
    order: tuple[int, ...]
    states: tuple[Hashable, ...]


def find_order(
    operations: Sequence[Operation], model: Model[State], object_key: str, max_steps: int
) -> Found:
    """Looks for an order of the operations of one object that the model allows.

    Arguments:
        operations: all of one object. One with `returned == NEVER` may have happened or not.
        model: with `Hints` too if it has them.
        object_key: given to the model's `initial`.
        max_steps: how many times the model may be asked.

    Raises:
        SearchLimitError: when `max_steps` are used up.
    """
    ordered = sorted(operations, key=lambda operation: operation.invoked)
    hints = model if isinstance(model, Hints) else None
    if hints is not None:
        ordered = list(hints.simplify(ordered))
    return _Search(ordered, model, hints, max_steps).run(object_key)


@dataclass(slots=True)
class _Node:
    """A point of the search: what was taken to come here, and what is left to try."""

    states: frozenset[Hashable]
    taken: list[int]
    choices: list[tuple[int, frozenset[Hashable]]]


class _Search[State: Hashable] if False else object:  # pragma: no cover
    pass
