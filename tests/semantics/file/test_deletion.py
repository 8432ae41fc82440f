"""Deletions and renames: each state and event, and each check in its order."""

from __future__ import annotations

from itertools import product

import pytest
from msgspec.structs import replace

from strongroom.errors import file as file_errors
from strongroom.errors.core import ErrorCode
from strongroom.semantics.file import accesses, deletion
from strongroom.semantics.file.deletion import DeletionState, FileFacts, Rename, RenameTarget

FILE, FOLDER = FileFacts(), FileFacts(is_directory=True)
FULL = FileFacts(is_directory=True, is_empty=False)
READ_ONLY, READ_ONLY_FOLDER = FileFacts(is_read_only=True), FileFacts(True, is_read_only=True)
ROOT = FileFacts(is_directory=True, is_root=True)
NODES = {
    "file": FILE, "folder": FOLDER, "full": FULL, "read-only": READ_ONLY,
    "read-only folder": READ_ONLY_FOLDER, "root": ROOT,
}  # fmt: skip
IDLE, PENDING = DeletionState(), DeletionState(is_pending=True)
ME, OTHER = 1, 2
DELETE = accesses.DELETE


def code(result: DeletionState | ErrorCode | None) -> str:
    return result.code if isinstance(result, ErrorCode) else "ok"


# FileFacts -> (open with delete-on-close, disposition 1, disposition 0, REST's delete).
BY_NODE = {
    "file": ("ok", "ok", "ok", "ok"),
    "folder": ("ok", "ok", "ok", "ok"),
    "full": ("ok", "DirectoryNotEmpty", "ok", "DirectoryNotEmpty"),
    "read-only": (*["CannotDeleteFileOrDirectory"] * 2, "ok", "ReadOnlyAttribute"),
    "read-only folder": (
        *["CannotDeleteFileOrDirectory"] * 2, "ok", "CannotDeleteFileOrDirectory",
    ),
    "root": (*["CannotDeleteFileOrDirectory"] * 2, "ok", "CannotDeleteFileOrDirectory"),
}  # fmt: skip


@pytest.mark.parametrize("name", NODES)
@pytest.mark.parametrize("state", [IDLE, PENDING, DeletionState(False, frozenset((OTHER,)))])
def test_which_kinds_may_be_deleted_in_which_way(name: str, state: DeletionState) -> None:
    node = NODES[name]
    found = (
        code(deletion.with_delete_on_close(state, ME, DELETE, node)),
        code(deletion.with_disposition(state, delete=True, mask=DELETE, node=node)),
        code(deletion.with_disposition(state, delete=False, mask=DELETE, node=node)),
        code(deletion.rest_deletion_refusal(node)),
    )
    assert found == BY_NODE[name]


@pytest.mark.parametrize("mask", [0, accesses.WRITE_DATA, accesses.EVERYTHING & ~DELETE])
def test_a_handle_without_delete_deletes_nothing(mask: int) -> None:
    found = deletion.with_delete_on_close(IDLE, ME, mask, FILE)
    assert isinstance(found, ErrorCode) and found.ntstatus == file_errors.STATUS_INVALID_PARAMETER
    for delete in (True, False):
        set_ = deletion.with_disposition(IDLE, delete=delete, mask=mask, node=FILE)
        assert isinstance(set_, ErrorCode) and set_.ntstatus == file_errors.STATUS_ACCESS_DENIED


def state_after(result: DeletionState | ErrorCode) -> DeletionState:
    assert isinstance(result, DeletionState)
    return result


def test_delete_on_close_shows_nothing_until_its_handle_closes() -> None:
    state = state_after(deletion.with_delete_on_close(IDLE, ME, DELETE, FILE))
    assert deletion.refusal_while_pending(state) is None
    assert deletion.closed(state, OTHER, FILE) == state
    assert deletion.closed(state, ME, FILE) == PENDING
    assert deletion.closed(state, ME, FULL) == IDLE


def test_a_disposition_counts_at_once_and_can_be_taken_back() -> None:
    state = state_after(deletion.with_disposition(IDLE, delete=True, mask=DELETE, node=FILE))
    assert deletion.refusal_while_pending(state) is file_errors.SMB_DELETE_PENDING
    back = state_after(deletion.with_disposition(state, delete=False, mask=DELETE, node=FILE))
    assert back == IDLE


def test_taking_a_disposition_back_does_not_undo_delete_on_close() -> None:
    state = state_after(deletion.with_delete_on_close(IDLE, ME, DELETE, FILE))
    state = state_after(deletion.with_disposition(state, delete=False, mask=DELETE, node=FILE))
    assert deletion.closed(state, ME, FILE).is_pending


@pytest.mark.parametrize(("pending", "over_rest"), [*product((False, True), repeat=2)])
def test_only_rest_hides_what_is_pending(pending: bool, over_rest: bool) -> None:
    state = DeletionState(pending)
    assert deletion.is_listed(state, over_rest=over_rest) is not (pending and over_rest)


def test_the_code_of_what_is_pending_is_never_404() -> None:
    row = file_errors.SMB_DELETE_PENDING
    assert (row.code, row.status, row.ntstatus) == ("SMBDeletePending", 409, 0xC0000056)


PLAIN = Rename(("a",), ("b",), FILE)
TARGET = RenameTarget(FILE)
ONTO = replace(PLAIN, target=TARGET, replaces=True)
# Each case breaks one check, in the order of the checks (smb.md 3.7).
CHECKS: dict[str, tuple[Rename, int]] = {
    "no DELETE": (replace(PLAIN, may_delete=False), 0xC0000022),
    "no parent": (replace(PLAIN, has_parent=False), 0xC000003A),
    "pending": (replace(PLAIN, deletion=PENDING), 0xC0000022),
    "root": (replace(PLAIN, source=ROOT), 0xC0000121),
    "busy below": (replace(PLAIN, source=FOLDER, has_open_descendants=True), 0xC0000022),
    "parent held": (replace(PLAIN, is_parent_in_use=True), 0xC0000043),
    "below itself": (replace(PLAIN, source=FOLDER, is_into_itself=True), 0xC0000043),
    "exists": (replace(ONTO, replaces=False), 0xC0000035),
    "directory": (replace(ONTO, target=RenameTarget(FOLDER)), 0xC0000022),
    "read-only": (replace(ONTO, target=RenameTarget(READ_ONLY)), 0xC0000022),
    "target pending": (replace(ONTO, target=RenameTarget(FILE, PENDING, True)), 0xC0000056),
    "target open": (replace(ONTO, target=RenameTarget(FILE, is_open=True)), 0xC0000022),
}


@pytest.mark.parametrize("check", CHECKS)
def test_each_check_of_a_rename(check: str) -> None:
    rename, status = CHECKS[check]
    row = deletion.rename_refusal(rename)
    assert (
        row is not None and row.ntstatus == status and row.status != 404
    ) or check == "no parent"


FIELDS = (
    {"may_delete": False}, {"has_parent": False}, {"deletion": PENDING},
    {"source": FOLDER, "has_open_descendants": True}, {"is_parent_in_use": True},
    {"target": TARGET, "replaces": False},
)  # fmt: skip


@pytest.mark.parametrize(("first", "second"), [*product(range(6), repeat=2)])
def test_of_two_checks_that_fail_the_earlier_one_is_answered(first: int, second: int) -> None:
    both = replace(replace(PLAIN, **FIELDS[second]), **FIELDS[first])
    alone = replace(PLAIN, **FIELDS[min(first, second)])
    assert deletion.rename_refusal(both) is deletion.rename_refusal(alone)


def test_a_rename_that_passes_every_check() -> None:
    assert deletion.rename_refusal(PLAIN) is None is deletion.rename_refusal(ONTO)
    read_only = replace(ONTO, target=RenameTarget(READ_ONLY), ignores_read_only=True)
    assert deletion.rename_refusal(read_only) is None
    assert deletion.rename_refusal(replace(PLAIN, source=READ_ONLY)) is None


@pytest.mark.parametrize(
    ("old", "new", "same", "case_only"),
    [
        (("d", "a"), ("d", "a"), True, False), (("d", "a"), ("d", "A"), False, True),
        (("d", "a"), ("d", "b"), False, False), (("d", "a"), ("a",), False, False),
    ],
)  # fmt: skip
def test_a_rename_to_the_same_name_or_to_other_letters(
    old: tuple[str, ...], new: tuple[str, ...], same: bool, case_only: bool
) -> None:
    rename = Rename(old, new, FILE)
    assert (deletion.is_same_name(rename), deletion.is_case_change(rename)) == (same, case_only)
