"""The types of the history checker: operations, the unknown result, and a model's protocol.

Lives here: types and values only. Must not live here: recording and checking
(`testing/history.py`), the search (`search.py`), the readable report (`counterexample.py`), the
models that are shipped (`testing/models.py`).

A history is linearizable if the model allows all its operations in some order. In that order, an
operation that returned before another was invoked comes before it. Source: Herlihy and Wing,
"Linearizability: a correctness condition for concurrent objects", 1990.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol, TypeVar, runtime_checkable

State = TypeVar("State", bound=Hashable)
Known = TypeVar("Known", bound=Hashable, contravariant=True)

NEVER: Final = 1 << 62  # the position of a return that did not happen


class Lost(Enum):
    """The type of `UNKNOWN`, which a type checker can thus distinguish from every real result."""

    UNKNOWN = "unknown"

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = Lost.UNKNOWN


@dataclass(frozen=True, slots=True)
class CompletedCall:
    """One call of one client on one object, and its result.

    Arguments:
        number: its place in the history, from 0; unique.
        client: the name of the caller; only shown to people.
        object_key: the object that was called; objects are checked separately.
        call: the request, a hashable value that the model understands.
        result: the response, hashable; UNKNOWN if it was lost.
        invoked: its position in time, before the request was sent.
        returned: its position in time, after the response came; NEVER if it was lost.
    """

    number: int
    client: str
    object_key: str
    call: Hashable
    result: Hashable
    invoked: int
    returned: int = NEVER


class Model(Protocol[State]):
    """The behaviour of one object, as a pure step function. States are hashable."""

    def initial(self, object_key: str) -> State:
        """Return the state before the first operation."""

    def step(self, state: State, call: Hashable, result: Hashable) -> Iterable[State]:
        """Return the states in which `call` may leave `state` if its result is `result`.

        The result is empty if that response is impossible there. It has several states if the model
        cannot tell which one is right. If `result` is UNKNOWN, it has every state that the call may
        leave behind, whatever its response was.
        """


@runtime_checkable
class ModelHints(Protocol[Known]):
    """Facts about a model that shorten the search. All of them must be true.

    Only `simplify` is given operations whose response was lost.
    """

    def never_changes(self, call: Hashable, result: Hashable) -> bool:
        """Return whether the call with this result changes no state that allows it.

        It may still narrow down which of several states is the right one.
        """

    def version(self, state: Known) -> Hashable | None:
        """Return a version that never recurs once the state is left; None: no version."""

    def needs(self, call: Hashable, result: Hashable) -> Hashable | None:
        """Return the version that a state must have for this result; None: no certain version."""

    def simplify(self, operations: Sequence[CompletedCall]) -> Sequence[CompletedCall]:
        """Return the same operations in the same order, without details that cannot matter.

        The search is shorter if more operations become equal.
        """
