"""When a file or directory is deleted, and when its deletion only becomes pending; renames.

Delete-on-close, dispositions, delete pending, and the order of checks of a rename. oplocks.py
breaks caches before these checks. Sources: [MS-FSA] sections 2.1.5.4 (close), 2.1.5.15.3
(disposition) and 2.1.5.15.11 (rename); smb.md 3.4, 3.7 and 4.4; "Managing file locks" of the Azure
Storage REST reference.

REST's Delete File and Delete Directory are atomic: they never leave a deletion pending.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from strongroom.errors import file as file_errors
from strongroom.errors.core import ErrorCode
from strongroom.semantics.file import accesses, names

# DispositionEx (64) and RenameEx (65) are refused so that Windows falls back to the classes 13 and
# 10 (smb.md 2.11). Which status it needs is not documented; clients of smbd accept this one.
DISPOSITION_EX_STATUS: Final = 0xC000_0003
"""The status INVALID_INFO_CLASS."""
RENAME_EX_STATUS: Final = 0xC000_0003
"""The status INVALID_INFO_CLASS."""


class DeletionState(msgspec.Struct, frozen=True):
    """Whether a file is to be deleted when its last open leaves.

    Attributes:
        is_pending: set by a disposition, or by the close of a handle with delete-on-close.
        on_close: the ids of the open handles with delete-on-close. No answer shows these.
    """

    is_pending: bool = False
    on_close: frozenset[int] = frozenset()


class FileFacts(msgspec.Struct, frozen=True):
    """The facts from the records of a file or directory that deletions and opens depend on.

    Attributes:
        is_empty: the directory has no names below it; True for files.
        is_leased: it has a REST lease.
        has_pending_copy: a copy to the file is pending.
    """

    is_directory: bool = False
    is_read_only: bool = False
    is_empty: bool = True
    is_leased: bool = False
    is_root: bool = False
    has_pending_copy: bool = False


NOTHING_PENDING: Final = DeletionState()


def refusal_while_pending(state: DeletionState) -> ErrorCode | None:
    """The refusal of opens and REST operations while deletion is pending; None = it is not.

    It is never 404 while the file exists. REST answers SMBDeletePending, SMB answers
    DELETE_PENDING. This also refuses a create in a directory whose deletion is pending.
    """
    return file_errors.SMB_DELETE_PENDING if state.is_pending else None


def is_listed(state: DeletionState, *, over_rest: bool) -> bool:
    """REST hides a file whose deletion is pending, SMB shows it (measured)."""
    return not (over_rest and state.is_pending)


def with_delete_on_close(
    state: DeletionState, open_id: int, mask: int, node: FileFacts
) -> DeletionState | ErrorCode:
    """The state after an open with FILE_DELETE_ON_CLOSE; other opens are not affected.

    Arguments:
        mask: the access that was requested; it must contain DELETE itself.
    """
    if not mask & accesses.DELETE:
        return file_errors.DELETE_ON_CLOSE_WITHOUT_DELETE
    refused = _undeletable(node)
    return refused or replace(state, on_close=state.on_close | {open_id})


def with_disposition(
    state: DeletionState, *, delete: bool, mask: int, node: FileFacts
) -> DeletionState | ErrorCode:
    """The state after SetInfo FileDispositionInformation of a handle.

    Taking a disposition back does not undo delete-on-close: the call succeeds, and the file is
    still deleted with its handle (measured, smb.md 3.4).

    Arguments:
        mask: the access that the handle was granted.
    """
    if not mask & accesses.DELETE:
        return file_errors.ACCESS_DENIED_TO_HANDLE
    if delete:
        refused = _undeletable(node)
        if refused is not None:
            return refused
        if not node.is_empty:
            return file_errors.DIRECTORY_NOT_EMPTY
    return replace(state, is_pending=delete)


def closed(state: DeletionState, open_id: int, node: FileFacts) -> DeletionState:
    """The state after a handle's close, by its client, by force or by a lost connection.

    Delete-on-close of a directory that is not empty is ignored.
    """
    goes = open_id in state.on_close and node.is_empty
    return DeletionState(state.is_pending or goes, state.on_close - {open_id})


def rest_deletion_refusal(node: FileFacts) -> ErrorCode | None:
    """Why REST's Delete File or Delete Directory fails, apart from opens, leases and conditions;
    None = it does not."""
    if node.is_root:
        return file_errors.CANNOT_DELETE
    if node.is_read_only:
        return file_errors.CANNOT_DELETE if node.is_directory else file_errors.READ_ONLY_ATTRIBUTE
    return None if node.is_empty else file_errors.DIRECTORY_NOT_EMPTY


def _undeletable(node: FileFacts) -> ErrorCode | None:
    return file_errors.CANNOT_DELETE if node.is_root or node.is_read_only else None


class RenameTarget(msgspec.Struct, frozen=True):
    """The file or directory that already has the new name, and is not the renamed one itself.

    Attributes:
        is_open: whether it is open, after clients were asked to close cached handles.
    """

    node: FileFacts
    deletion: DeletionState = NOTHING_PENDING
    is_open: bool = False


class Rename(msgspec.Struct, frozen=True):
    """A rename, of a handle or over REST, and all that its checks depend on.

    Attributes:
        may_delete: the handle was granted DELETE; True over REST.
        has_parent: the new parent exists and is a directory.
        has_open_descendants: a file or directory below the source is open.
        is_parent_in_use: an open of the new parent conflicts with accesses.RENAME_PARENT.
        is_into_itself: the new parent is the source, or lies below it.
        ignores_read_only: of REST's x-ms-file-rename-ignore-readonly: replace a read-only target.
    """

    old_path: tuple[str, ...]
    new_path: tuple[str, ...]
    source: FileFacts
    deletion: DeletionState = NOTHING_PENDING
    target: RenameTarget | None = None
    may_delete: bool = True
    replaces: bool = False
    ignores_read_only: bool = False
    has_parent: bool = True
    has_open_descendants: bool = False
    is_parent_in_use: bool = False
    is_into_itself: bool = False


def rename_refusal(rename: Rename) -> ErrorCode | None:
    """The error of the first check that a rename fails, in the order of smb.md 3.7; None = it
    passes all.

    A rename to the same name succeeds without effect. A rename that changes only the case of
    letters has no target, since the name that it finds is the file's own.
    """
    if not rename.may_delete:
        return file_errors.ACCESS_DENIED_TO_HANDLE
    if not rename.has_parent:
        return file_errors.PARENT_NOT_FOUND
    if rename.deletion.is_pending:
        return file_errors.RENAME_OF_PENDING
    if rename.source.is_root:
        return file_errors.CANNOT_DELETE
    if rename.source.is_directory and rename.has_open_descendants:
        return file_errors.DIRECTORY_IN_USE
    if rename.is_parent_in_use or rename.is_into_itself:
        return file_errors.SHARING_VIOLATION
    return None if rename.target is None else _target_refusal(rename, rename.target)


def is_same_name(rename: Rename) -> bool:
    """Case included, so that nothing changes."""
    return rename.old_path == rename.new_path


def is_case_change(rename: Rename) -> bool:
    """Whether only the case of letters changes, so that the record's key stays."""
    return not is_same_name(rename) and (
        tuple(map(names.fold, rename.old_path)) == tuple(map(names.fold, rename.new_path))
    )


def _target_refusal(rename: Rename, target: RenameTarget) -> ErrorCode | None:
    if not rename.replaces:
        return file_errors.FILE_ALREADY_EXISTS
    if target.node.is_directory:
        return file_errors.TARGET_IS_DIRECTORY
    if target.node.is_read_only and not rename.ignores_read_only:
        return file_errors.READ_ONLY_ATTRIBUTE
    if target.deletion.is_pending:
        # This comes before the check for opens: a file with a pending deletion is always open.
        return file_errors.SMB_DELETE_PENDING
    return file_errors.TARGET_IN_USE if target.is_open else None
