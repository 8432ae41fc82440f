"""Durable handles: which are granted, which outlive their connection, and which client gets one
back.

The rules of durable handles of versions 1 and 2, of repeated CREATEs and of repeated LOCKs, as
tables. Sources: [MS-SMB2] sections 3.3.5.9.6 to 3.3.5.9.12, 3.3.5.14 and 3.3.7.1; smb.md 2.4, 2.6
and 3.9.

A disconnected durable handle can always be closed at once. Any open that needs the file breaks its
Handle caching, and no client is connected to answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from strongroom.enums import FastHashEnum
from strongroom.errors import core as errors
from strongroom.errors import file as file_errors
from strongroom.errors.core import ErrorCode
from strongroom.semantics.file import names
from strongroom.semantics.file.deletion import DeletionState
from strongroom.semantics.file.oplocks import Caching, CachingHolder, CachingKey, CachingKind

V1_TIMEOUT_MS: Final = 120_000
V2_TIMEOUT_MS: Final = 60_000
"""The time-out of version 2 when the client leaves the choice to the server."""
V2_TIMEOUT_MAX_MS: Final = 300_000
LOCK_SEQUENCE_BUCKETS: Final = range(1, 65)
_NO_GUID: Final = bytes(16)


class DisconnectReason(FastHashEnum):
    """How a client leaves its handle without a CLOSE."""

    DISCONNECTED = "the connection was lost, or another session took the place of this one"
    LOGGED_OFF = "LOGOFF"
    TREE_DISCONNECTED = "TREE_DISCONNECT"


def timeout_ms(create_guid: bytes | None, wanted_ms: int) -> int:
    """How long a handle waits for its client, in milliseconds.

    Arguments:
        create_guid: of version 2; None = version 1, whose clients cannot choose.
        wanted_ms: 0 = the server's choice.
    """
    if create_guid is None:
        return V1_TIMEOUT_MS
    return min(wanted_ms or V2_TIMEOUT_MS, V2_TIMEOUT_MAX_MS)


def is_granted(caching: Caching, *, is_directory: bool) -> bool:
    """Whether an open that requests durability gets it. It needs Handle caching, which among
    oplocks only batch has."""
    return bool(caching & Caching.HANDLE) and not is_directory


def survives_disconnect(
    reason: DisconnectReason, holder: CachingHolder | None, deletion: DeletionState
) -> bool:
    """Whether a durable handle waits for its client; if not, it is closed.

    It is closed while its caching is being broken, since another open waits for the file. It is
    closed while deletion is pending, since nobody can open the file until this handle is closed.

    Arguments:
        holder: of its oplock or lease; None = it has none.
    """
    if reason is DisconnectReason.TREE_DISCONNECTED or deletion.is_pending or holder is None:
        return False
    return bool(holder.held & Caching.HANDLE) and not holder.is_breaking


def survives_break(to: Caching, *, is_anybody_connected: bool) -> bool:
    """Whether a disconnected handle stays open when its oplock or lease is broken to `to`.

    Arguments:
        is_anybody_connected: whether another open of the lease can answer the notice.
    """
    return is_anybody_connected and bool(to & Caching.HANDLE)


class DurableOpen(msgspec.Struct, frozen=True):
    """An open that a client wants back, or whose CREATE it repeats.

    Attributes:
        is_durable: durability was granted.
        is_connected: a session has it.
        create_guid: of version 2; None = version 1, which DH2C names by zeros.
        place: identifies its share; only compared.
        caching: what its oplock or lease holds now.
        key, kind: of its oplock or lease; a lease's key begins with its ClientGuid.
        path: its present path.
    """

    is_durable: bool
    is_connected: bool
    create_guid: bytes | None
    user: str
    place: object
    caching: Caching
    key: CachingKey
    kind: CachingKind
    path: tuple[str, ...]


class ReconnectClaim(msgspec.Struct, frozen=True):
    """A CREATE that asks for a durable handle back, with a DHnC or DH2C context. Its other fields
    are ignored.

    Attributes:
        create_guid: from DH2C; None for DHnC, which may also name a handle of version 2.
        lease_key, lease_kind: from RqLs, whatever the oplock level is; None if there is no RqLs.
        path: None if the request's name is not a valid path.
    """

    create_guid: bytes | None
    user: str
    place: object
    client_guid: bytes
    lease_key: bytes | None
    lease_kind: CachingKind | None
    path: tuple[str, ...] | None


_Row = tuple[Callable[[DurableOpen, ReconnectClaim], bool], ErrorCode]


def _is_gone(opened: DurableOpen, claim: ReconnectClaim) -> bool:
    is_waiting = opened.is_durable and not opened.is_connected
    return not is_waiting or not opened.caching & Caching.HANDLE or opened.place != claim.place


def _has_other_guid(opened: DurableOpen, claim: ReconnectClaim) -> bool:
    return claim.create_guid is not None and claim.create_guid != (opened.create_guid or _NO_GUID)


def _has_other_lease(opened: DurableOpen, claim: ReconnectClaim) -> bool:
    if isinstance(opened.key, int):
        return claim.lease_key is not None
    is_same_key = opened.key == (claim.client_guid, claim.lease_key)
    return not is_same_key or opened.kind is not claim.lease_kind


def _is_of_other_user(opened: DurableOpen, claim: ReconnectClaim) -> bool:
    return opened.user != claim.user


def _has_other_name(opened: DurableOpen, claim: ReconnectClaim) -> bool:
    if isinstance(opened.key, int):
        return False
    folded = None if claim.path is None else tuple(map(names.fold, claim.path))
    return folded != tuple(map(names.fold, opened.path))


# In the order of [MS-SMB2] 3.3.5.9.7 and 3.3.5.9.12: the first row that applies is the answer.
RECONNECT_ROWS: Final[tuple[_Row, ...]] = (
    (_is_gone, errors.RESOURCE_NOT_FOUND),
    (_has_other_guid, errors.RESOURCE_NOT_FOUND),
    (_has_other_lease, errors.RESOURCE_NOT_FOUND),
    (_is_of_other_user, file_errors.HANDLE_OF_OTHER_USER),
    (_has_other_name, file_errors.LEASE_OF_OTHER_FILE),
)


def reconnect_refusal(found: DurableOpen | None, claim: ReconnectClaim) -> ErrorCode | None:
    """Why a client does not get an open back; None = it does.

    Arguments:
        found: the open with the id that the client names; None = there is none, for example after a
            restart of the server.
    """
    if found is None:
        return errors.RESOURCE_NOT_FOUND
    return next((row for applies, row in RECONNECT_ROWS if applies(found, claim)), None)


class RepeatedCreate(msgspec.Struct, frozen=True):
    """A CREATE with the CreateGuid of one that was answered, and whose open has not been used yet.

    Attributes:
        is_replay: SMB2_FLAGS_REPLAY_OPERATION.
        is_same_session: the request comes from the same session, by the same tree connect.
        lease_key: of RqLs; None = it was not sent.
    """

    is_replay: bool
    is_same_session: bool
    user: str
    client_guid: bytes
    lease_key: bytes | None


def repetition_refusal(found: DurableOpen | None, request: RepeatedCreate) -> ErrorCode | None:
    """Why a repeated CREATE is not answered as the first one was; None = it is.

    Arguments:
        found: the open of the first CREATE; None = that CREATE still waits.
    """
    if found is None:
        return file_errors.CREATE_UNDER_WAY
    if not request.is_replay:
        return file_errors.CREATE_REPEATED
    is_other_lease = (
        request.lease_key is not None and (request.client_guid, request.lease_key) != found.key
    )
    if found.user != request.user or is_other_lease:
        return file_errors.HANDLE_OF_OTHER_USER
    return None if request.is_same_session else file_errors.CREATE_REPEATED


def is_repeated_lock(done: Mapping[int, int], bucket: int, number: int) -> bool:
    """Whether a LOCK has been carried out before: its bucket had this number last.

    Arguments:
        done: the number of the last LOCK of each bucket that succeeded.
        bucket: LockSequenceIndex; outside of LOCK_SEQUENCE_BUCKETS nothing is repeated.
    """
    return bucket in LOCK_SEQUENCE_BUCKETS and done.get(bucket) == number
