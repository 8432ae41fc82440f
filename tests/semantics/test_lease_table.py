"""Every cell of the lease tables: states, verbs, relations of ids, up to the last tick."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from strongroom.errors.core import StorageError
from strongroom.semantics.core import lease as leases
from strongroom.semantics.core.lease import LeaseKind, LeaseState, LeaseUse
from strongroom.values import TICKS_PER_S, Lease
from tests.refusals import outcome

A = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"
B = "bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb"
C = "cccccccc-cccc-cccc-cccc-cccccccccccc"
X = "99999999-9999-9999-9999-999999999999"
NOW = 638_000_000_000_000_000
S = TICKS_PER_S

# Records that are in a state at NOW: for long, or by the last or first possible tick.
IN_STATE: dict[str, list[Lease | None]] = {
    "available": [None],
    "leased": [Lease(A, -1), Lease(A, 60, NOW + 30 * S), Lease(A, 15, NOW + 1)],
    "breaking": [Lease(A, -1, 0, NOW + 1), Lease(A, 60, NOW + 50 * S, NOW + 20 * S)],
    "broken": [Lease(A, -1, 0, NOW), Lease(A, 60, NOW + S, NOW - S), Lease(A, 15, NOW - S, NOW)],
    "expired": [Lease(A, 15, NOW), Lease(A, 60, NOW - 1000 * S)],
}
STATES = tuple(IN_STATE)

PRESENT = "409 LeaseAlreadyPresent"
ABSENT = "409 LeaseNotPresentWithLeaseOperation"
MISMATCH = "409 LeaseIdMismatchWithLeaseOperation"
NO_ACQUIRE = "409 LeaseIsBreakingAndCannotBeAcquired"
NO_CHANGE = "409 LeaseIsBreakingAndCannotBeChanged"
NO_RENEW = "409 LeaseIsBrokenAndCannotBeRenewed"

Verb = Callable[[Lease | None], Lease | None]

VERBS: dict[str, Verb] = {
    "acquire": lambda lease: leases.acquire(lease, 20, None, X, NOW),
    "acquire A": lambda lease: leases.acquire(lease, 20, A, X, NOW),
    "acquire B": lambda lease: leases.acquire(lease, -1, B, X, NOW),
    "break 0": lambda lease: leases.break_(lease, 0, NOW)[0],
    "break 60": lambda lease: leases.break_(lease, 60, NOW)[0],
    "change A->B": lambda lease: leases.change(lease, A, B, NOW),
    "change A->A": lambda lease: leases.change(lease, A, A, NOW),
    "change B->A": lambda lease: leases.change(lease, B, A, NOW),
    "change B->C": lambda lease: leases.change(lease, B, C, NOW),
    "renew A": lambda lease: leases.renew(lease, A, NOW),
    "renew B": lambda lease: leases.renew(lease, B, NOW),
    "release A": lambda lease: leases.release(lease, A, NOW),
    "release B": lambda lease: leases.release(lease, B, NOW),
}

# Columns: available, leased(A), breaking(A), broken(A), expired(A).
EXPECTED: dict[str, tuple[str, str, str, str, str]] = {
    "acquire": ("leased X", PRESENT, PRESENT, "leased X", "leased X"),
    "acquire A": ("leased A", "leased A", NO_ACQUIRE, "leased A", "leased A"),
    "acquire B": ("leased B", PRESENT, PRESENT, "leased B", "leased B"),
    "break 0": (ABSENT, "broken A", "broken A", "broken A", "broken A"),
    "break 60": (ABSENT, "breaking A", "breaking A", "broken A", "broken A"),
    "change A->B": (ABSENT, "leased B", NO_CHANGE, ABSENT, ABSENT),
    "change A->A": (ABSENT, "leased A", NO_CHANGE, ABSENT, ABSENT),
    "change B->A": (ABSENT, "leased A", NO_CHANGE, ABSENT, ABSENT),
    "change B->C": (ABSENT, MISMATCH, MISMATCH, ABSENT, ABSENT),
    "renew A": (MISMATCH, "leased A", NO_RENEW, NO_RENEW, "leased A"),
    "renew B": (MISMATCH, MISMATCH, MISMATCH, MISMATCH, MISMATCH),
    "release A": (MISMATCH, "available", "available", "available", "available"),
    "release B": (MISMATCH, MISMATCH, MISMATCH, MISMATCH, MISMATCH),
}
NAMES = {A: "A", B: "B", C: "C", X: "X"}


def described(lease: Lease | None) -> str:
    state = leases.state(lease, NOW).value
    return state if lease is None else f"{state} {NAMES[lease.id]}"


def cells(names: tuple[str, ...]) -> list[tuple[str, str, int]]:
    return [
        (name, state, number)
        for name in names
        for state in STATES
        for number in range(len(IN_STATE[state]))
    ]


@pytest.mark.parametrize(("verb", "state", "number"), cells(tuple(VERBS)))
def test_every_cell(verb: str, state: str, number: int) -> None:
    before = IN_STATE[state][number]
    expected = EXPECTED[verb][STATES.index(state)]
    seen = ""

    def run() -> None:
        nonlocal seen
        seen = described(VERBS[verb](before))

    refusal = outcome(run)
    assert (seen or refusal) == expected


@pytest.mark.parametrize("state", STATES)
def test_records_are_in_the_state_they_stand_for(state: str) -> None:
    for lease in IN_STATE[state]:
        assert leases.state(lease, NOW).value == state
        locked = state in ("leased", "breaking")
        assert leases.status(lease, NOW) == ("locked" if locked else "unlocked")


MISSING = "412 LeaseIdMissing"
BLOB_ABSENT = "412 LeaseNotPresentWithBlobOperation"
BLOB_OTHER = "412 LeaseIdMismatchWithBlobOperation"
BOX_ABSENT = "412 LeaseNotPresentWithContainerOperation"
BOX_OTHER = "412 LeaseIdMismatchWithContainerOperation"
LOST = "412 LeaseLost"
OK5 = ("ok",) * 5


def guards(of: str, reads: LeaseUse, writes: LeaseUse) -> dict[tuple[LeaseUse, str | None], Any]:
    """Return the rows of a share or a file."""
    absent, other = f"412 LeaseNotPresentWith{of}Operation", f"412 LeaseIdMismatchWith{of}Operation"
    with_ids = {A: (absent, "ok", "ok", LOST, LOST), B: (absent, other, other, LOST, LOST)}
    return {
        (reads, None): OK5,
        (writes, None): ("ok", MISSING, MISSING, "ok", "ok"),
        **{(use, given): row for use in (reads, writes) for given, row in with_ids.items()},
    }


GUARDS: dict[tuple[LeaseUse, str | None], tuple[str, ...]] = {
    (LeaseUse.NONE, None): OK5,
    (LeaseUse.NONE, A): OK5,
    (LeaseUse.NONE, B): OK5,
    (LeaseUse.WRITE, None): ("ok", MISSING, MISSING, "ok", "ok"),
    (LeaseUse.WRITE, A): (BLOB_ABSENT, "ok", "ok", LOST, LOST),
    (LeaseUse.WRITE, B): (BLOB_ABSENT, BLOB_OTHER, BLOB_OTHER, LOST, LOST),
    (LeaseUse.READ, None): OK5,
    (LeaseUse.READ, A): (BLOB_ABSENT, "ok", "ok", LOST, LOST),
    (LeaseUse.READ, B): (BLOB_ABSENT, BLOB_OTHER, BLOB_OTHER, LOST, LOST),
    (LeaseUse.DELETE_CONTAINER, None): ("ok", MISSING, MISSING, "ok", "ok"),
    (LeaseUse.DELETE_CONTAINER, A): (BOX_ABSENT, "ok", "ok", LOST, LOST),
    (LeaseUse.DELETE_CONTAINER, B): (BOX_ABSENT, BOX_OTHER, BOX_OTHER, LOST, LOST),
    (LeaseUse.READ_CONTAINER, None): OK5,
    (LeaseUse.READ_CONTAINER, A): (BOX_ABSENT, "ok", "ok", LOST, LOST),
    (LeaseUse.READ_CONTAINER, B): (BOX_ABSENT, BOX_OTHER, BOX_OTHER, LOST, LOST),
    # F-LSE-02, F-LSE-03
    **guards("Share", LeaseUse.READ_SHARE, LeaseUse.WRITE_SHARE),
    **guards("File", LeaseUse.READ_FILE, LeaseUse.WRITE_FILE),
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize(("use", "given"), list(GUARDS))
def test_every_guard(use: LeaseUse, given: str | None, state: str) -> None:
    for lease in IN_STATE[state]:
        seen = outcome(partial(leases.guard, lease, given, use, NOW))
        assert seen == GUARDS[use, given][STATES.index(state)]


def test_both_tables_are_complete() -> None:
    verbs = {(verb, given) for _, verb, given in leases.TABLE}
    assert len(leases.TABLE) == len(verbs) * len(LeaseState)
    uses = {(use, given) for _, use, given in leases.GUARDS}
    assert len(leases.GUARDS) == len(uses) * len(LeaseState)
    assert {use for use, _ in uses} == set(LeaseUse)


def message(call: Callable[[], object]) -> str:
    with pytest.raises(StorageError) as caught:
        call()
    return caught.value.message


def test_messages_name_what_is_leased() -> None:
    held, box = Lease(A, -1), LeaseKind.CONTAINER
    assert (
        message(lambda: leases.break_(None, 0, NOW)) == "There is currently no lease on the blob."
    )
    assert message(lambda: leases.break_(None, 0, NOW, box)).endswith("on the container.")
    mismatch = "The lease ID specified did not match the lease ID for the container."
    assert message(lambda: leases.renew(held, B, NOW, box)) == mismatch
    lost = message(lambda: leases.guard(Lease(A, 15, NOW), A, LeaseUse.WRITE, NOW))
    assert lost == "A lease ID was specified, but the lease for the blob has expired."
    missing = message(lambda: leases.guard(held, None, LeaseUse.DELETE_CONTAINER, NOW))
    assert missing.startswith("There is currently a lease on the container and")
