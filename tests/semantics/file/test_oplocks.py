"""Leases and oplocks: each cause beside each state, answers, time-outs, and what is granted."""

from __future__ import annotations

from itertools import product

import pytest

from strongroom.errors import file as file_errors
from strongroom.semantics.file import grants, oplocks
from strongroom.semantics.file.accesses import FileOperation
from strongroom.semantics.file.grants import GrantLimits
from strongroom.semantics.file.oplocks import (
    RH,
    RW,
    RWH,
    Caching,
    CachingHolder,
    CachingKind,
    Cause,
    N,
    OplockLevel,
    R,
)

KEY = (b"client", b"lease")
STATES = {"-": N, "R": R, "RH": RH, "RW": RW, "RWH": RWH}
NAMES = {state: name for name, state in STATES.items()}
LEASES = (CachingKind.LEASE_V1, CachingKind.LEASE_V2)
COLUMNS = ("R", "RH", "RW", "RWH")
LEVELS = ("R", "RW", "RWH")

# smb.md 3.6, "operation by another key"; w = waits. "." = nothing happens.
LEASE_TABLE = {
    Cause.OPEN: (".", ".", "R w", "RH w"),
    Cause.OVERWRITE: ("-", "-", "- w", "- w"),
    Cause.SHARE_CONFLICT: (".", "R w", ".", "RW w"),
    Cause.NAME_CHANGE: (".", "R w", ".", "RW w"),
    Cause.UNLINK: (".", "R w", ".", "RW w"),
    Cause.READ: (".", ".", "R w", "RH w"),
    Cause.WRITE: ("-", "-", "- w", "- w"),
}
# smb.md 3.6, "legacy oplock": level II, exclusive, batch.
OPLOCK_TABLE = {
    Cause.OPEN: (".", "R w", "R w"),
    Cause.OVERWRITE: ("-", "- w", "- w"),
    Cause.SHARE_CONFLICT: (".", ".", "R w"),
    Cause.NAME_CHANGE: (".", ".", "."),
    Cause.UNLINK: (".", ".", "R w"),
    Cause.READ: (".", "R w", "R w"),
    Cause.WRITE: ("-", "- w", "- w"),
}
# smb.md 4.5: the nine operations of REST beside RWH, RH and RW.
REST_TABLE = {
    FileOperation.GET_FILE: ("RH w", ".", "R w"),
    FileOperation.GET_PROPERTIES: ("RH w", ".", "R w"),
    FileOperation.GET_METADATA: ("RH w", ".", "R w"),
    FileOperation.LIST_RANGES: ("RH w", ".", "R w"),
    FileOperation.LIST_FILES: (".", ".", "."),
    FileOperation.ABORT_COPY: (".", ".", "."),
    FileOperation.PUT_RANGE: ("- w", "-", "- w"),
    FileOperation.SET_PROPERTIES: ("- w", "-", "- w"),
    FileOperation.SET_METADATA: ("- w", "-", "- w"),
    FileOperation.DELETE_FILE: ("RW w", "R w", "."),
    # These rows are inferences.
    FileOperation.CREATE_FILE: ("- w", "-", "- w"),
    FileOperation.LEASE_FILE: ("RH w", ".", "R w"),
    FileOperation.COPY_SOURCE: ("RH w", ".", "R w"),
    FileOperation.COPY_DESTINATION: ("- w", "-", "- w"),
    FileOperation.RENAME_SOURCE: ("RW w", "R w", "."),
    FileOperation.RENAME_TARGET: ("- w", "-", "- w"),
}


def holder(state: str, kind: CachingKind = CachingKind.LEASE_V2, epoch: int = 7) -> CachingHolder:
    return CachingHolder(KEY, kind, STATES[state], epoch=epoch)


def described(found: oplocks.Broken | None) -> str:
    return "." if found is None else NAMES[found.to] + (" w" if found.waits else "")


@pytest.mark.parametrize("kind", LEASES, ids=lambda kind: kind.name)
@pytest.mark.parametrize("cause", Cause, ids=lambda cause: cause.name)
def test_each_cause_breaks_each_lease(cause: Cause, kind: CachingKind) -> None:
    found = tuple(described(oplocks.effect(holder(state, kind), cause)) for state in COLUMNS)
    assert found == LEASE_TABLE[cause]
    assert oplocks.effect(holder("-", kind), cause) is None
    assert all(oplocks.effect_on_own(holder(state, kind), cause) is None for state in STATES)


@pytest.mark.parametrize("cause", Cause, ids=lambda cause: cause.name)
def test_each_cause_breaks_each_oplock(cause: Cause) -> None:
    kind = CachingKind.OPLOCK
    found = tuple(described(oplocks.effect(holder(state, kind), cause)) for state in LEVELS)
    assert found == OPLOCK_TABLE[cause]
    own = [described(oplocks.effect_on_own(holder(state, kind), cause)) for state in LEVELS]
    assert own == (["-", ".", "."] if cause is Cause.WRITE else [".", ".", "."])


@pytest.mark.parametrize("operation", FileOperation, ids=lambda operation: operation.name)
def test_each_rest_operation_breaks_as_documented(operation: FileOperation) -> None:
    cause = oplocks.REST_CAUSES[operation]
    found = tuple(
        described(oplocks.effect(holder(state), cause)) if cause else "."
        for state in ("RWH", "RH", "RW")
    )
    assert found == REST_TABLE[operation]


@pytest.mark.parametrize(("cause", "state"), [*product(Cause, COLUMNS)], ids=str)
def test_a_break_takes_something_away_and_a_holder_that_caches_writes_is_waited_for(
    cause: Cause, state: str
) -> None:
    before = holder(state)
    found = oplocks.effect(before, cause)
    if found is None:
        return
    assert found.to != before.held and not found.to & ~before.held
    if (before.held & ~found.to) & Caching.WRITE:
        assert found.waits
    after, notice = oplocks.broken(before, found.to)
    assert notice is not None and (notice.current, notice.to) == (before.held, found.to)
    assert notice.needs_answer is (state != "R")
    assert after.is_breaking is notice.needs_answer
    assert after.epoch == notice.epoch == before.epoch + 1
    # Another cause, before the answer: no second notice is sent.
    assert oplocks.broken(after, found.to)[1] is None
    # The answer ends the break.
    if after.is_breaking:
        settled = oplocks.lease_acknowledged(after, found.to)
        assert isinstance(settled, tuple) and settled[1] is None
        assert settled[0].held == found.to and not settled[0].is_breaking


def test_what_comes_during_a_break_adds_up_and_is_told_after_the_answer() -> None:
    breaking, first = oplocks.broken(holder("RWH"), RH)
    assert first is not None and first.to == RH
    more, none_yet = oplocks.broken(breaking, R)
    assert none_yet is None and more.break_to == RH
    answered = oplocks.lease_acknowledged(more, RH)
    assert isinstance(answered, tuple)
    after, second = answered
    assert second is not None and (second.current, second.to, second.epoch) == (RH, R, 8)
    assert after.break_to == R
    settled = oplocks.lease_acknowledged(after, R)
    assert settled == (CachingHolder(KEY, CachingKind.LEASE_V2, R, epoch=8), None)


@pytest.mark.parametrize("kind", LEASES, ids=lambda kind: kind.name)
@pytest.mark.parametrize(
    ("state", "target", "steps"),
    [("RWH", "-", ["RH", "R", "-"]), ("RWH", "R", ["RH", "R"]), ("RW", "-", ["R", "-"])],
)
def test_a_break_that_goes_on_leaves_reads_while_more_is_held(
    kind: CachingKind, state: str, target: str, steps: list[str]
) -> None:
    """smbtorture, lease.breaking3: one epoch for all steps; the last from Read has no answer."""
    after, notice = oplocks.broken(holder(state, kind), STATES[steps[0]])
    after, nothing = oplocks.broken(after, STATES[target])
    assert nothing is None
    found = []
    while notice is not None:
        found.append(NAMES[notice.to])
        assert notice.epoch == (8 if kind is CachingKind.LEASE_V2 else 0)
        assert notice.needs_answer is (notice.current != R)
        if not after.is_breaking:
            break
        answered = oplocks.lease_acknowledged(after, notice.to)
        assert isinstance(answered, tuple)
        after, notice = answered
    assert found == steps and after.held == STATES[target] and not after.is_breaking


@pytest.mark.parametrize("break_to", [*COLUMNS[:3], "-"])
def test_a_lease_may_give_up_more_and_never_keeps_more(break_to: str) -> None:
    breaking, _ = oplocks.broken(holder("RWH"), STATES[break_to])
    for state in range(16):
        answered = oplocks.lease_acknowledged(breaking, state)
        if state & ~int(STATES[break_to]):
            assert answered == file_errors.STATUS_REQUEST_NOT_ACCEPTED
        else:
            assert isinstance(answered, tuple)
            assert answered[0].held == (Caching(state) if state & R else N)
            assert not answered[0].is_breaking


def test_an_answer_that_nobody_asked_for_is_refused() -> None:
    assert oplocks.lease_acknowledged(holder("RWH"), 1) == file_errors.STATUS_UNSUCCESSFUL
    for state, status in (
        ("R", file_errors.STATUS_INVALID_DEVICE_STATE),
        ("RWH", file_errors.STATUS_INVALID_DEVICE_STATE),
        ("-", file_errors.STATUS_INVALID_OPLOCK_PROTOCOL),
    ):
        before = holder(state, CachingKind.OPLOCK)
        assert oplocks.oplock_acknowledged(before, 0) == (before, None, status)


@pytest.mark.parametrize("level", range(256))
@pytest.mark.parametrize("state", ["RW", "RWH"])
def test_an_oplock_answers_with_a_level_that_is_left(state: str, level: int) -> None:
    breaking, _ = oplocks.broken(holder(state, CachingKind.OPLOCK), R)
    after, notice, status = oplocks.oplock_acknowledged(breaking, level)
    kept, refused = N, file_errors.STATUS_INVALID_OPLOCK_PROTOCOL
    expected: int | None = refused
    if level in (0, 1) or (level == OplockLevel.EXCLUSIVE and state == "RWH"):
        kept, expected = (R if level == 1 else N), None
    elif level == OplockLevel.LEASE:
        expected = file_errors.STATUS_INVALID_PARAMETER
    assert (after.held, notice, status) == (kept, None, expected)
    assert not after.is_breaking


def test_an_oplock_that_answers_level_ii_to_none_is_told_again_without_an_answer() -> None:
    breaking, _ = oplocks.broken(holder("RWH", CachingKind.OPLOCK), N)
    after, notice, status = oplocks.oplock_acknowledged(breaking, OplockLevel.II)
    assert (after.held, status) == (N, None) and not after.is_breaking
    assert notice is not None and (notice.current, notice.to, notice.needs_answer) == (R, N, False)


@pytest.mark.parametrize(("kind", "state"), [*product(CachingKind, COLUMNS)], ids=str)
def test_who_does_not_answer_in_time_holds_nothing(kind: CachingKind, state: str) -> None:
    breaking, _ = oplocks.broken(holder(state, kind), N)
    after = oplocks.timed_out(breaking)
    assert after.held == N and not after.is_breaking


def test_rest_waits_less_long_than_smb() -> None:
    assert oplocks.REST_WAIT_LIMIT_S == 30 < oplocks.SMB_BREAK_LIMIT_S == 35


# smb.md 3.6, "held, other key asks": columns R, RH, RW, RWH.
ALONE = ("R", "RH", "RW", "RWH")
CONTENDED = ("R", "RH", "R", "RH")


@pytest.mark.parametrize("kind", LEASES, ids=lambda kind: kind.name)
@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (GrantLimits(), ALONE),
        (GrantLimits(others_open=True), CONTENDED),
        (GrantLimits(others_open=True, handles_cached=True), CONTENDED),
        (GrantLimits(level_ii=True), ("R", "R", "RW", "RW")),
        (GrantLimits(others_open=True, level_ii=True), ("R", "R", "R", "R")),
        (GrantLimits(locked=True), ("-",) * 4),
        (GrantLimits(others_open=True, writes_cached=True), ("-",) * 4),
        (GrantLimits(pending=True), ("R", "R", "RW", "RW")),
        (GrantLimits(directory=True), ("-",) * 4),
    ],
    ids=str,
)
def test_what_a_lease_is_granted(
    kind: CachingKind, limits: GrantLimits, expected: tuple[str, ...]
) -> None:
    found = tuple(NAMES[grants.grantable(kind, STATES[wanted], limits)] for wanted in ALONE)
    assert found == expected


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (GrantLimits(), ("R", "RW", "RWH")),
        (GrantLimits(others_open=True), ("R", "R", "R")),
        (GrantLimits(handles_cached=True), ("-", "-", "-")),
        (GrantLimits(others_open=True, level_ii=True), ("R", "R", "R")),
        (GrantLimits(locked=True), ("-", "-", "-")),
        (GrantLimits(others_open=True, writes_cached=True), ("-", "-", "-")),
        (GrantLimits(pending=True), ("R", "R", "R")),
    ],
    ids=str,
)
def test_what_an_oplock_is_granted(limits: GrantLimits, expected: tuple[str, ...]) -> None:
    kind = CachingKind.OPLOCK
    found = tuple(NAMES[grants.grantable(kind, STATES[wanted], limits)] for wanted in LEVELS)
    assert found == expected


@pytest.mark.parametrize("wanted", [2, 4, 6, 8, 15, 0xFFFFFFFF])
def test_what_is_no_state_grants_nothing(wanted: int) -> None:
    assert grants.grantable(CachingKind.LEASE_V1, wanted, GrantLimits()) == N


# smb.md 3.6: "R->{RH,RW,RWH}, RH->RWH, RW->RWH"; contended: "only R->RH".
@pytest.mark.parametrize(("state", "wanted"), [*product(STATES, STATES)], ids=str)
def test_another_open_with_the_key_promotes_or_changes_nothing(state: str, wanted: str) -> None:
    own = holder(state)
    for contended in (False, True):
        after = grants.granted(own, STATES[wanted], GrantLimits(others_open=contended))
        offered = STATES[wanted]
        is_whole = not (contended and offered & Caching.WRITE)
        grows = is_whole and offered != own.held and offered & own.held == own.held
        assert after.held == (offered if grows else own.held)
        assert after.epoch == own.epoch + grows
    breaking, _ = oplocks.broken(holder("RWH"), N)
    assert grants.granted(breaking, STATES[wanted], GrantLimits()) is breaking


def test_only_version_2_counts_epochs() -> None:
    for kind, epoch in ((CachingKind.LEASE_V1, 0), (CachingKind.OPLOCK, 0)):
        _, notice = oplocks.broken(holder("RW", kind, 0), R)
        assert notice is not None and notice.epoch == epoch
    _, notice = oplocks.broken(holder("RW", epoch=0xFFFF), R)
    assert notice is not None and notice.epoch == 0
