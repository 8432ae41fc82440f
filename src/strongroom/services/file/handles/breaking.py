"""OPLOCK_BREAK: how a client answers the notice that its oplock or lease is broken.

Lives here: finding the holder, and the effects of its answer. Must not live here: which cache is
broken to which state (semantics/file/oplocks.py), time-outs and sending (opens/caches.py). Sources:
[MS-SMB2] section 3.3.5.22; smb.md 2.12.

Nothing is awaited: the answer takes effect at once, and waiting opens try again.
"""

from __future__ import annotations

import asyncio
from typing import Final

from strongroom.engines.base import Partition
from strongroom.errors import file as file_errors
from strongroom.errors.core import ErrorCode, StorageError
from strongroom.semantics.file import opens, oplocks
from strongroom.semantics.file.oplocks import (
    LEVELS,
    BreakNotice,
    Caching,
    CachingHolder,
    OplockLevel,
)
from strongroom.services.core.runner import Services
from strongroom.services.file.handles.model import Handle
from strongroom.services.file.opens.opens import Opens

_ROWS: Final[dict[int, ErrorCode]] = {
    row.ntstatus: row
    for row in (
        file_errors.BREAK_NOT_UNDER_WAY,
        file_errors.BREAK_STATE_REFUSED,
        file_errors.OPLOCK_ANSWER_REFUSED,
        file_errors.OPLOCK_LEVEL_INVALID,
        file_errors.OPLOCK_NOT_BREAKING,
    )
    if row.ntstatus is not None
}


def acknowledge_oplock(services: Services, handle: Handle, level: int) -> OplockLevel:
    """Returns: the level that the client keeps.

    Raises: StorageError HANDLE_CLOSED, INVALID_DEVICE_STATE (the oplock is not being broken),
        INVALID_OPLOCK_PROTOCOL, INVALID_PARAMETER. After the last two the client keeps no oplock.
    """
    if handle.is_closed:
        raise StorageError(file_errors.HANDLE_CLOSED)
    held = services.held.of(Opens)
    holder = opens.holder_of(held.table(handle.partition), handle.key)
    if holder is None or handle.key != handle.id:
        raise StorageError(file_errors.OPLOCK_NOT_BREAKING)
    answered, notice, refused = oplocks.oplock_acknowledged(holder, level)
    _apply_answer(services, held, handle.partition, answered, notice)
    if refused is not None:
        raise StorageError(_ROWS[refused])
    left = _kept_rights(answered, notice)
    return next(name for name, caching in LEVELS.items() if caching == left)


def acknowledge_lease(
    services: Services, client_guid: bytes, lease_key: bytes, state: int
) -> Caching:
    """Returns: the rights that the client keeps.

    Raises: StorageError OBJECT_NAME_NOT_FOUND (the client has no such lease), UNSUCCESSFUL (it is
        not being broken), REQUEST_NOT_ACCEPTED (the break allows less than the client wants to
        keep).
    """
    held, key = services.held.of(Opens), (client_guid, lease_key)
    file = held.leases.get(key)
    holder = None if file is None else opens.holder_of(held.table(file), key)
    if file is None or holder is None:
        raise StorageError(file_errors.LEASE_UNKNOWN)
    answer = oplocks.lease_acknowledged(holder, state)
    if isinstance(answer, int):
        raise StorageError(_ROWS[answer])
    answered, notice = answer
    _apply_answer(services, held, file, answered, notice)
    return _kept_rights(answered, notice)


def _kept_rights(answered: CachingHolder, notice: BreakNotice | None) -> Caching:
    """A notice that follows the answer may lower them at once; it names the new rights itself."""
    return answered.held if notice is None else notice.current


def _apply_answer(
    services: Services,
    held: Opens,
    file: Partition,
    answered: CachingHolder,
    notice: BreakNotice | None,
) -> None:
    if notice is not None:
        # The notice follows the answer to this acknowledgment, and precedes the waiters' work.
        asyncio.get_running_loop().call_soon(_send_notice, services, held, file, notice)
    held.answered(file, answered)


def _send_notice(services: Services, held: Opens, file: Partition, notice: BreakNotice) -> None:
    if opens.holder_of(held.table(file), notice.key) is not None:
        held.notify(services, file, [notice])
