"""The words of a history: operations, the answer that was lost, and the protocol of a model.

Here live values only. Recording and checking are in `history.py`, the search in `search.py`, the
readable answer in `counterexample.py`, the models that are shipped in `models.py`.

A history is linearizable if there is an order of all its operations that the model allows. In that
order, an operation that returned before another was invoked comes before it. Source: Herlihy and
Wing, "Linearizability: a correctness condition for concurrent objects", 1990.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol, TypeVar, runtime_checkable

State = TypeVar("State", bound=Hashable)
Known = TypeVar("Known", bound=Hashable, contravariant=True)

NEVER: Final = 1 << 62  # the position of a return that did not happen


class Lost(Enum):
    """The type of `UNKNOWN`, so that a type checker can tell it from every real result."""

    UNKNOWN = "unknown"

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = Lost.UNKNOWN


@dataclass(frozen=True, slots=True)
class CompletedCall:
    """One call of one client on one object, and what came back.

    Arguments:
        number: its place in the history, from 0; unique.
        client: who called; only shown to people.
        object_key: the object called; objects are judged one by one.
        call: what was asked; hashable, a value that the model knows.
        result: what was answered; hashable; UNKNOWN if the answer was lost.
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


class Model(Protocol[State]):
    """One object's behaviour as a pure step function. States are hashable."""

    def initial(self, object_key: str) -> State:
        """The state before the first operation."""

    def step(self, state: State, call: Hashable, result: Hashable) -> Iterable[State]:
        """The states in which `call` may leave `state` when it answers `result`.

        Empty: the answer is impossible there. Several: the model cannot tell which. With
        UNKNOWN as the result: every state that the call may leave behind, whatever it answered.
        """


@runtime_checkable
class ModelHints(Protocol[Known]):
    """A model's facts beside its steps that make the search short. All of them must be true.

    Only `simplify` sees operations whose answer was lost.
    """

    def never_changes(self, call: Hashable, result: Hashable) -> bool:
        """Whether the call with this result changes no state that allows it.

        It may tell more about one: which of several states it is.
        """

    def version(self, state: Known) -> Hashable | None:
        """A mark of the state that no later state has again once it is gone; None: no mark."""

    def needs(self, call: Hashable, result: Hashable) -> Hashable | None:
        """The version that a state must have for the call to answer so; None: no certain one."""

    def simplify(self, operations: Sequence[CompletedCall]) -> Sequence[CompletedCall]:
        """The same operations in the same order, without details that cannot matter.

        The more operations become equal, the shorter the search.
        """
