"""The caching that a new open is granted beside the present holders.

The rules of granting and of promotion; breaks: oplocks.py. Sources: [MS-SMB2] section 3.3.5.9.8;
[MS-FSA] section 2.1.5.18; smb.md 3.6, "grant rule at CREATE".
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from strongroom.semantics.file.oplocks import (
    LEASE_STATES,
    Caching,
    CachingHolder,
    CachingKey,
    CachingKind,
    N,
    R,
)


class GrantLimits(msgspec.Struct, frozen=True):
    """The facts that limit the caching of a new open: other opens, other caches, and the file.

    Attributes:
        others_open: another key has an open that is not for attributes only, or has or had a lease
            or an oplock.
        level_ii: another key has a level II oplock.
        handles_cached: the lease or oplock of another key includes Handle.
        writes_cached: the lease or oplock of another key includes Write. Only an open for
            attributes does not break it, and no other open may cache then ([MS-FSA] 2.1.5.18.1).
        locked: the file has byte-range locks that the open does not overwrite.
        pending: deletion of the file is pending.
        directory: it is a directory: there are no directory leases.
    """

    others_open: bool = False
    level_ii: bool = False
    handles_cached: bool = False
    writes_cached: bool = False
    locked: bool = False
    pending: bool = False
    directory: bool = False


def grantable(kind: CachingKind, wanted: int, limits: GrantLimits) -> Caching:
    """The part of the wanted caching that a new open may have (smb.md 3.6); NONE for an invalid
    state."""
    if wanted not in LEASE_STATES or limits.directory or limits.locked or limits.writes_cached:
        return N
    state = Caching(wanted)
    if kind is CachingKind.OPLOCK:
        if limits.handles_cached:
            return N
        return state & R if limits.others_open or limits.pending else state
    if limits.others_open:
        state &= ~Caching.WRITE
    if limits.level_ii or limits.pending:
        state &= ~Caching.HANDLE
    return state


def granted(own: CachingHolder, wanted: int, limits: GrantLimits) -> CachingHolder:
    """The holder after another open with its key. Its rights grow or stay the same; they never
    shrink.

    A holder that is being broken is not promoted; the answer then carries BREAK_IN_PROGRESS.
    """
    if own.is_breaking:
        return own
    state = grantable(own.kind, wanted, limits)
    # A state that cannot be granted as a whole promotes nothing.
    if state != wanted or state == own.held or own.held & ~state:
        return own
    epoch = (own.epoch + 1) & 0xFFFF if own.kind is CachingKind.LEASE_V2 else 0
    return replace(own, held=state, epoch=epoch)


def new_holder(
    key: CachingKey, kind: CachingKind, wanted: int, epoch: int, limits: GrantLimits
) -> CachingHolder:
    """The new holder of a key, with the caching that it is granted, which may be NONE.

    Arguments:
        epoch: as the client sent it; a lease of version 2 starts one above (smb.md 3.6).
    """
    started = (epoch + 1) & 0xFFFF if kind is CachingKind.LEASE_V2 else 0
    return CachingHolder(key, kind, grantable(kind, wanted, limits), epoch=started)
