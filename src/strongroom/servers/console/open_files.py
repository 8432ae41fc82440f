"""`GET files/opens`: from the table of opens of a file to the document that people read.

Lives here: the words for access, sharing and caching. Must not live here: the document
(api/opens.py). SMB clients log on with an account's key, so their opens are the account's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from strongroom.errors.core import StorageError
from strongroom.semantics.core import lease as leases
from strongroom.semantics.file.accesses import ALL_SHARED, Use
from strongroom.semantics.file.byte_ranges import LockTable, RangeLock
from strongroom.semantics.file.opens import OpenEntry
from strongroom.semantics.file.oplocks import Caching, CachingHolder, CachingKey, CachingKind
from strongroom.servers.console.api.opens import (
    LOCKS_MAX,
    OPENS_MAX,
    CachingKindName,
    ShownFileOpens,
    ShownLock,
    ShownOpen,
)
from strongroom.servers.console.refusals import ApiRefusal
from strongroom.servers.console.viewers import Viewer
from strongroom.services.core.runner import Services
from strongroom.services.file.handles.presenting import PresentOpens, present_opens
from strongroom.services.file.opens.open_handle import Handle
from strongroom.values import etag_text, iso7

_USES: Final = ((Use.READ, "Read"), (Use.WRITE, "Write"), (Use.DELETE, "Delete"))
_Holders = Mapping[CachingKey, CachingHolder]
_CACHING: Final = ((Caching.READ, "Read"), (Caching.WRITE, "Write"), (Caching.HANDLE, "Handle"))


async def open_file(services: Services, viewer: Viewer, query: Mapping[str, str]) -> ShownFileOpens:
    """Who has a file or directory of the viewer's account open.

    Arguments:
        query: `share`, and `path` within it; without a path, the share's root is meant.
    """
    share = query.get("share", "")
    if not share:
        raise ApiRefusal(400, "InvalidQuery", "Name the share: ?share=NAME&path=PATH.")
    try:
        found = await present_opens(services, viewer.account, share, query.get("path", ""))
    except StorageError as error:
        text = error.message.split("\n", 1)[0]
        raise ApiRefusal(error.row.status, error.row.code, text) from None
    return document_of(found)


def document_of(found: PresentOpens) -> ShownFileOpens:
    table, record = found.table, found.record
    # A handle that is being closed is no longer shown.
    opens = [one for one in table.entries if one.id in found.handles or not one.is_handle]
    # Once, since each search goes through all holders of the file.
    holders = {one.key: one for one in table.holders}
    return ShownFileOpens(
        path="/".join(found.path),
        is_directory=record.is_directory,
        etag=etag_text(record.etag),
        lease_state=leases.state(record.lease, found.now).value,
        lease_duration=leases.reported_duration(record.lease, found.now) or "",
        is_delete_pending=table.deletion.is_pending,
        opens=tuple(_open(found, holders, one) for one in opens[:OPENS_MAX]),
        open_count=len(opens),
        locks=_locks(table.locks),
        lock_count=len(table.locks.locks) + len(table.locks.waiting),
    )


def _open(found: PresentOpens, holders: _Holders, entry: OpenEntry) -> ShownOpen:
    handle = found.handles.get(entry.id)
    if handle is None:
        shared = ALL_SHARED & ~entry.stake.denies
        return ShownOpen(
            protocol="REST", access=_names(entry.stake.uses), share_mode=_names(shared)
        )
    return _smb_open(holders.get(handle.key), entry, handle)


def _smb_open(holder: CachingHolder | None, entry: OpenEntry, handle: Handle) -> ShownOpen:
    caching = Caching.NONE if holder is None else holder.held
    kind: CachingKindName = ""
    if holder is not None and caching:
        kind = "oplock" if holder.kind is CachingKind.OPLOCK else "lease"
    durable, reconnected = handle.durable, handle.client.reconnected
    return ShownOpen(
        id=str(handle.id),
        protocol="SMB" if handle.owner is None else handle.owner.protocol,
        user=handle.access.account,
        client=handle.client.peer,
        session=str(handle.client.session_id),
        opened_time=iso7(handle.opened),
        reconnected_time=None if reconnected is None else iso7(reconnected),
        access=_names(entry.stake.uses),
        access_mask=f"0x{handle.mask:08X}",
        share_mode=_names(handle.share),
        caching_kind=kind,
        caching=tuple(name for right, name in _CACHING if caching & right),
        is_breaking=holder is not None and holder.is_breaking,
        is_durable=durable is not None and durable.timeout_ms > 0,
        is_disconnected=entry.is_disconnected,
    )


def _names(uses: Use) -> tuple[str, ...]:
    return tuple(name for use, name in _USES if uses & use)


def _locks(locks: LockTable) -> tuple[ShownLock, ...]:
    """The first LOCKS_MAX, in the order of their granting; the requests that wait are last."""
    held = [_lock(one, is_waiting=False) for one in locks.locks[:LOCKS_MAX]]
    waiting = locks.waiting[: LOCKS_MAX - len(held)]
    return (*held, *(_lock(one.lock, is_waiting=True) for one in waiting))


def _lock(lock: RangeLock, *, is_waiting: bool) -> ShownLock:
    return ShownLock(
        open_id=str(lock.owner),
        offset=str(lock.offset),
        length=str(lock.length),
        is_exclusive=lock.is_exclusive,
        is_waiting=is_waiting,
    )
