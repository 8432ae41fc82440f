"""Histories for the tests of the checker: written by hand, simulated, and judged by brute force."""

import itertools
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Generic

from strongroom.testing.histories.linearizability import State
from strongroom.testing.history import NEVER, UNKNOWN, CompletedCall, Model, check
from strongroom.testing.models import (
    Acquire,
    DeleteContent,
    GetContent,
    LeaseAnswer,
    Observation,
    Put,
    PutIfMatch,
    Release,
)

Step = tuple[Hashable, Hashable]


def put(content: str, etag: str) -> Step:
    return Put(content), Observation(201, etag)


def cas(content: str, old: str, new: str) -> Step:
    return PutIfMatch(content, old), Observation(201, new)


def cas_refused(content: str, old: str) -> Step:
    return PutIfMatch(content, old), Observation(412)


def get(content: str, etag: str) -> Step:
    return GetContent(), Observation(200, etag, content)


def lost(call: Hashable) -> Step:
    return call, UNKNOWN


GET_404: Step = (GetContent(), Observation(404))
DELETE: Step = (DeleteContent(), Observation(202))


def operations(*timed: tuple[Step, int, int]) -> list[CompletedCall]:
    """Return operations from (step, invoked, returned); a lost answer never returns."""
    return [
        CompletedCall(
            number, f"client {number}", "blob", call, result, begin,
            NEVER if result is UNKNOWN else end,
        )
        for number, ((call, result), begin, end) in enumerate(timed)
    ]  # fmt: skip


def in_sequence(*steps: Step) -> list[CompletedCall]:
    return operations(*((step, 2 * n, 2 * n + 1) for n, step in enumerate(steps)))


def all_at_once(*steps: Step) -> list[CompletedCall]:
    return operations(*((step, n, 1000 + n) for n, step in enumerate(steps)))


def judge(history: Iterable[CompletedCall], model: Model[State]) -> bool:
    return check(history, model).linearizable


def acquired(lease_id: str, proposed: str | None = None) -> Step:
    return Acquire(proposed), LeaseAnswer(201, lease_id)


TAKEN: Step = (Acquire(), LeaseAnswer(409))


def released(lease_id: str) -> Step:
    return Release(lease_id), LeaseAnswer(200)


@dataclass(frozen=True)
class Unhinted(Generic[State]):
    """A model without its hints, so that the search cannot use the model's reductions."""

    model: Model[State]

    def initial(self, object_key: str) -> State:
        return self.model.initial(object_key)

    def step(self, state: State, call: Hashable, result: Hashable) -> Iterable[State]:
        return self.model.step(state, call, result)


def brute_force(history: Sequence[CompletedCall], model: Model[State]) -> bool:
    """Try every order of every choice of the operations that may not have happened."""
    certain = [operation for operation in history if operation.returned < NEVER]
    maybe = [operation for operation in history if operation.returned == NEVER]
    return any(
        keeps_time(order) and allows(order, model)
        for count in range(len(maybe) + 1)
        for chosen in itertools.combinations(maybe, count)
        for order in itertools.permutations([*certain, *chosen])
    )


def keeps_time(order: Sequence[CompletedCall]) -> bool:
    return not any(b.returned < a.invoked for a, b in itertools.combinations(order, 2))


def allows(order: Sequence[CompletedCall], model: Model[State]) -> bool:
    states: set[State] = {model.initial("blob")}
    for operation in order:
        states = {
            after
            for state in states
            for after in model.step(state, operation.call, operation.result)
        }
    return bool(states)


class SimulatedBlob:
    """A blob that answers every call at one instant between its invocation and its return."""

    def __init__(self) -> None:
        self._etags = itertools.count(1)
        self.current: tuple[str, Hashable] | None = None

    def answer(self, call: Hashable) -> Observation:
        match call:
            case GetContent():
                return Observation(200, *self.current) if self.current else Observation(404)
            case DeleteContent():
                answer = Observation(202 if self.current else 404)
                self.current = None
                return answer
            case PutIfMatch() if not self.current or self.current[0] != call.etag:
                return Observation(412)
            case Put() | PutIfMatch():
                self.current = (f"e{next(self._etags)}", call.content)
                return Observation(201, self.current[0])
        raise AssertionError(call)


@dataclass
class Client:
    """One client of the simulation, and its state."""

    calls_left: int
    known_etag: str = "none"
    number: int = -1
    call: Hashable = None
    answer: Observation | None = None
    invoked: int = -1


def simulate(random: Random, clients: int, calls: int, weights: list[int], lost_share: float) -> (
    list[CompletedCall]
):  # fmt: skip
    """Return a history of `clients` that overlap at random, each answered atomically."""
    blob, position, numbers, history = SimulatedBlob(), 0, itertools.count(), list[CompletedCall]()
    crowd = [Client(calls) for _ in range(clients)]
    while busy := [client for client in crowd if client.calls_left or client.call is not None]:
        client = random.choice(busy)
        position += 1
        if client.call is None:
            client.calls_left -= 1
            client.number, client.invoked = next(numbers), position
            content = f"v{client.number}"
            client.call = random.choices(
                [
                    Put(content),
                    PutIfMatch(content, client.known_etag),
                    GetContent(),
                    DeleteContent(),
                ],
                weights,
            )[0]
        elif client.answer is None:
            client.answer = blob.answer(client.call)
            client.known_etag = client.answer.etag or client.known_etag
        else:
            unseen = random.random() < lost_share
            result = UNKNOWN if unseen else client.answer
            end = NEVER if unseen else position
            name = f"c{crowd.index(client)}"
            history.append(
                CompletedCall(client.number, name, "blob", client.call, result, client.invoked, end)
            )
            client.call = client.answer = None
    return sorted(history, key=lambda operation: operation.number)


def mutated(random: Random, history: Sequence[CompletedCall]) -> list[CompletedCall]:
    """Return the history with the answers of two operations of one kind exchanged."""
    changed = list(history)
    a, b = random.sample(range(len(history)), 2)
    if type(history[a].call) is type(history[b].call) and NEVER not in (
        history[a].returned,
        history[b].returned,
    ):
        changed[a] = replace(history[a], result=history[b].result)
        changed[b] = replace(history[b], result=history[a].result)
    return changed
