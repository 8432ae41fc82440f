"""The recorder, and known histories: accepted ones, refused ones, and their presentation."""

import re
import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from random import Random

import pytest

from strongroom.testing.histories.linearizability import State
from strongroom.testing.history import (
    NEVER,
    UNKNOWN,
    CompletedCall,
    History,
    Model,
    PendingCall,
    check,
)
from strongroom.testing.models import (
    Acquire,
    BlobModel,
    DeleteContent,
    DeleteIfMatch,
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
from tests.testing.histories import (
    DELETE,
    GET_404,
    TAKEN,
    SimulatedBlob,
    Unhinted,
    acquired,
    all_at_once,
    brute_force,
    cas,
    cas_refused,
    get,
    in_sequence,
    judge,
    lost,
    operations,
    put,
    released,
)

# The blob model ---------------------------------------------------------------------------------

ACCEPTED_BLOBS = {
    "nothing happened": [],
    "write, then read": in_sequence(put("a", "1"), get("a", "1")),
    "the last of two writes is read": in_sequence(put("a", "1"), put("b", "2"), get("b", "2")),
    "compare-and-swap chain": in_sequence(put("a", "1"), cas("b", "1", "2"), cas("c", "2", "3")),
    "one winner of two": [
        *in_sequence(put("a", "1")),
        *operations((cas("b", "1", "2"), 10, 20), (cas_refused("c", "1"), 11, 21)),
    ],
    "concurrent writes, the first invoked is read": operations(
        (put("a", "1"), 1, 10), (put("b", "2"), 2, 9), (get("a", "1"), 11, 12)
    ),
    "concurrent read sees the old content": operations(
        (put("a", "1"), 1, 2), (put("b", "2"), 3, 10), (get("a", "1"), 4, 5), (get("b", "2"), 6, 7)
    ),
    "swap without a blob is refused": in_sequence(cas_refused("a", "1"), GET_404),
    "delete and create": in_sequence(
        put("a", "1"), DELETE, GET_404, (PutIfAbsent("b"), Observation(201, "2")), get("b", "2"),
        (PutIfAbsent("c"), Observation(409)), (DeleteIfMatch("1"), Observation(412)),
        (DeleteIfMatch("2"), Observation(202)), (DeleteIfMatch("2"), Observation(404)),
        (DeleteContent(), Observation(404)),
    ),
    "a lost write happened": in_sequence(put("a", "1"), lost(Put("b")), get("b", "2")),
    "a lost write did not happen": in_sequence(put("a", "1"), lost(Put("b")), get("a", "1")),
    "a lost write happens long after": in_sequence(
        lost(Put("b")), put("a", "1"), get("a", "1"), get("b", "2")
    ),
    "a lost swap happened, and its ETag is learnt": in_sequence(
        put("a", "1"), lost(PutIfMatch("b", "1")), get("b", "2"), cas("c", "2", "3")
    ),
    "a lost swap makes another fail": in_sequence(
        put("a", "1"), lost(PutIfMatch("b", "1")), cas_refused("c", "1"), get("b", "2")
    ),
    "a lost delete happened late": in_sequence(
        lost(DeleteContent()), put("a", "1"), get("a", "1"), GET_404
    ),
    "a lost delete with a condition": in_sequence(
        put("a", "1"), lost(DeleteIfMatch("1")), GET_404, lost(DeleteIfMatch("1")), put("b", "2"),
        get("b", "2"),
    ),
    "lost creation": in_sequence(lost(PutIfAbsent("a")), get("a", "1"), lost(PutIfAbsent("b"))),
    "a write whose ETag was not looked at": in_sequence(
        (Put("a"), Observation(201)),
        (GetContent(), Observation(200, None, "a")),
        (GetContent(), Observation(200, "1")),
    ),
    "lost read": in_sequence(put("a", "1"), lost(GetContent()), get("a", "1")),
}  # fmt: skip

REFUSED_BLOBS = {
    "lost update": in_sequence(put("a", "1"), cas("b", "1", "2"), get("a", "1")),
    "stale read": in_sequence(put("a", "1"), put("b", "2"), get("a", "1")),
    "a value that was never written": in_sequence(put("a", "1"), get("x", "1")),
    "an ETag that was never given": in_sequence(put("a", "1"), get("a", "7")),
    "two swaps win on one ETag": [
        *in_sequence(put("a", "1")),
        *operations((cas("b", "1", "2"), 10, 20), (cas("c", "1", "3"), 11, 21)),
    ],
    "read before the write began": operations((get("a", "1"), 1, 2), (put("a", "1"), 3, 4)),
    "new, then old": operations(
        (put("a", "1"), 1, 2), (put("b", "2"), 3, 10), (get("b", "2"), 4, 5), (get("a", "1"), 6, 7)
    ),
    "two readers see two orders": operations(
        (put("a", "1"), 1, 50), (put("b", "2"), 2, 51),
        (get("a", "1"), 3, 4), (get("b", "2"), 5, 6),
        (get("b", "2"), 3, 4), (get("a", "1"), 5, 6),
    ),
    "refused though the ETag was right": in_sequence(put("a", "1"), cas_refused("b", "1")),
    "all swaps are refused": [
        *in_sequence(put("a", "1")),
        *operations((cas_refused("b", "1"), 10, 20), (cas_refused("c", "1"), 11, 21)),
    ],
    "an ETag comes back": in_sequence(put("a", "1"), put("b", "2"), put("c", "1")),
    "the same ETag twice": in_sequence(put("a", "1"), put("b", "1")),
    "read after the delete": in_sequence(put("a", "1"), DELETE, get("a", "1")),
    "missing after the write": in_sequence(put("a", "1"), GET_404),
    "created twice": all_at_once(
        (PutIfAbsent("a"), Observation(201, "1")), (PutIfAbsent("b"), Observation(201, "2"))
    ),
    "nobody may create": all_at_once((PutIfAbsent("a"), Observation(409))),
    "deleted twice": [*in_sequence(put("a", "1")), *operations((DELETE, 9, 12), (DELETE, 10, 11))],
    "a lost write is seen, then not": in_sequence(
        put("a", "1"), lost(Put("b")), get("b", "2"), get("a", "1")
    ),
    "a lost write hides a lost update": in_sequence(
        put("a", "1"), lost(Put("b")), get("b", "2"), cas("c", "1", "3")
    ),
    "a lost write happens before it began": in_sequence(get("b", "2"), lost(Put("b"))),
    "a lost swap cannot win against a newer ETag": in_sequence(
        put("a", "1"), put("b", "2"), lost(PutIfMatch("c", "1")), get("c", "3")
    ),
    "a lost swap can happen once only": in_sequence(
        put("a", "1"), lost(PutIfMatch("b", "1")), get("b", "2"), put("c", "3"), get("b", "4")
    ),
    "a lost write does not bring a gone ETag back": in_sequence(
        put("a", "1"), put("b", "2"), lost(Put("c")), cas("d", "1", "3")
    ),
    "refused with the ETag that the lost write had": in_sequence(
        lost(Put("a")),
        (GetContent(), Observation(200, None, "a")),
        cas_refused("b", "7"),
        get("a", "7"),
    ),
    "an answer outside the rules": in_sequence((Put("a"), Observation(500))),
}  # fmt: skip


def renumbered(history: Sequence[CompletedCall]) -> list[CompletedCall]:
    return [replace(operation, number=number) for number, operation in enumerate(history)]


@pytest.mark.parametrize("name", ACCEPTED_BLOBS)
def test_histories_of_a_linearizable_blob(name: str) -> None:
    verdict = check(renumbered(ACCEPTED_BLOBS[name]), BlobModel())
    assert verdict.linearizable, verdict.explain()


@pytest.mark.parametrize("name", REFUSED_BLOBS)
def test_histories_that_no_blob_has(name: str) -> None:
    history = renumbered(REFUSED_BLOBS[name])
    assert not judge(history, BlobModel())
    assert not judge(history, Unhinted(BlobModel()))


def test_an_object_may_be_there_at_first() -> None:
    history = in_sequence(cas("b", "1", "2"), get("b", "2"))
    assert judge(history, BlobModel(etag="1", content="a"))
    assert not judge(history, BlobModel())


# The lease model --------------------------------------------------------------------------------


ACCEPTED_LEASES = {
    "take, keep, give back, take": in_sequence(
        acquired("A"), (Renew("A"), LeaseAnswer(200)), TAKEN, released("A"), acquired("B")
    ),
    "the holder takes it again": in_sequence(acquired("A", "A"), acquired("A", "A"), TAKEN),
    "one of two": all_at_once(acquired("A"), TAKEN),
    "hand-over while others ask": operations(
        (acquired("A"), 1, 2), (TAKEN, 3, 9), (released("A"), 4, 8), (acquired("B"), 5, 7)
    ),
    "others may not use it": in_sequence(
        acquired("A"), (Renew("B"), LeaseAnswer(409)), (Release("B"), LeaseAnswer(409)), TAKEN
    ),
    "a lost acquisition holds it": in_sequence(lost(Acquire()), TAKEN, TAKEN),
    "a lost acquisition of a known id": in_sequence(lost(Acquire("A")), TAKEN, released("A")),
    "a lost acquisition did not happen": in_sequence(lost(Acquire("A")), acquired("B")),
    "a lost release frees it late": in_sequence(
        acquired("A"), lost(Release("A")), TAKEN, acquired("B")
    ),
    "a lost renewal": in_sequence(acquired("A"), lost(Renew("A")), released("A")),
}

REFUSED_LEASES = {
    "two hold it": all_at_once(acquired("A"), acquired("B")),
    "taken though free": in_sequence(acquired("A"), released("A"), TAKEN),
    "kept after it was given back": in_sequence(
        acquired("A"), released("A"), (Renew("A"), LeaseAnswer(200))
    ),
    "given back twice": in_sequence(acquired("A"), released("A"), released("A")),
    "given back by another": in_sequence(acquired("A"), released("B")),
    "another id than proposed": in_sequence(acquired("A", "B")),
    "the holder is refused": in_sequence(acquired("A"), (Renew("A"), LeaseAnswer(409))),
    "the holder may not give back": in_sequence(acquired("A"), (Release("A"), LeaseAnswer(409))),
    "a lost release did not happen, and did": in_sequence(
        acquired("A"), lost(Release("A")), acquired("B"), (Renew("A"), LeaseAnswer(200))
    ),
    "an unseen id is used": in_sequence(lost(Acquire()), TAKEN, (Renew("A"), LeaseAnswer(200))),
}


@pytest.mark.parametrize("name", ACCEPTED_LEASES)
def test_histories_of_a_linearizable_lease(name: str) -> None:
    verdict = check(ACCEPTED_LEASES[name], LeaseModel())
    assert verdict.linearizable, verdict.explain()


@pytest.mark.parametrize("name", REFUSED_LEASES)
def test_histories_that_no_lease_has(name: str) -> None:
    assert not judge(REFUSED_LEASES[name], LeaseModel())


@pytest.mark.parametrize(
    ("model", "call"),
    [(BlobModel(), GetContent()), (LeaseModel(), Acquire())],
    ids=["blob", "lease"],
)
def test_a_model_refuses_what_it_does_not_know(model: Model[State], call: Hashable) -> None:
    with pytest.raises(TypeError, match="not a call"):
        check(in_sequence(("what?", "that")), Unhinted(model))
    with pytest.raises(TypeError, match="not an answer"):
        check(in_sequence((call, "that")), Unhinted(model))


# The counterexample -----------------------------------------------------------------------------


def test_the_counterexample_is_the_shortest_beginning_without_needless_reads() -> None:
    history = in_sequence(
        put("a", "1"), get("a", "1"), cas("b", "1", "2"), get("b", "2"), get("a", "1"),
        put("c", "3"), get("c", "3"),
    )  # fmt: skip
    example = check(history, BlobModel()).counterexample
    assert example is not None
    assert [operation.number for operation in example.operations] == [0, 2, 4]
    assert not brute_force(example.operations, BlobModel())


def test_the_counterexample_is_a_table_for_people() -> None:
    history = [
        *in_sequence(put("a", "1")),
        *operations((cas("b", "1", "2"), 10, 20), (cas("c", "1", "3"), 11, 21)),
    ]
    lines = check(renumbered(history), BlobModel()).explain().splitlines()
    assert lines[:2] == [
        "'blob' is not linearizable: no order of these operations explains the answer of #2.",
        "The longest order that can be explained has 1 of 3 operations and leaves: "
        "blob with etag=1 content='a'.",
    ]
    assert [re.split(" {2,}", line) for line in lines[2:]] == [
        ["#", "order", "client", "call", "answer", "time"],
        ["0", "1", "client 0", repr(Put("a")), repr(Observation(201, "1")), "[]"],
        ["1", "-", "client 0", repr(PutIfMatch("b", "1")), repr(Observation(201, "2")), "[-]"],
        ["2", "-", "client 1", repr(PutIfMatch("c", "1")), repr(Observation(201, "3")), "[-]"],
    ]
    assert lines[4].index("[") < lines[5].index("[") < lines[4].index("]") < lines[5].index("]")


def test_a_long_counterexample_shows_its_ends() -> None:
    writes = [put(f"v{n}", f"e{n}") for n in range(200)]
    text = check(in_sequence(*writes, get("v0", "e0")), BlobModel()).explain()
    assert "operations are not shown" in text
    assert "#200." in text
    assert len(text.splitlines()) < 40


# The recorder -----------------------------------------------------------------------------------


def test_the_recorder_keeps_the_order_of_what_happened() -> None:
    history = History()
    first = history.invoke("anna", "blob", Put("a"))
    second = history.invoke("bob", "blob", GetContent())
    first.returned(Observation(201, "1"))
    second.returned(Observation(404))
    open_call = history.invoke("carl", "blob", GetContent())
    anna, bob, carl = history.operations()
    assert anna.invoked < bob.invoked < anna.returned < bob.returned < carl.invoked
    assert (carl.result, carl.returned) == (UNKNOWN, NEVER)
    assert check(history, BlobModel()).linearizable
    open_call.returned(Observation(404))
    assert not check(history, BlobModel()).linearizable


@pytest.mark.parametrize(
    "tell", [lambda call: call.returned(Observation(404)), lambda call: call.unknown()]
)
def test_the_end_of_a_call_is_told_once(tell: Callable[[PendingCall], None]) -> None:
    call = History().invoke("anna", "blob", GetContent())
    tell(call)
    with pytest.raises(ValueError, match="twice"):
        call.returned(Observation(404))
    with pytest.raises(ValueError, match="twice"):
        call.unknown()


def test_an_answer_is_not_the_lost_one() -> None:
    with pytest.raises(ValueError, match="unknown"):
        History().invoke("anna", "blob", GetContent()).returned(UNKNOWN)


def test_objects_are_judged_one_by_one() -> None:
    history = History()
    for object_key in ("one", "two"):
        history.invoke("anna", object_key, Put("a")).returned(Observation(201, "1"))
    assert check(history, BlobModel()).explain() == "linearizable (2 objects)"
    history.invoke("anna", "two", GetContent()).returned(Observation(404))
    example = check(history, BlobModel()).counterexample
    assert example is not None
    assert example.object_key == "two"


def test_threads_record_a_locked_register_that_is_accepted() -> None:
    blob, lock, history = SimulatedBlob(), threading.Lock(), History()

    def work(name: str, random: Random) -> None:
        etag = "none"
        for turn in range(40):
            call: Hashable = random.choice(
                [GetContent(), PutIfMatch((name, turn), etag), Put(name)]
            )
            handle = history.invoke(name, "blob", call)
            with lock:
                answer = blob.answer(call)
            handle.returned(answer)
            etag = answer.etag or etag

    threads = [threading.Thread(target=work, args=(f"t{n}", Random(n))) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    verdict = check(history, BlobModel())
    assert len(history.operations()) == 320
    assert verdict.linearizable, verdict.explain()
