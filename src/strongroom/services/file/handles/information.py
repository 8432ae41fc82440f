"""QUERY_INFO and SET_INFO by a handle, but for names and dispositions (renaming.py).

Sources: [MS-FSA] sections 2.1.5.12 and 2.1.5.15; [MS-FSCC] section 2.4; smb.md 2.10, 2.11, 3.3 and
3.8.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import msgspec

from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.file import accesses, permissions
from strongroom.semantics.file import attributes as rules
from strongroom.semantics.file.attributes import FREEZE, KEEP, THAW, Attribute, TimeField, Touch
from strongroom.semantics.file.oplocks import Cause
from strongroom.services.core.decisions import Found, Reads
from strongroom.services.core.runner import Services
from strongroom.services.file.handles import operating, transfers
from strongroom.services.file.handles.model import (
    AsyncRequest,
    Handle,
    NodeInfo,
    RequestedAttributes,
)
from strongroom.services.file.handles.operating import RequestWait
from strongroom.services.file.names.permissions import (
    DEFAULT_KEY,
    DEFAULT_TEXT,
    TEXT_BYTES_MAX,
    PermissionGiven,
    PermissionRead,
    key_of,
)
from strongroom.services.file.node.access import look
from strongroom.services.file.node.changing import AdmittedAccess, change_bytes, resized
from strongroom.services.file.node.deciding import (
    AdmittedNode,
    Applied,
    Edit,
    Edited,
    NodeChange,
    NodeRule,
    commit,
    reported,
)
from strongroom.services.file.opens.changes import BYTES, Aspect
from strongroom.services.file.opens.opens import Opens
from strongroom.store.core import keys
from strongroom.store.file import file_records
from strongroom.store.file.file_records import FileRecord
from strongroom.values import Purpose

_CLUSTER_BYTES: Final = 4096


def allocation(size_bytes: int, reserved_bytes: int = 0) -> int:
    """The AllocationSize of a file: whole clusters."""
    return -(-max(size_bytes, reserved_bytes) // _CLUSTER_BYTES) * _CLUSTER_BYTES


async def attributes(services: Services, handle: Handle) -> NodeInfo:
    """All values that the information classes show. The caller checks rights (`handle.may`)."""
    with handle.operating():
        seen = await look(services, operating.access_of(handle))
        return info_of(services.held.of(Opens), handle, seen.record)


def info_of(opens: Opens, handle: Handle, record: FileRecord) -> NodeInfo:
    reserved = opens.reserved_bytes(handle.partition)
    return NodeInfo(
        handle.node_id,
        handle.parent_id,
        record,
        handle.path,
        allocation_bytes=0 if record.is_directory else allocation(record.size_bytes, reserved),
        is_delete_pending=opens.table(handle.partition).deletion.is_pending,
        mask=handle.mask,
        mode=handle.mode,
        share_created=handle.access.generation,
    )


async def set_basic(services: Services, handle: Handle, wanted: RequestedAttributes) -> None:
    """Set attributes and times by FileBasicInformation; see RequestedAttributes."""
    with handle.operating():
        operating.check_may_change(handle, accesses.WRITE_ATTRIBUTES)
        bits = _attributes(handle, wanted.attributes)
        given = {
            TimeField.CREATION: wanted.creation,
            TimeField.ACCESS: wanted.access,
            TimeField.WRITE: wanted.write,
            TimeField.CHANGE: wanted.change,
        }
        times = {field: time for field, time in given.items() if time not in (KEEP, FREEZE, THAW)}
        ticks = {field: rules.ticks_of_filetime(time) for field, time in times.items()}
        _freeze(handle, given)
        if bits is None and not ticks:
            return
        access = msgspec.structs.replace(operating.access_of(handle), purpose=Purpose.UPKEEP)
        report = transfers.reporting(services, handle, _aspects(wanted))

        def done() -> None:
            # A time that was set stays, whatever this handle does ([MS-FSA] 2.1.5.15.2, smb.md
            # 3.8).
            handle.frozen.update(ticks)
            report()

        change = _Basic(bits, ticks, frozenset(handle.frozen))
        await reported(commit(services, access, change), done)


class _Basic(NodeRule[None], frozen=True):
    """`attributes` None = they stay."""

    attributes: int | None
    times: dict[TimeField, int]
    frozen: frozenset[TimeField]

    def decide(self, node: AdmittedNode, found: Found, stamp: int) -> NodeChange[None]:
        after = operating.after(node.record, Touch.SET_PROPERTIES, stamp, self.frozen)
        changes: dict[str, Any] = {_NAMES[field]: time for field, time in self.times.items()}
        if self.attributes is not None:
            changes["attributes"] = self.attributes
        return NodeChange(None, msgspec.structs.replace(after, **changes))


def _aspects(wanted: RequestedAttributes) -> Aspect:
    given = (
        (wanted.attributes, Aspect.ATTRIBUTES),
        (wanted.creation, Aspect.CREATION),
        (wanted.access, Aspect.LAST_ACCESS),
        (wanted.write, Aspect.LAST_WRITE),
    )
    changed = Aspect.NONE
    for value, aspect in given:
        changed |= aspect if value else Aspect.NONE
    return changed


_NAMES: Final = {
    TimeField.CREATION: "creation",
    TimeField.ACCESS: "access",
    TimeField.WRITE: "write",
    TimeField.CHANGE: "change",
}


def _attributes(handle: Handle, bits: int) -> int | None:
    """The attributes to set; None = the present ones stay."""
    if not bits:
        return None
    if bits & Attribute.DIRECTORY and not handle.is_directory:
        raise StorageError(file_errors.INVALID_FILE_ATTRIBUTES)
    kind = int(Attribute.DIRECTORY) if handle.is_directory else 0
    return rules.check_smb(bits, is_directory=handle.is_directory) | kind


def _freeze(handle: Handle, given: dict[TimeField, int]) -> None:
    for field, time in given.items():
        if field is TimeField.CREATION:
            continue  # operations do not change it anyway
        if time == FREEZE:
            handle.frozen.add(field)
        elif time == THAW:
            handle.frozen.discard(field)


async def set_end_of_file(
    services: Services, handle: Handle, size_bytes: int, request: AsyncRequest
) -> None:
    """FileEndOfFileInformation: cut a file, or extend it by zeros. DISK_FULL also beyond the
    share's quota."""
    with handle.operating():
        _check_resize(handle, size_bytes)
        await _resize(services, handle, size_bytes, request)


async def set_allocation(
    services: Services, handle: Handle, size_bytes: int, request: AsyncRequest
) -> None:
    """FileAllocationInformation. A size below the file's length cuts the file; a larger one is
    reserved until the last close."""
    with handle.operating():
        _check_resize(handle, size_bytes)
        seen = await look(services, operating.access_of(handle))
        if size_bytes < seen.record.size_bytes:
            await _resize(services, handle, size_bytes, request, shrinks_only=True)
            return
        transfers.check_size(seen.share, size_bytes)
        wait = RequestWait(request, handle.ending)
        await operating.break_caches(services, handle, Cause.WRITE, wait)
        services.held.of(Opens).node(handle.partition).reserved_bytes = size_bytes


def _check_resize(handle: Handle, size_bytes: int) -> None:
    if handle.is_directory or not 0 <= size_bytes <= transfers.FILE_BYTES_MAX:
        raise StorageError(file_errors.INVALID_OPEN)
    operating.check_may_change(handle, accesses.WRITE_DATA)


async def _resize(
    services: Services,
    handle: Handle,
    size_bytes: int,
    request: AsyncRequest,
    *,
    shrinks_only: bool = False,
) -> None:
    await operating.break_caches(services, handle, Cause.WRITE, RequestWait(request, handle.ending))
    edit = _Resize(size_bytes, frozenset(handle.frozen), shrinks_only)
    report = transfers.reporting(services, handle, BYTES)
    entering = AdmittedAccess(operating.access_of(handle), report)
    await change_bytes(services, entering, resized(size_bytes, edit))


class _Resize(Edit, frozen=True):
    """`shrinks_only`: the file is cut, but never extended."""

    size_bytes: int
    frozen: frozenset[TimeField]
    shrinks_only: bool

    def apply(self, node: AdmittedNode, found: Found, stamp: int) -> Applied:
        record = node.record
        size = min(record.size_bytes, self.size_bytes) if self.shrinks_only else self.size_bytes
        after = operating.after(record, Touch.RESIZE, stamp, self.frozen)
        return msgspec.structs.replace(after, size_bytes=size), ()


async def security(services: Services, handle: Handle) -> str:
    """The security descriptor as SDDL. The caller checks rights."""
    with handle.operating():
        return await _present_security(services, handle)


async def _present_security(services: Services, handle: Handle) -> str:
    seen = await look(services, operating.access_of(handle))
    key = seen.record.permission
    if key == DEFAULT_KEY:
        return DEFAULT_TEXT
    ref = keys.permission(handle.access.generation, key)
    (stored,) = await services.store.read([ref])
    permission = file_records.PERMISSION.of(stored)
    assert permission is not None, "permissions are kept as long as the share"
    return permission.text


async def set_security(
    services: Services, handle: Handle, merged: Callable[[str], str], request: AsyncRequest
) -> None:
    """Store the security descriptor that `merged` makes of the present one (SDDL), after breaking
    others' handle caches. It is called again if another descriptor was stored meanwhile."""
    with handle.operating():
        rights = accesses.WRITE_DAC | accesses.WRITE_OWNER | accesses.ACCESS_SYSTEM_SECURITY
        operating.check_may_change(handle, rights)
        wait = RequestWait(request, handle.ending)
        while True:
            present = await _present_security(services, handle)
            text = merged(present)
            permissions.check_sddl(text, TEXT_BYTES_MAX)
            await operating.break_caches(services, handle, Cause.NAME_CHANGE, wait)
            report = transfers.reporting(services, handle, Aspect.SECURITY)
            with suppress(_Replaced):
                return await reported(_store_security(services, handle, present, text), report)


async def _store_security(services: Services, handle: Handle, present: str, text: str) -> None:
    """Raises: _Replaced."""
    reads = Reads()
    permission = PermissionGiven(text=text).read(reads, handle.access.generation)
    edit = _Security(key_of(present), permission, frozenset(handle.frozen))
    await commit(services, operating.access_of(handle), Edited(edit), reads)


class _Replaced(Exception):
    """Another security descriptor was stored since the present one was read."""


class _Security(Edit, frozen=True):
    """`present` is the key of the permission that the file has."""

    present: str
    permission: PermissionRead
    frozen: frozenset[TimeField]

    def apply(self, node: AdmittedNode, found: Found, stamp: int) -> Applied:
        if node.record.permission != self.present:
            raise _Replaced
        key, first = self.permission.chosen(node.record.permission, found)
        after = operating.after(node.record, Touch.SET_PROPERTIES, stamp, self.frozen)
        return msgspec.structs.replace(after, permission=key), first
