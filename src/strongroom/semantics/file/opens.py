"""The table of opens of one file, and the admission to it: admitted, refused, or waiting.

Admission of SMB opens and REST operations, the effect of a handle's operations on the caches of
others, and leaving. The rules that it applies lie in accesses.py, oplocks.py, grants.py,
deletion.py and byte_ranges.py. Sources: [MS-SMB2] section 3.3.5.9; [MS-FSA] section 2.1.5.1.2;
"Managing file locks" of the Azure Storage REST reference; smb.md 2.4, 3.6 and 4.

A REST operation is an open that lasts one request; an SMB open lasts as long as its handle. Each
enters the table before it decides, and keeps its entry until its decision is durable or refused.
Each function returns the next table, which the caller stores without waiting in between. An open
that must wait has no entry. It tries again when a holder has answered, timed out, or left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import msgspec
from msgspec.structs import replace

from strongroom.errors import copies as copy_errors
from strongroom.errors import file as file_errors
from strongroom.errors.core import ErrorCode
from strongroom.semantics.file import accesses, byte_ranges, deletion, grants, oplocks
from strongroom.semantics.file.accesses import IMPLIED, Disposition, FileOperation, Stake, Use
from strongroom.semantics.file.byte_ranges import LockTable
from strongroom.semantics.file.deletion import DeletionState, FileFacts
from strongroom.semantics.file.oplocks import (
    BreakNotice,
    Broken,
    Caching,
    CachingHolder,
    CachingKey,
    CachingKind,
    Cause,
)

_CHANGES: Final = Use.WRITE | Use.DELETE
_HANDLE: Final = int(Use.HANDLE)
OVERWRITES = (Disposition.SUPERSEDE, Disposition.OVERWRITE, Disposition.OVERWRITE_IF)


class OpenEntry(msgspec.Struct, frozen=True):
    """An open of the file.

    Attributes:
        id: never used twice in the life of the process; List Handles shows it.
        stake: what it uses and denies now; a handle's disposition counts at admission only.
        key: the key of the caches that its operations do not break; None for REST.
        mask: the access that a handle was granted; 0 for REST.
        is_stat: it is for attributes or security only, so that it limits no caching of others.
        is_disconnected: a durable handle waits for its client.
    """

    id: int
    stake: Stake
    key: CachingKey | None
    mask: int = 0
    is_stat: bool = False
    is_disconnected: bool = False

    @property
    def is_handle(self) -> bool:
        """Whether it is an SMB handle; the other kind is a REST operation under way."""
        return bool(int(self.stake.uses) & _HANDLE)


class OpenTable(msgspec.Struct, frozen=True):
    """The opens of a file and their shared state; it is lost when the process ends."""

    entries: tuple[OpenEntry, ...] = ()
    holders: tuple[CachingHolder, ...] = ()
    deletion: DeletionState = deletion.NOTHING_PENDING
    locks: LockTable = byte_ranges.NO_LOCKS


class HandleRequest(msgspec.Struct, frozen=True):
    """An SMB2 CREATE of a file that exists, or that has just been created.

    Attributes:
        mask: the desired access, without generic rights.
        disposition: what it does to the existing file; OPEN if it has created the file.
        key: of its lease; None = the open itself.
        wanted: the caching that it requests: bits of a lease, or those of an oplock's level.
        epoch: of a lease of version 2, as the client sent it.
        has_waited: it tries again after a wait.
    """

    id: int
    mask: int
    share: Use
    disposition: Disposition = Disposition.OPEN
    key: CachingKey | None = None
    kind: CachingKind = CachingKind.OPLOCK
    wanted: int = 0
    epoch: int = 0
    deletes_on_close: bool = False
    has_waited: bool = False


class RestRequest(msgspec.Struct, frozen=True):
    """A REST operation on a file.

    Attributes:
        clears_read_only: Set File Properties removes the attribute ReadOnly.
        offset, length: the bytes that it concerns, for locks; see `byte_ranges.WHOLE_FILE`.
    """

    id: int
    operation: FileOperation
    clears_read_only: bool = False
    offset: int = 0
    length: int = byte_ranges.OFFSETS


class OpenAdmitted(msgspec.Struct, frozen=True):
    """The open has its entry. The caller sends the notices, and does not wait for their answers.

    Attributes:
        caching: what a handle may cache now.
        kind: of its lease, which the first open with the key has set; or of its oplock.
        is_breaking: its lease is being broken (SMB2_LEASE_FLAG_BREAK_IN_PROGRESS).
        epoch: of its lease.
    """

    table: OpenTable
    notices: tuple[BreakNotice, ...] = ()
    caching: Caching = Caching.NONE
    kind: CachingKind = CachingKind.OPLOCK
    is_breaking: bool = False
    epoch: int = 0


class OpenRefused(msgspec.Struct, frozen=True):
    """The open has no entry, and the table is unchanged."""

    row: ErrorCode


class BreakAwaited(msgspec.Struct, frozen=True):
    """The open has no entry yet. Send the notices, and try again when a holder has changed."""

    table: OpenTable
    notices: tuple[BreakNotice, ...]
    holders: tuple[CachingKey, ...]


Admission = OpenAdmitted | OpenRefused | BreakAwaited
_Effect = Callable[[CachingHolder], Broken | None]


def admit_handle(table: OpenTable, request: HandleRequest, node: FileFacts) -> Admission:
    """Enter an SMB open, in the order of checks of smb.md 2.4.

    Pending deletion comes first. Then come batch oplocks, whose holders may close instead, and the
    attribute ReadOnly. Then share modes, for which Handle caches are broken, and other caches.
    """
    key = request.id if request.key is None else request.key
    overwrites = request.disposition in OVERWRITES
    cause = Cause.OVERWRITE if overwrites else Cause.OPEN
    refused = deletion.refusal_while_pending(table.deletion)
    if refused is not None:
        return OpenRefused(refused)
    effect = _open_effect(request, cause)
    first = _broken(table, lambda holder: effect(holder) if _is_batch(holder) else None, but=key)
    if first.waits:
        return first.awaited()
    refused = _handle_refusal(request, node)
    if refused is not None:
        return OpenRefused(refused)
    stake = accesses.stake_of_handle(request.mask, request.share, request.disposition)
    conflict = _conflict(table, stake, key, node, others=table.entries)
    if conflict is not None:
        return conflict
    rest = _broken(table, effect, key)
    if rest.waits:
        return rest.awaited()
    kept = accesses.stake_of_handle(request.mask, request.share)
    is_stat = accesses.is_stat(request.mask, request.disposition, is_lease=True)
    entry = OpenEntry(request.id, kept, key, request.mask, is_stat)
    return _entered(rest, entry, request, node, overwrites=overwrites)


def admit_rest(table: OpenTable, request: RestRequest, node: FileFacts) -> Admission:
    """Enter a REST operation: pending deletion and copy, ReadOnly, share modes, locks, caches.

    REST operations never conflict with each other, only with SMB handles. The caller limits its
    waiting to REST_WAIT_LIMIT_S and then answers ClientCacheFlushDelay. Source: smb.md 4.
    """
    refused = (
        deletion.refusal_while_pending(table.deletion)
        or _copying(request, node)
        or _read_only(request, node)
    )
    if refused is not None:
        return OpenRefused(refused)
    stake = accesses.REST_STAKES[request.operation]
    handles = tuple(entry for entry in table.entries if entry.is_handle)
    conflict = _conflict(table, stake, None, None, others=handles, cause=_unlink(request))
    if conflict is not None:
        return conflict
    cause = oplocks.REST_CAUSES[request.operation]

    def effect(holder: CachingHolder) -> Broken | None:
        return None if cause is None else oplocks.effect(holder, cause)

    # This comes before the check of locks, since a disconnected handle's locks go with it.
    gone = _broken(table, lambda one: effect(one) if is_disconnected(table, one.key) else None)
    if gone.waits:
        return gone.awaited()
    use = byte_ranges.REST_LOCK_USES.get(request.operation)
    if use is not None:
        refused = byte_ranges.conflict(table.locks, use, request.offset, request.length)
        if refused is not None:
            return OpenRefused(refused)
    broken = _broken(table, effect)
    if broken.waits:
        return broken.awaited()
    entry = OpenEntry(request.id, stake, None)
    return OpenAdmitted(_with(broken.table, entry), broken.notices)


def break_caches(table: OpenTable, open_id: int, cause: Cause) -> OpenAdmitted | BreakAwaited:
    """Break the caches of others, and an own level II oplock, for an operation by a handle."""
    key = entry_of(table, open_id).key
    own = _broken(table, lambda one: oplocks.effect_on_own(one, cause) if one.key == key else None)
    others = _broken(own.table, lambda one: oplocks.effect(one, cause), key)
    notices = (*own.notices, *others.notices)
    if others.waits:
        return BreakAwaited(others.table, notices, others.waits)
    return OpenAdmitted(others.table, notices)


def break_caches_without_open(
    table: OpenTable, cause: Cause, but: CachingKey | None = None
) -> OpenAdmitted | BreakAwaited:
    """Break the caches of a file, on behalf of an operation that has no open of it.

    Such an operation is a rename of a directory above it, or the close of a handle that leaves the
    file to be deleted. A disconnected handle has no client to close it, so it is closed at once.

    Arguments:
        but: the key whose cache stays: that of the closed handle.
    """

    def effect(one: CachingHolder) -> Broken | None:
        broken_to = oplocks.effect(one, cause)
        is_alone = broken_to is None and is_disconnected(table, one.key)
        return oplocks.effect(one, Cause.UNLINK) if is_alone else broken_to

    broken = _broken(table, effect, but)
    return broken.awaited() if broken.waits else OpenAdmitted(broken.table, broken.notices)


def set_disposition(
    table: OpenTable, open_id: int, node: FileFacts, *, delete: bool
) -> OpenAdmitted | OpenRefused | BreakAwaited:
    """Mark the file for deletion by a handle, or take the mark back (deletion.py). Handle caches of
    others are broken first."""
    mask = entry_of(table, open_id).mask
    state = deletion.with_disposition(table.deletion, delete=delete, mask=mask, node=node)
    if isinstance(state, ErrorCode):
        return OpenRefused(state)
    broken = break_caches(table, open_id, Cause.NAME_CHANGE) if delete else OpenAdmitted(table)
    if isinstance(broken, BreakAwaited):
        return broken
    return replace(broken, table=replace(broken.table, deletion=state))


def entry_of(table: OpenTable, open_id: int) -> OpenEntry:
    """KeyError when the open has left."""
    for entry in table.entries:
        if entry.id == open_id:
            return entry
    raise KeyError(open_id)


def holder_of(table: OpenTable, key: CachingKey) -> CachingHolder | None:
    """The lease or oplock of a key, even if it has been broken to nothing; None = there is none."""
    return next((one for one in table.holders if one.key == key), None)


def is_disconnected(table: OpenTable, key: CachingKey) -> bool:
    """Whether all opens of an oplock or a lease wait for their client, so that none can answer."""
    own = [one.is_disconnected for one in table.entries if one.key == key]
    return bool(own) and all(own)


def with_connection(table: OpenTable, open_id: int, *, is_connected: bool) -> OpenTable:
    """The table after a durable handle lost its client, or got it back."""
    entries = tuple(
        replace(one, is_disconnected=not is_connected) if one.id == open_id else one
        for one in table.entries
    )
    return replace(table, entries=entries)


def with_holder(table: OpenTable, holder: CachingHolder) -> OpenTable:
    """The table after a holder's answer or time-out (oplocks.py)."""
    holders = tuple(holder if one.key == holder.key else one for one in table.holders)
    return replace(table, holders=holders)


class Departure(msgspec.Struct, frozen=True):
    """The result of an open's leaving.

    Attributes:
        removes: the file is removed now: it was the last open, and deletion is pending.
        granted_locks: the ids of the waiting lock requests that are granted now.
    """

    table: OpenTable
    removes: bool
    granted_locks: tuple[int, ...] = ()


def leave(table: OpenTable, open_id: int, node: FileFacts) -> Departure:
    """Remove an entry: at a handle's close, of any kind, or at the end of a REST operation.

    Its locks are freed. Its lease ends with the last open of its key, and so does a break of it.

    Raises: KeyError when it has left already.
    """
    gone = entry_of(table, open_id)
    entries = tuple(entry for entry in table.entries if entry.id != open_id)
    keys = {entry.key for entry in entries}
    freed = byte_ranges.released(table.locks, open_id)
    state = deletion.closed(table.deletion, open_id, node) if gone.is_handle else table.deletion
    remaining = OpenTable(
        entries, tuple(one for one in table.holders if one.key in keys), state, freed.table
    )
    return Departure(remaining, state.is_pending and not entries, freed.granted)


class _Breaks(msgspec.Struct, frozen=True):
    table: OpenTable
    notices: tuple[BreakNotice, ...]
    waits: tuple[CachingKey, ...]

    def awaited(self) -> BreakAwaited:
        return BreakAwaited(self.table, self.notices, self.waits)


def _broken(table: OpenTable, effect: _Effect, but: CachingKey | None = None) -> _Breaks:
    """Break every holder, except that of the key `but`, to what `effect` returns."""
    holders, notices, waits = [], [], []
    for holder in table.holders:
        broken = None if holder.key == but else effect(holder)
        if broken is not None:
            # A disconnected handle has no client to answer: the operation waits for its close.
            if broken.waits or is_disconnected(table, holder.key):
                waits.append(holder.key)
            holder, notice = oplocks.broken(holder, broken.to)
            notices += [notice] if notice is not None else []
        holders.append(holder)
    return _Breaks(replace(table, holders=tuple(holders)), tuple(notices), tuple(waits))


def _open_effect(request: HandleRequest, cause: Cause) -> _Effect:
    """The effect of an open on a holder. Whether the open is for attributes only depends on the
    holder's kind.

    While a lease is being broken, an open waits for the answer, whichever open caused the break.
    Only a first attempt that breaks no write cache continues at once. An open that has waited waits
    for the last step of the break (smbtorture, lease.breaking3).
    """

    def effect(holder: CachingHolder) -> Broken | None:
        is_lease = holder.kind is not CachingKind.OPLOCK
        if accesses.is_stat(request.mask, request.disposition, is_lease=is_lease):
            return None
        broken = oplocks.effect(holder, cause)
        if not holder.is_breaking:
            return broken
        if broken is None:
            return Broken(holder.held, waits=True)
        return Broken(broken.to, waits=broken.waits or request.has_waited)

    return effect


def _is_batch(holder: CachingHolder) -> bool:
    return holder.kind is CachingKind.OPLOCK and holder.held == oplocks.RWH


def _unlink(request: RestRequest) -> Cause:
    is_delete = request.operation is FileOperation.DELETE_FILE
    return Cause.UNLINK if is_delete else Cause.SHARE_CONFLICT


def _handle_refusal(request: HandleRequest, node: FileFacts) -> ErrorCode | None:
    uses = accesses.uses_of(request.mask | IMPLIED[request.disposition])
    if node.has_pending_copy and uses & _CHANGES:
        return file_errors.SHARING_VIOLATION
    writes = accesses.WRITE_DATA | accesses.APPEND_DATA
    is_change = request.mask & writes or request.disposition in OVERWRITES
    if node.is_read_only and not node.is_directory and is_change:
        return file_errors.READ_ONLY_ATTRIBUTE
    if not request.deletes_on_close:
        return None
    outcome = deletion.with_delete_on_close(
        deletion.NOTHING_PENDING, request.id, request.mask, node
    )
    return outcome if isinstance(outcome, ErrorCode) else None


def _copying(request: RestRequest, node: FileFacts) -> ErrorCode | None:
    refuses = request.operation in accesses.PENDING_COPY_REFUSES
    return copy_errors.PENDING_COPY_OPERATION if node.has_pending_copy and refuses else None


def _read_only(request: RestRequest, node: FileFacts) -> ErrorCode | None:
    refuses = request.operation in accesses.READ_ONLY_REFUSES and not request.clears_read_only
    is_read_only = node.is_read_only and not node.is_directory
    return file_errors.READ_ONLY_ATTRIBUTE if is_read_only and refuses else None


def _conflict(
    table: OpenTable,
    stake: Stake,
    key: CachingKey | None,
    node: FileFacts | None,
    *,
    others: Iterable[OpenEntry],
    cause: Cause = Cause.SHARE_CONFLICT,
) -> OpenRefused | BreakAwaited | None:
    """The outcome of a conflict of stakes; None = there is none.

    Holders in conflict that cache their handle are asked to give it up. A handle that its user has
    closed is then closed, and the caller tries again.

    Arguments:
        node: its REST lease counts as an open; None for REST itself.
    """
    in_the_way = {entry.key for entry in others if entry.stake.conflicts(stake)}
    is_leased = node is not None and node.is_leased and accesses.LEASED.conflicts(stake)
    if not in_the_way and not is_leased:
        return None

    def effect(holder: CachingHolder) -> Broken | None:
        return oplocks.effect(holder, cause) if holder.key in in_the_way else None

    broken = _broken(table, effect, key)
    if broken.waits and not is_leased:
        return broken.awaited()
    return OpenRefused(file_errors.SHARING_VIOLATION)


def _with(table: OpenTable, entry: OpenEntry) -> OpenTable:
    assert all(one.id != entry.id for one in table.entries), "an id is used once"
    return replace(table, entries=(*table.entries, entry))


def _entered(
    broken: _Breaks, entry: OpenEntry, request: HandleRequest, node: FileFacts, *, overwrites: bool
) -> OpenAdmitted:
    table, key = broken.table, entry.key
    assert key is not None
    limits = _grant_limits(table, key, node, overwrites=overwrites)
    own = holder_of(table, key)
    if own is not None:
        holder = grants.granted(own, request.wanted, limits)
        table = with_holder(table, holder)
    else:
        holder = grants.new_holder(key, request.kind, request.wanted, request.epoch, limits)
        if holder.held:
            table = replace(table, holders=(*table.holders, holder))
    state = table.deletion
    if request.deletes_on_close:
        state = replace(state, on_close=state.on_close | {entry.id})
    table = replace(_with(table, entry), deletion=state)
    return OpenAdmitted(
        table, broken.notices, holder.held, holder.kind, holder.is_breaking, holder.epoch
    )


def _grant_limits(
    table: OpenTable, key: CachingKey, node: FileFacts, *, overwrites: bool
) -> grants.GrantLimits:
    opens = [one for one in table.entries if one.key != key and not one.is_stat]
    others = [one for one in table.holders if one.key != key]
    return grants.GrantLimits(
        others_open=bool(opens or others),
        level_ii=any(one.kind is CachingKind.OPLOCK and one.held == oplocks.R for one in others),
        handles_cached=any(one.held & Caching.HANDLE for one in others),
        writes_cached=any(one.held & Caching.WRITE for one in others),
        locked=bool(table.locks.locks) and not overwrites,
        pending=table.deletion.is_pending,
        directory=node.is_directory,
    )
