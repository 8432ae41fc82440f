"""The search for a linearization: a sequential order of concurrent operations.

It is Wing and Gong's search ("Testing and verifying concurrent objects", 1993). Lowe added the
cache of (linearized set, state) pairs ("Testing for linearizability", 2017). The search walks a
linked list, and removes and restores operations. Four reductions keep the result exact:

- an operation that cannot change the state, and is allowed now, is taken at once;
- of pending operations with equal call and result, only the one that must return first is tried;
- an operation that may not have happened is not tried where it would change nothing;
- a state is dropped if it leaves a version that never recurs, but that a later response shows.

If a model allows several states, the search follows all of them at once.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic

from strongroom.testing.histories.linearizability import (
    NEVER,
    CompletedCall,
    Model,
    ModelHints,
    State,
)


class SearchLimitError(Exception):
    """The search reached its limit: the history is neither accepted nor rejected."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result of a search.

    Arguments:
        complete: whether there is an order of all operations that returned.
        order: the numbers of the operations in that order; if there is none, the longest prefix.
        states: the states in which that order may leave the object.
    """

    complete: bool
    order: tuple[int, ...]
    states: frozenset[Hashable]


def find_order(
    operations: Sequence[CompletedCall], model: Model[State], object_key: str, max_steps: int
) -> SearchResult:
    """Search for an order of the operations of one object that the model allows.

    Arguments:
        operations: all operations of one object. One with `returned == NEVER` may have happened or
            not.
        model: the behaviour of the object; it may also implement `ModelHints`.
        object_key: the argument of the model's `initial`.
        max_steps: the limit of model steps.

    Returns: the order that was found, or the longest prefix of one.

    Raises:
        SearchLimitError: the limit was reached.
    """
    ordered: Sequence[CompletedCall] = sorted(operations, key=lambda operation: operation.invoked)
    if isinstance(model, ModelHints):
        ordered = model.simplify(ordered)
    return _Search(ordered, model, max_steps).run(object_key)


class _Waiting:
    """The remaining operations in order of invocation, as a doubly linked list of indexes.

    Removing and restoring take constant time, if operations are restored in reverse order.
    """

    def __init__(self, operations: Sequence[CompletedCall]) -> None:
        self._operations = operations
        self._end = len(operations)
        self._after = [*range(1, self._end + 1), 0]
        self._before = [self._end, *range(self._end)]
        self._kind = _kinds(operations)
        self.must_return = sum(operation.returned < NEVER for operation in operations)

    def lift(self, index: int) -> None:
        before, after = self._before[index], self._after[index]
        self._after[before], self._before[after] = after, before
        self.must_return -= self._operations[index].returned < NEVER

    def put_back(self, index: int) -> None:
        self._after[self._before[index]] = self._before[self._after[index]] = index
        self.must_return += self._operations[index].returned < NEVER

    def pending(self) -> list[int]:
        """Return the operations that may come next, one of each kind.

        Those were invoked before any remaining operation returned. The one that must return first
        comes first, since later operations wait for it.
        """
        deadline = NEVER
        first: dict[int, int] = {}
        for index in self._indexes():
            operation = self._operations[index]
            if operation.invoked > deadline:
                break
            deadline = min(deadline, operation.returned)
            rival = first.setdefault(self._kind[index], index)
            if operation.returned < self._operations[rival].returned:
                first[self._kind[index]] = index
        return sorted(first.values(), key=lambda index: self._operations[index].returned)

    def _indexes(self) -> Iterator[int]:
        index = self._after[self._end]
        while index != self._end:
            yield index
            index = self._after[index]


def _kinds(operations: Sequence[CompletedCall]) -> list[int]:
    numbers: dict[tuple[Hashable, Hashable], int] = {}
    return [
        numbers.setdefault((operation.call, operation.result), len(numbers))
        for operation in operations
    ]


@dataclass(slots=True)
class _Node(Generic[State]):
    """A node of the search: the operations taken to reach it, and the choices left to try."""

    states: frozenset[State]
    taken: list[int]
    choices: list[tuple[int, frozenset[State]]]


class _Search(Generic[State]):
    def __init__(
        self, operations: Sequence[CompletedCall], model: Model[State], limit: int
    ) -> None:
        self._operations = operations
        self._model = model
        self._hints: ModelHints[State] | None = model if isinstance(model, ModelHints) else None
        self._steps_left = limit
        self._waiting = _Waiting(operations)
        self._unchanging = [self._is_quiet(operation) for operation in operations]
        self._operations_at_version = self._versions_shown()
        self._taken_bits = 0
        self._seen: set[tuple[int, frozenset[State]]] = set()
        self._path: list[_Node[State]] = []
        self._best = SearchResult(False, (), frozenset())

    def run(self, object_key: str) -> SearchResult:
        self._enter([], frozenset([self._model.initial(object_key)]))
        while self._path:
            if self._waiting.must_return == 0:
                return SearchResult(True, self._order(), self._path[-1].states)
            node = self._path[-1]
            if node.choices:
                index, states = node.choices.pop()
                self._take(index)
                self._enter([index], states)
            else:
                self._leave(node)
        return self._best

    def _enter(self, taken: list[int], states: frozenset[State]) -> None:
        """Continue from `states`, unless the search has been there before."""
        node = _Node(states, taken, [])
        while self._take_quiet(node):
            pass
        self._path.append(node)
        key = (self._taken_bits, states)
        if key in self._seen:
            return
        self._seen.add(key)
        node.choices = self._choices(states)
        if not node.choices:
            self._note_dead_end()

    def _leave(self, node: _Node[State]) -> None:
        self._path.pop()
        for index in reversed(node.taken):
            self._waiting.put_back(index)
            self._taken_bits ^= 1 << index

    def _take(self, index: int) -> None:
        self._waiting.lift(index)
        self._taken_bits |= 1 << index

    def _take_quiet(self, node: _Node[State]) -> bool:
        """Take the pending operations that are allowed now and change nothing.

        Returns: whether there was any.
        """
        ready = [
            index
            for index in self._waiting.pending()
            if self._unchanging[index] and self._next(index, node.states) == node.states
        ]
        for index in ready:
            self._take(index)
        node.taken += ready
        return bool(ready)

    def _choices(self, states: frozenset[State]) -> list[tuple[int, frozenset[State]]]:
        """Return the operations that may come next, each with the states that it leads to.

        The most promising operation is the last.
        """
        choices = []
        for index in self._waiting.pending():
            after = self._next(index, states)
            optional = self._operations[index].returned == NEVER
            if after and not (optional and after <= states):
                choices.append((index, after))
        choices.reverse()
        return choices

    def _next(self, index: int, states: frozenset[State]) -> frozenset[State]:
        operation = self._operations[index]
        self._steps_left -= len(states)
        if self._steps_left < 0:
            raise SearchLimitError("the search limit is used up; no verdict")
        return frozenset(
            after
            for state in states
            for after in self._model.step(state, operation.call, operation.result)
            if not self._leaves_shown_version(index, state, after)
        )

    def _leaves_shown_version(self, index: int, state: State, after: State) -> bool:
        if self._hints is None or state == after:
            return False
        version = self._hints.version(state)
        if version is None or version == self._hints.version(after):
            return False
        return bool(self._operations_at_version.get(version, 0) & ~(self._taken_bits | 1 << index))

    def _is_quiet(self, operation: CompletedCall) -> bool:
        if self._hints is None or operation.returned == NEVER:
            return False
        return self._hints.never_changes(operation.call, operation.result)

    def _versions_shown(self) -> dict[Hashable, int]:
        """Return for every version, as bits, the operations that are only possible at it."""
        shown: dict[Hashable, int] = {}
        if self._hints is None:
            return shown
        for index, operation in enumerate(self._operations):
            if operation.returned == NEVER:
                continue
            version = self._hints.needs(operation.call, operation.result)
            if version is not None:
                shown[version] = shown.get(version, 0) | 1 << index
        return shown

    def _order(self) -> tuple[int, ...]:
        return tuple(self._operations[index].number for node in self._path for index in node.taken)

    def _note_dead_end(self) -> None:
        length = sum(len(node.taken) for node in self._path)
        if length > len(self._best.order) or not self._best.states:
            self._best = SearchResult(False, self._order(), self._path[-1].states)
