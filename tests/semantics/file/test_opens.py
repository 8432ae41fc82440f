"""Admission: share modes, leases of both kinds, pending deletions and locks, through the table."""

from __future__ import annotations

from itertools import product

import pytest
from msgspec.structs import replace

from strongroom.errors import file as file_errors
from strongroom.semantics.file import accesses, byte_ranges, deletion, opens, oplocks
from strongroom.semantics.file.accesses import Disposition, FileOperation, Use
from strongroom.semantics.file.deletion import DeletionState, FileFacts
from strongroom.semantics.file.opens import (
    BreakAwaited,
    HandleRequest,
    OpenAdmitted,
    OpenRefused,
    OpenTable,
    RestRequest,
)
from strongroom.semantics.file.oplocks import CachingKind, Cause
from tests.semantics.file.open_cases import (
    ALL,
    EMPTY,
    FILE,
    STATES,
    USES,
    D,
    R,
    W,
    admit,
    answered,
    entered,
    handle,
    key,
    late,
    outcome_of,
    rest,
    state_of,
)

SHARING = "409 SharingViolation"
PENDING = "409 SMBDeletePending"
READ_ONLY = "412 ReadOnlyAttribute"
HOLDER, OTHER = key("holder"), key("other")
OPERATIONS = tuple(FileOperation)

COLUMNS = (
    *(FileOperation.CREATE_FILE, FileOperation.GET_FILE, FileOperation.SET_PROPERTIES),
    *(FileOperation.SET_METADATA, FileOperation.DELETE_FILE, FileOperation.PUT_RANGE),
    *(FileOperation.LIST_RANGES, FileOperation.LEASE_FILE),
)
# smb.md 4.2: x = 409 SharingViolation.
BY_SHARE_MODE = {
    "none": "xxxxxxxx", "R": "x.xxxx.x", "W": "xx..x.xx", "D": "xxxxxxxx", "R+W": "x...x..x",
    "R+D": "x.xxxx.x", "W+D": ".x..x.xx", "R+W+D": "....x...",
}  # fmt: skip


@pytest.mark.parametrize(("share", "column"), [*product(USES, range(8))], ids=str)
def test_eight_share_modes_beside_eight_operations(share: str, column: int) -> None:
    table = entered(EMPTY, handle(1, R, USES[share]))
    expected = SHARING if BY_SHARE_MODE[share][column] == "x" else "ok"
    assert outcome_of(admit(table, rest(2, COLUMNS[column]))) == expected


@pytest.mark.parametrize(("access", "leased"), [*product(USES, (False, True))], ids=str)
def test_eight_accesses_beside_the_states_of_a_rest_lease(access: str, leased: bool) -> None:
    """smb.md 4.3: available and broken are the same here, because no lease is in force."""
    node = FileFacts(is_leased=leased)
    refused = leased and bool(USES[access] & (W | D))
    for share in USES.values():
        result = admit(EMPTY, handle(1, USES[access], share), node)
        assert outcome_of(result) == (SHARING if refused else "ok")
    # The lease does not block REST here: its id is checked elsewhere.
    assert all(outcome_of(admit(EMPTY, rest(1, one), node)) == "ok" for one in OPERATIONS)
    # The reverse: which handles refuse Lease File.
    table = entered(EMPTY, handle(1, USES[access], ALL))
    lease = outcome_of(admit(table, rest(2, FileOperation.LEASE_FILE)))
    assert lease == (SHARING if USES[access] & (W | D) else "ok")


@pytest.mark.parametrize(("one", "other"), [*product(OPERATIONS, OPERATIONS)], ids=str)
def test_rest_never_conflicts_with_rest(one: FileOperation, other: FileOperation) -> None:
    assert outcome_of(admit(entered(EMPTY, rest(1, one)), rest(2, other))) == "ok"


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.name)
def test_a_handle_meets_a_rest_operation_under_way_as_it_meets_a_handle(
    operation: FileOperation,
) -> None:
    table = entered(EMPTY, rest(1, operation))
    found = {share: outcome_of(admit(table, handle(2, R, USES[share]))) for share in USES}
    before = {
        share: outcome_of(admit(entered(EMPTY, handle(2, R, USES[share])), rest(1, operation)))
        for share in USES
    }
    assert found == before


# smb.md 4.5 for a holder that answers, one that answers late, and one that never does: the first
# result of the operation, and the caching that the holder has left. Columns: RWH, RH, RW.
REST_BREAKS = {
    FileOperation.GET_FILE: ("wait RH", "ok RH", "wait R"),
    FileOperation.GET_PROPERTIES: ("wait RH", "ok RH", "wait R"),
    FileOperation.GET_METADATA: ("wait RH", "ok RH", "wait R"),
    FileOperation.LIST_RANGES: ("wait RH", "ok RH", "wait R"),
    FileOperation.LIST_FILES: ("ok RWH", "ok RH", "ok RW"),
    FileOperation.PUT_RANGE: ("wait -", "ok -", "wait -"),
    FileOperation.SET_PROPERTIES: ("wait -", "ok -", "wait -"),
    FileOperation.SET_METADATA: ("wait -", "ok -", "wait -"),
}


@pytest.mark.parametrize(("operation", "column"), [*product(REST_BREAKS, range(3))], ids=str)
def test_rest_breaks_a_lease_that_shares_everything(operation: FileOperation, column: int) -> None:
    state = ("RWH", "RH", "RW")[column]
    table = entered(EMPTY, handle(1, R, ALL, lease="holder", wanted=state))
    assert state_of(table, HOLDER) == state
    first, left = REST_BREAKS[operation][column].split()
    result = admit(table, rest(2, operation))
    assert outcome_of(result) == first and not isinstance(result, OpenRefused)
    # The holder answers: in time, or late, which the table cannot distinguish.
    settled = answered(result.table, HOLDER)
    assert state_of(settled, HOLDER) == left
    if first == "wait":
        assert outcome_of(admit(result.table, rest(2, operation))) == "wait"
        assert outcome_of(admit(settled, rest(2, operation))) == "ok"
        # The holder never answers, and then has no caching; or it leaves.
        assert outcome_of(admit(late(result.table, HOLDER), rest(2, operation))) == "ok"
        gone = opens.leave(result.table, 1, FILE)
        assert outcome_of(admit(gone.table, rest(2, operation))) == "ok"


@pytest.mark.parametrize(
    ("state", "first", "left"), [("RWH", "wait", "RW"), ("RH", "wait", "R"), ("RW", SHARING, "RW")]
)
def test_delete_file_asks_a_holder_to_close_and_fails_while_its_handle_is_open(
    state: str, first: str, left: str
) -> None:
    table = entered(EMPTY, handle(1, R, ALL, lease="holder", wanted=state))
    result = admit(table, rest(2, FileOperation.DELETE_FILE))
    assert outcome_of(result) == first
    if isinstance(result, BreakAwaited):
        settled = answered(result.table, HOLDER)
        assert state_of(settled, HOLDER) == left
        assert outcome_of(admit(settled, rest(2, FileOperation.DELETE_FILE))) == SHARING
        gone = opens.leave(result.table, 1, FILE).table
        assert outcome_of(admit(gone, rest(2, FileOperation.DELETE_FILE))) == "ok"


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.name)
def test_what_is_pending_is_409_for_every_operation_and_open(operation: FileOperation) -> None:
    table = OpenTable(deletion=DeletionState(is_pending=True))
    assert outcome_of(admit(table, rest(1, operation))) == PENDING
    for disposition in Disposition:
        result = admit(table, handle(1, disposition=disposition))
        assert result == OpenRefused(file_errors.SMB_DELETE_PENDING)


# smb.md 4.4 and file.md 6.
WRITERS = {
    FileOperation.PUT_RANGE, FileOperation.SET_PROPERTIES, FileOperation.SET_METADATA,
    FileOperation.CREATE_FILE, FileOperation.DELETE_FILE, FileOperation.COPY_DESTINATION,
    FileOperation.RENAME_TARGET,
}  # fmt: skip


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.name)
def test_a_read_only_file_is_not_changed_over_rest(operation: FileOperation) -> None:
    result = admit(EMPTY, rest(1, operation), FileFacts(is_read_only=True))
    assert outcome_of(result) == (READ_ONLY if operation in WRITERS else "ok")


def test_set_properties_may_take_the_attribute_away() -> None:
    request = RestRequest(1, FileOperation.SET_PROPERTIES, clears_read_only=True)
    assert outcome_of(admit(EMPTY, request, FileFacts(is_read_only=True))) == "ok"


@pytest.mark.parametrize(("access", "disposition"), [*product(USES, Disposition)], ids=str)
def test_a_read_only_file_is_not_opened_for_writing(access: str, disposition: Disposition) -> None:
    refused = bool(USES[access] & W) or disposition in opens.OVERWRITES
    request = handle(1, USES[access], disposition=disposition)
    result = admit(EMPTY, request, FileFacts(is_read_only=True))
    assert outcome_of(result) == (READ_ONLY if refused else "ok")


# smb.md 3.6: "held, other key asks", for an open that shares all: the holder after, and the grant.
HELD = {"R": "R", "RH": "RH", "RW": "R", "RWH": "RH"}
GRANTED = {"R": "R", "RH": "RH", "RW": "R", "RWH": "RH"}


@pytest.mark.parametrize(("held", "wanted"), [*product(HELD, GRANTED)], ids=str)
def test_two_leases_on_one_file(held: str, wanted: str) -> None:
    table = entered(EMPTY, handle(1, lease="holder", wanted=held))
    result = admit(table, handle(2, lease="other", wanted=wanted))
    assert outcome_of(result) == ("wait" if "W" in held else "ok")
    assert not isinstance(result, OpenRefused)
    if isinstance(result, BreakAwaited):
        assert result.holders == (HOLDER,) and len(result.table.entries) == 1
        result = admit(answered(result.table, HOLDER), handle(2, lease="other", wanted=wanted))
    assert isinstance(result, OpenAdmitted) and result.caching == STATES[GRANTED[wanted]]
    assert state_of(result.table, HOLDER) == HELD[held]


@pytest.mark.parametrize("state", ["R", "RH", "RW", "RWH"])
def test_opens_with_one_key_share_one_lease_and_break_nothing(state: str) -> None:
    table = entered(EMPTY, handle(1, lease="holder", wanted=state))
    again = admit(table, handle(2, W, lease="holder", wanted="RWH"))
    assert isinstance(again, OpenAdmitted) and again.notices == ()
    assert again.caching == STATES["RWH"] and len(again.table.holders) == 1
    for cause in Cause:
        acted = opens.break_caches(again.table, 2, cause)
        assert isinstance(acted, OpenAdmitted) and acted.notices == ()
    left = opens.leave(again.table, 1, FILE).table
    assert state_of(left, HOLDER) == "RWH"
    assert state_of(opens.leave(left, 2, FILE).table, HOLDER) == "gone"


def test_a_share_conflict_breaks_the_cached_handle_in_the_way_before_it_is_refused() -> None:
    table = entered(EMPTY, handle(1, R, R, lease="holder", wanted="RWH"))
    result = admit(table, handle(2, W))
    assert isinstance(result, BreakAwaited) and result.notices[0].to == STATES["RW"]
    settled = answered(result.table, HOLDER)
    assert outcome_of(admit(settled, handle(2, W))) == SHARING
    assert outcome_of(admit(opens.leave(result.table, 1, FILE).table, handle(2, W))) == "ok"


def test_a_batch_oplock_is_broken_before_share_modes_and_an_exclusive_one_after() -> None:
    for wanted, expected in (("RWH", "wait"), ("RW", SHARING)):
        table = entered(EMPTY, handle(1, R, Use.NONE, wanted=wanted))
        assert outcome_of(admit(table, handle(2, W))) == expected
    table = entered(EMPTY, handle(1, R, Use.NONE, wanted="RWH"))
    result = admit(table, handle(2, W))
    assert isinstance(result, BreakAwaited)
    assert outcome_of(admit(answered(result.table, 1), handle(2, W))) == SHARING


@pytest.mark.parametrize("state", ["R", "RH", "RW", "RWH"])
@pytest.mark.parametrize("lease", ["", "other"])
def test_an_open_for_attributes_breaks_nothing_and_is_in_nobodys_way(
    state: str, lease: str
) -> None:
    table = entered(EMPTY, handle(1, R, ALL, lease="holder", wanted=state))
    result = admit(table, handle(2, Use.NONE, Use.NONE, lease=lease))
    assert isinstance(result, OpenAdmitted) and result.notices == ()
    assert state_of(result.table, HOLDER) == state
    alone = entered(EMPTY, handle(1, Use.NONE, Use.NONE))
    second = admit(alone, handle(2, ALL, Use.NONE, lease="other", wanted="RWH"))
    assert isinstance(second, OpenAdmitted) and second.caching == STATES["RWH"]


@pytest.mark.parametrize("held", ["RW", "RWH"])
@pytest.mark.parametrize("wanted", ["R", "RH", "RW", "RWH"])
@pytest.mark.parametrize("lease", ["", "other"])
def test_an_open_for_attributes_caches_nothing_beside_a_write_cache(
    held: str, wanted: str, lease: str
) -> None:
    """It has broken nothing, so the holder continues to write without a notice."""
    table = entered(EMPTY, handle(1, lease="holder", wanted=held))
    wanted = "R" if not lease and wanted == "RH" else wanted
    result = admit(table, handle(2, Use.NONE, lease=lease, wanted=wanted))
    assert isinstance(result, OpenAdmitted) and result.caching == STATES["-"]


def test_an_overwrite_goes_on_at_once_where_only_reads_and_handles_are_cached() -> None:
    table = entered(
        EMPTY, handle(1, lease="holder", wanted="RH"), handle(2, lease="other", wanted="R")
    )
    result = admit(table, handle(3, disposition=Disposition.OVERWRITE))
    assert isinstance(result, OpenAdmitted)
    assert [(one.key, one.needs_answer) for one in result.notices] == [
        (HOLDER, True),
        (OTHER, False),
    ]
    assert state_of(answered(result.table, HOLDER), HOLDER) == state_of(result.table, OTHER) == "-"


def test_an_open_waits_until_a_break_has_ended_that_is_not_for_its_sake() -> None:
    """smbtorture, lease.breaking3: both opens wait through both steps."""
    opening, overwriting = handle(2), handle(3, disposition=Disposition.OVERWRITE)
    table = entered(EMPTY, handle(1, lease="holder", wanted="RWH"))
    for request in (opening, overwriting):
        result = admit(table, request)
        assert isinstance(result, BreakAwaited)
        table = result.table
    for told in ("RH", "R"):
        holder = opens.holder_of(table, HOLDER)
        assert holder is not None and holder.break_to == STATES[told]
        for request in (opening, replace(overwriting, has_waited=True)):
            result = admit(table, request)
            assert isinstance(result, BreakAwaited) and result.notices == ()
            assert result.holders == (HOLDER,)
        assert outcome_of(admit(table, handle(4, Use.NONE))) == "ok"
        answer = oplocks.lease_acknowledged(holder, STATES[told])
        assert isinstance(answer, tuple)
        table = opens.with_holder(table, answer[0])
    assert state_of(table, HOLDER) == "-"
    assert outcome_of(admit(table, overwriting)) == outcome_of(admit(table, opening)) == "ok"


def test_an_overwrite_that_comes_during_a_break_of_reads_and_handles_goes_on_at_once() -> None:
    table = entered(EMPTY, handle(1, lease="holder", wanted="RH"))
    first = admit(table, handle(2, disposition=Disposition.OVERWRITE))
    assert isinstance(first, OpenAdmitted) and len(first.notices) == 1
    second = admit(first.table, handle(3, disposition=Disposition.OVERWRITE))
    assert isinstance(second, OpenAdmitted) and second.notices == ()
    assert outcome_of(admit(first.table, handle(4))) == "wait"


@pytest.mark.parametrize("lease", ["", "other"])
@pytest.mark.parametrize("state", ["RW", "RWH"])
def test_an_open_for_security_breaks_oplocks_and_no_leases(state: str, lease: str) -> None:
    """smb.md 3.6: 0x120180 for leases, 0x100180 for oplocks. The holder's kind of caching
    decides."""
    asked = replace(handle(2, Use.NONE, lease=lease), mask=accesses.READ_CONTROL)
    leased = admit(entered(EMPTY, handle(1, lease="holder", wanted=state)), asked)
    assert isinstance(leased, OpenAdmitted) and leased.notices == ()
    assert outcome_of(admit(entered(EMPTY, handle(1, wanted=state)), asked)) == "wait"


@pytest.mark.parametrize(
    ("first", "second"), [*product((CachingKind.LEASE_V1, CachingKind.LEASE_V2), repeat=2)], ids=str
)
def test_a_lease_stays_of_the_version_of_its_first_open(
    first: CachingKind, second: CachingKind
) -> None:
    def asked(open_id: int, wanted: str, kind: CachingKind) -> HandleRequest:
        return replace(handle(open_id, lease="holder", wanted=wanted), kind=kind, epoch=40)

    result = admit(entered(EMPTY, asked(1, "R", first)), asked(2, "RH", second))
    assert isinstance(result, OpenAdmitted) and result.caching == STATES["RH"]
    assert result.kind is first and result.epoch == (42 if first is CachingKind.LEASE_V2 else 0)
    nothing = admit(EMPTY, asked(1, "-", second))
    assert isinstance(nothing, OpenAdmitted) and nothing.kind is second


def test_a_rest_lease_refuses_at_once_whatever_is_cached() -> None:
    table = entered(EMPTY, handle(1, R, R, lease="holder", wanted="RH"))
    assert outcome_of(admit(table, handle(2, W), FileFacts(is_leased=True))) == SHARING


@pytest.mark.parametrize(("operation", "exclusive"), [*product(OPERATIONS, (False, True))], ids=str)
def test_rest_meets_the_locks_of_handles(operation: FileOperation, exclusive: bool) -> None:
    table = entered(EMPTY, handle(1, R, ALL))
    locked = byte_ranges.lock(table.locks, [byte_ranges.RangeLock(10, 5, exclusive, 1)])
    assert isinstance(locked, byte_ranges.LocksGranted)
    table = replace(table, locks=locked.table)
    use = byte_ranges.REST_LOCK_USES.get(operation)
    conflict = use is byte_ranges.LockUse.WRITE or (use is not None and exclusive)
    # Any handle refuses these two, before locks are checked.
    if operation not in (FileOperation.DELETE_FILE, FileOperation.RENAME_TARGET):
        expected = "409 FileLockConflict" if conflict else "ok"
        assert outcome_of(admit(table, RestRequest(2, operation, offset=14, length=1))) == expected
        assert outcome_of(admit(table, RestRequest(2, operation, offset=15, length=1))) == "ok"
    assert opens.leave(table, 1, FILE).table.locks == byte_ranges.NO_LOCKS


def test_a_locked_file_grants_no_caching() -> None:
    table = entered(EMPTY, handle(1, R, ALL))
    locked = byte_ranges.lock(table.locks, [byte_ranges.RangeLock(0, 1, False, 1)])
    assert isinstance(locked, byte_ranges.LocksGranted)
    result = admit(replace(table, locks=locked.table), handle(2, lease="other", wanted="RWH"))
    assert isinstance(result, OpenAdmitted) and result.caching == STATES["-"]


def test_a_level_ii_oplock_ends_with_its_holders_own_write() -> None:
    table = entered(EMPTY, handle(1, R | W, wanted="R"), handle(2, R, wanted="R"))
    written = opens.break_caches(table, 1, Cause.WRITE)
    assert isinstance(written, OpenAdmitted)
    assert [(one.key, one.needs_answer) for one in written.notices] == [(1, False), (2, False)]


def test_a_file_goes_with_the_last_open_once_its_deletion_is_pending() -> None:
    table = entered(EMPTY, handle(1, R | D), handle(2), rest(3, FileOperation.GET_FILE))
    refused = opens.set_disposition(table, 2, FILE, delete=True)
    assert refused == OpenRefused(file_errors.ACCESS_DENIED_TO_HANDLE)
    marked = opens.set_disposition(table, 1, FILE, delete=True)
    assert isinstance(marked, OpenAdmitted)
    first = opens.leave(marked.table, 1, FILE)
    second = opens.leave(first.table, 2, FILE)
    third = opens.leave(second.table, 3, FILE)
    assert (first.removes, second.removes, third.removes) == (False, False, True)
    with pytest.raises(KeyError):
        opens.leave(third.table, 3, FILE)


def test_a_disposition_asks_others_to_close_cached_handles_first() -> None:
    table = entered(EMPTY, handle(1, R | D), handle(2, lease="holder", wanted="RH"))
    result = opens.set_disposition(table, 1, FILE, delete=True)
    assert isinstance(result, BreakAwaited) and not result.table.deletion.is_pending
    again = opens.set_disposition(answered(result.table, HOLDER), 1, FILE, delete=True)
    assert isinstance(again, OpenAdmitted) and again.table.deletion.is_pending


@pytest.mark.parametrize(
    ("access", "node", "status"),
    [
        (D, FILE, None),
        (R, FILE, file_errors.STATUS_INVALID_PARAMETER),
        (D, FileFacts(is_read_only=True), file_errors.STATUS_CANNOT_DELETE),
    ],
    ids=str,
)
def test_delete_on_close_is_checked_at_the_open(
    access: Use, node: FileFacts, status: int | None
) -> None:
    request = replace(handle(1, access), deletes_on_close=True)
    result = admit(EMPTY, request, node)
    if status is not None:
        assert isinstance(result, OpenRefused) and result.row.ntstatus == status
        return
    assert isinstance(result, OpenAdmitted)
    assert deletion.refusal_while_pending(result.table.deletion) is None
    assert opens.leave(result.table, 1, node).removes


UNHARMED = {
    *(FileOperation.LIST_FILES, FileOperation.GET_PROPERTIES, FileOperation.GET_METADATA),
    *(FileOperation.GET_FILE, FileOperation.LIST_RANGES, FileOperation.LEASE_FILE),
    *(FileOperation.COPY_SOURCE, FileOperation.ABORT_COPY),
}


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.name)
def test_a_pending_copy_refuses_what_changes_the_file(operation: FileOperation) -> None:
    expected = "ok" if operation in UNHARMED else "409 PendingCopyOperation"
    assert (
        outcome_of(admit(EMPTY, rest(1, operation), FileFacts(has_pending_copy=True))) == expected
    )


@pytest.mark.parametrize("access", USES)
def test_a_pending_copy_refuses_handles_that_write_or_delete(access: str) -> None:
    node = FileFacts(has_pending_copy=True)
    expected = SHARING if USES[access] & (W | D) else "ok"
    assert outcome_of(admit(EMPTY, handle(1, USES[access], ALL), node)) == expected
    overwrites = handle(1, R, ALL, disposition=Disposition.OVERWRITE)
    assert outcome_of(admit(EMPTY, overwrites, node)) == SHARING
