"""Durable handles: they outlive their connection until the client reconnects or a time-out passes.

Lives here: the state that a grant keeps, the wait, the reconnect, and repeated answers to a CREATE.
Must not live here: the rules (semantics/file/durability.py), bounds and CreateGuids
(opens/durable_handles.py). Sources: [MS-SMB2] sections 3.3.5.9.6 to 3.3.5.9.12 and 3.3.7.1; smb.md
3.9.

Locks, delete-on-close, caching, position and id stay with the handle. All of this is held state, so
no handle outlives the process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Final

from strongroom.errors import core as errors
from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.file import durability, opens
from strongroom.semantics.file.durability import (
    DisconnectReason,
    DurableOpen,
    ReconnectClaim,
    RepeatedCreate,
)
from strongroom.semantics.file.oplocks import Caching, CachingHolder
from strongroom.services.core.runner import Services
from strongroom.services.file.handles import closing, information
from strongroom.services.file.handles.model import (
    CreateAction,
    Handle,
    OpenedHandle,
    RequestedDurability,
    RequestedOpen,
    RequestedReconnect,
)
from strongroom.services.file.opens.background import wait_store_time
from strongroom.services.file.opens.durable_handles import CreateKey
from strongroom.services.file.opens.open_handle import DurableState, HandleOwner, ShareAccess
from strongroom.services.file.opens.opens import Opens

_MS_PER_S: Final = 1000
# The share was deleted, or the handle is already closed.
_GONE: Final = (file_errors.SHARE_GONE, file_errors.HANDLE_CLOSED)


def granted(
    asked: RequestedDurability | None,
    owner: HandleOwner,
    caching: Caching,
    action: CreateAction,
    *,
    is_file: bool,
) -> DurableState | None:
    """Return the state that an open keeps for its durability. None = it asked for none, or is
    granted none and has no CreateGuid.

    A CreateGuid is kept without a grant too, since its CREATE may be repeated all the same.
    """
    if asked is None:
        return None
    is_durable = durability.is_granted(caching, is_directory=not is_file)
    if not is_durable and asked.create_guid is None:
        return None
    timeout_ms = durability.timeout_ms(asked.create_guid, asked.timeout_ms) if is_durable else 0
    return DurableState(owner.client_guid, asked.create_guid, owner.user, timeout_ms, int(action))


def timeout_of(handle: Handle) -> int | None:
    """In milliseconds; None = the handle is not durable."""
    return None if handle.durable is None else handle.durable.timeout_ms or None


async def disconnect(
    services: Services, handles: Iterable[Handle], reason: DisconnectReason
) -> None:
    """Clients leave their handles without a CLOSE: some wait for a reconnect, and the others are
    closed."""
    ended = [one for one in handles if not begin_wait(services, one, reason)]
    await closing.close_all(services, ended)


def begin_wait(services: Services, handle: Handle, reason: DisconnectReason) -> bool:
    """Let a durable handle wait for its client to reconnect, if the rules and the bounds permit it.
    Returns whether it waits. If not, the caller closes it."""
    held, state = services.held.of(Opens), handle.durable
    table = held.table(handle.partition)
    holder = opens.holder_of(table, handle.key)
    if handle.is_closed or state is None or not state.timeout_ms:
        return False
    if not durability.survives_disconnect(reason, holder, table.deletion):
        return False
    if not held.durable.has_room(handle.access.account):
        return False
    timer = asyncio.ensure_future(_expire(services, held, handle, state.timeout_ms / _MS_PER_S))
    close = partial(closing.begin, services, handle)
    held.durable.wait(handle, held.node(handle.partition), timer, close)
    held.put(handle.partition, opens.with_connection(table, handle.id, is_connected=False))
    return True


async def _expire(services: Services, held: Opens, handle: Handle, timeout_s: float) -> None:
    if await wait_store_time(services, timeout_s):
        held.durable.close_disconnected(handle)


async def reconnect(
    services: Services, access: ShareAccess, wanted: RequestedReconnect, owner: HandleOwner
) -> OpenedHandle:
    """Give a durable handle back to its client.

    Operations that the lost connection began are waited for, so that none takes effect after new
    ones.

    Raises: StorageError OBJECT_NAME_NOT_FOUND (this client has no such handle), ACCESS_DENIED (it
        is another user's), INVALID_PARAMETER (its lease is of another file).
    """
    held = services.held.of(Opens)
    handle = _claimed(held, access, wanted, owner)
    await handle.life.until_idle()
    now = await services.store.now()
    try:
        info = await information.attributes(services, handle)
    except StorageError as error:
        if error.row not in _GONE:
            raise
        raise StorageError(errors.RESOURCE_NOT_FOUND) from None
    # While this waited, the handle may have been closed or given back, so it is checked again.
    # Nothing is awaited from here on.
    handle = _claimed(held, access, wanted, owner)
    held.durable.end_wait(handle)
    held.durable.forget_create(handle)
    handle.return_to(owner, now)
    table = opens.with_connection(held.table(handle.partition), handle.id, is_connected=True)
    held.put(handle.partition, table)
    holder = opens.holder_of(table, handle.key)
    assert holder is not None, "it was checked that it caches the handle"
    return OpenedHandle(
        handle, CreateAction.OPENED, info, holder.held, handle.kind, epoch=holder.epoch
    )


def _claimed(
    held: Opens, access: ShareAccess, wanted: RequestedReconnect, owner: HandleOwner
) -> Handle:
    """Return the handle if the client may have it back."""
    handle = held.handles.get(wanted.handle)
    if handle is not None and handle.is_closed:
        handle = None
    claim = ReconnectClaim(
        create_guid=wanted.create_guid,
        user=owner.user,
        place=access,
        client_guid=owner.client_guid,
        lease_key=wanted.lease_key,
        lease_kind=wanted.lease_kind,
        path=wanted.path,
    )
    facts = None if handle is None else _facts(held, handle)
    refused = durability.reconnect_refusal(facts, claim)
    if refused is not None or handle is None:
        raise StorageError(refused or errors.RESOURCE_NOT_FOUND)
    return handle


def _holder(held: Opens, handle: Handle) -> CachingHolder | None:
    return opens.holder_of(held.table(handle.partition), handle.key)


def _facts(held: Opens, handle: Handle) -> DurableOpen:
    state, holder = handle.durable, _holder(held, handle)
    return DurableOpen(
        is_durable=state is not None and bool(state.timeout_ms),
        is_connected=handle.owner is not None,
        create_guid=None if state is None else state.create_guid,
        user="" if state is None else state.user,
        place=handle.access,
        caching=Caching.NONE if holder is None else holder.held,
        key=handle.key,
        kind=handle.kind,
        path=handle.path,
    )


# Repeated answers to a CREATE.


def create_key(asked: RequestedOpen, owner: HandleOwner) -> CreateKey | None:
    """None = the CREATE has no CreateGuid."""
    guid = None if asked.durable is None else asked.durable.create_guid
    return None if guid is None else (owner.client_guid, guid)


def repeated(
    held: Opens, access: ShareAccess, asked: RequestedOpen, owner: HandleOwner
) -> Handle | None:
    """Return the handle that an earlier run of the same CREATE has made; None = the CREATE is new.

    Raises: StorageError FILE_NOT_AVAILABLE (it is still under way), DUPLICATE_OBJECTID,
        ACCESS_DENIED (another user's, or another lease).
    """
    key, known = create_key(asked, owner), held.durable
    if key is None or asked.durable is None or not known.is_known(key):
        return None
    handle = known.created(key)
    again = RepeatedCreate(
        asked.durable.is_replay,
        handle is not None
        and handle.owner is owner
        and handle.access.generation == access.generation,
        owner.user,
        owner.client_guid,
        asked.cache.lease_key,
    )
    facts = None if handle is None else _facts(held, handle)
    refused = durability.repetition_refusal(facts, again)
    if refused is not None:
        raise StorageError(refused)
    return handle


async def repeated_answer(services: Services, handle: Handle) -> OpenedHandle:
    """The answer to a CREATE that was carried out before, with the present state of its handle."""
    info = await information.attributes(services, handle)
    assert handle.durable is not None, "it has a CreateGuid"
    holder = _holder(services.held.of(Opens), handle)
    return OpenedHandle(
        handle,
        CreateAction(handle.durable.action),
        info,
        Caching.NONE if holder is None else holder.held,
        handle.kind,
        is_breaking=holder is not None and holder.is_breaking,
        epoch=0 if holder is None else holder.epoch,
        durable_timeout_ms=timeout_of(handle),
        is_repeated=True,
    )


# LOCKs that a client repeats after it has reconnected.


async def lock_once(
    handle: Handle, bucket: int, number: int, lock: Callable[[], Awaitable[None]]
) -> None:
    """Carry out a LOCK of a durable handle, unless its bucket shows that this was done before.
    `bucket`, `number`: LockSequenceIndex and LockSequenceNumber."""
    state = handle.durable
    if state is None or not state.timeout_ms or bucket not in durability.LOCK_SEQUENCE_BUCKETS:
        await lock()
        return
    if handle.is_closed:
        raise StorageError(file_errors.HANDLE_CLOSED)
    if durability.is_repeated_lock(state.lock_numbers, bucket, number):
        return
    state.lock_numbers.pop(bucket, None)
    await lock()
    state.lock_numbers[bucket] = number
