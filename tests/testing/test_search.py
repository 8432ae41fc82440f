"""The search: agreement with brute force, and few steps on histories of many clients."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.testing.histories.linearizability import State
from strongroom.testing.history import CompletedCall, Model, SearchLimitError, check
from strongroom.testing.models import (
    Acquire,
    BlobModel,
    DeleteContent,
    GetContent,
    LeaseAnswer,
    LeaseModel,
    Observation,
    Put,
    PutIfAbsent,
    PutIfMatch,
    Release,
    Renew,
)
from tests.effort import examples
from tests.testing.histories import (
    DELETE,
    GET_404,
    TAKEN,
    Step,
    Unhinted,
    acquired,
    brute_force,
    cas,
    cas_refused,
    get,
    judge,
    lost,
    mutated,
    operations,
    put,
    released,
    simulate,
)

# Agreement with brute force ---------------------------------------------------------------------


def overlaps(count: int) -> list[list[tuple[int, int]]]:
    """Every way in which `count` operations may overlap, as (invoked, returned)."""
    if count == 0:
        return [[]]
    found = []
    for shape in overlaps(count - 1):
        last = 2 * count - 1
        for end in range(1, last + 1):  # the new operation begins first and ends before `end`
            moved = [tuple(m + 1 + (m + 1 >= end) for m in pair) for pair in shape]
            found.append([(0, end), *((a, b) for a, b in moved)])
    return found


BLOB_STEPS: list[Step] = [
    put("a", "1"), put("b", "2"), get("a", "1"), get("b", "2"), cas("b", "1", "2"),
    cas_refused("c", "1"), DELETE, GET_404, lost(Put("b")), lost(PutIfMatch("b", "1")),
    (PutIfAbsent("a"), Observation(201, "1")), lost(DeleteContent()),
]  # fmt: skip
LEASE_STEPS: list[Step] = [
    acquired("A"), acquired("B"), TAKEN, released("A"), (Renew("A"), LeaseAnswer(200)),
    (Renew("A"), LeaseAnswer(409)), lost(Acquire()), lost(Acquire("A")), lost(Release("A")),
]  # fmt: skip


def check_every_history(model: Model[State], steps: list[Step], length: int) -> dict[bool, int]:
    """Judge every history of `length` steps, overlapping in every way, as brute force does.

    Returns how many have an order, and how many have none.
    """
    verdicts = {True: 0, False: 0}
    for chosen in itertools.product(steps, repeat=length):
        for shape in overlaps(length):
            history = operations(
                *((step, *times) for step, times in zip(chosen, shape, strict=True))
            )
            expected = brute_force(history, model)
            verdicts[expected] += 1
            assert judge(history, model) == expected, history
    return verdicts


MODELS = pytest.mark.parametrize(
    ("model", "steps"),
    [(BlobModel(), BLOB_STEPS), (LeaseModel(), LEASE_STEPS)],
    ids=["blob", "lease"],
)


@MODELS
def test_agrees_with_brute_force_on_every_history_of_two(
    model: Model[State], steps: list[Step]
) -> None:
    assert min(check_every_history(model, steps, 2).values()) > 30


@examples(300)
@given(st.lists(st.integers(0, 99), min_size=4, max_size=6), st.randoms(use_true_random=False))
@MODELS
def test_agrees_with_brute_force_on_random_histories(
    model: Model[State], steps: list[Step], picks: list[int], random: Random
) -> None:
    chosen = [steps[pick % len(steps)] for pick in picks]
    moments = random.sample(range(2 * len(chosen)), 2 * len(chosen))
    pairs = (sorted(moments[2 * n : 2 * n + 2]) for n in range(len(chosen)))
    history = operations(*((step, a, b) for step, (a, b) in zip(chosen, pairs, strict=True)))
    expected = brute_force(history, model)
    assert judge(history, model) == expected
    assert judge(history, Unhinted(model)) == expected


WEIGHTS = st.sampled_from([[1, 1, 1, 1], [3, 0, 1, 0], [1, 5, 2, 0], [1, 0, 5, 1]])


@examples(60)
@given(st.randoms(use_true_random=False), st.integers(1, 12), WEIGHTS, st.sampled_from([0, 0.1]))
def test_what_an_atomic_blob_answers_is_accepted(
    random: Random, clients: int, weights: list[int], lost_share: float
) -> None:
    verdict = check(simulate(random, clients, 8, weights, lost_share), BlobModel())
    assert verdict.linearizable, verdict.explain()


@examples(200)
@given(st.randoms(use_true_random=False), st.integers(1, 3), WEIGHTS, st.sampled_from([0, 0.2]))
def test_mutated_histories_are_judged_as_by_brute_force(
    random: Random, clients: int, weights: list[int], lost_share: float
) -> None:
    history = mutated(random, simulate(random, clients, 6 // clients, weights, lost_share))
    assert judge(history, BlobModel()) == brute_force(history, BlobModel())


@pytest.mark.parametrize("weights", [[1, 1, 1, 1], [3, 0, 1, 0], [1, 30, 20, 0]])
@pytest.mark.parametrize("lost_share", [0, 0.02])
def test_thirty_two_clients_take_few_steps(weights: list[int], lost_share: float) -> None:
    history = simulate(Random(7), 32, 100, weights, lost_share)
    verdict = check(history, BlobModel(), max_steps=400_000)
    assert verdict.linearizable, verdict.explain()


def with_stale_read(history: Sequence[CompletedCall]) -> list[CompletedCall]:
    """The last read that saw a blob is given the answer of the first."""
    reads = [
        number
        for number, operation in enumerate(history)
        if isinstance(operation.result, Observation)
        and isinstance(operation.call, GetContent)
        and operation.result.status == 200
    ]
    stale = list(history)
    stale[reads[-1]] = replace(history[reads[-1]], result=history[reads[0]].result)
    return stale


@pytest.mark.parametrize("weights", [[3, 0, 1, 0], [1, 30, 20, 0]])
def test_a_stale_read_among_thirty_two_clients_is_found(weights: list[int]) -> None:
    history = with_stale_read(simulate(Random(7), 32, 30, weights, 0))
    verdict = check(history, BlobModel(), max_steps=400_000)
    assert not verdict.linearizable
    assert len(verdict.explain().splitlines()) < 40


def test_a_search_that_is_too_long_proves_nothing() -> None:
    with pytest.raises(SearchLimitError):
        check(simulate(Random(7), 32, 10, [1, 1, 1, 1], 0), BlobModel(), max_steps=100)


@examples(100)
@given(st.randoms(use_true_random=False), WEIGHTS)
def test_every_counterexample_is_one_by_brute_force(random: Random, weights: list[int]) -> None:
    history = mutated(random, simulate(random, 3, 2, weights, 0.1))
    example = check(history, BlobModel()).counterexample
    assert example is None or not brute_force(example.operations, BlobModel())
