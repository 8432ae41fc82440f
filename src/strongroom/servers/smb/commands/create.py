"""CREATE: open or create a file or a directory, or open a pipe.

Lives here: the decoding of a request's fields, and the answer with its contexts. Must not live
here: the open itself (services/file/handles), the layout (wire/smb). Sources: [MS-SMB2] section
3.3.5.9; [MS-FSA] section 2.1.5.1; smb.md 2.4.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import msgspec

from strongroom.errors import core as errors
from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.file import previous_versions
from strongroom.semantics.file.accesses import Disposition, Use
from strongroom.semantics.file.attributes import FILETIME_EPOCH_TICKS
from strongroom.semantics.file.durability import DisconnectReason
from strongroom.semantics.file.oplocks import LEVELS, CachingKind, OplockLevel
from strongroom.servers.smb.commands import pipes
from strongroom.servers.smb.commands.nodes import information_of, path_of, volume_id
from strongroom.servers.smb.commands.targets import (
    FileTarget,
    level_of,
    owner_of,
)
from strongroom.servers.smb.refusals import SmbError
from strongroom.servers.smb.state.declarations import SmbAnswer, SmbElement
from strongroom.servers.smb.state.sessions import SmbOpen
from strongroom.services.file.handles import closing, durable, opening
from strongroom.services.file.handles.model import (
    NO_CACHING_REQUESTED,
    Handle,
    OpenedHandle,
    RequestedCaching,
    RequestedDurability,
    RequestedOpen,
    RequestedReconnect,
)
from strongroom.services.file.opens.opens import Opens
from strongroom.wire.smb import statuses
from strongroom.wire.smb.header import REPLAY_OPERATION, FileId
from strongroom.wire.smb.information.file_information import network_open
from strongroom.wire.smb.information.sddl import sddl
from strongroom.wire.smb.information.security_descriptors import read_descriptor
from strongroom.wire.smb.information.sids import NAMED
from strongroom.wire.smb.requests import create_contexts as contexts
from strongroom.wire.smb.requests.create import (
    CreateAnswer,
    CreateRequest,
    read_create,
    write_create_answer,
)
from strongroom.wire.smb.requests.create_contexts import CreateContexts, LeaseContext

_IMPERSONATION_MAX: Final = 3
_DIRECTORY_FILE: Final = 0x1
_NO_INTERMEDIATE_BUFFERING: Final = 0x8
_NON_DIRECTORY_FILE: Final = 0x40
_DELETE_ON_CLOSE: Final = 0x1000
_NOT_SUPPORTED: Final = 0x0010_2080
_RESERVED: Final = 0xFF00_0000
# The options of FileModeInformation: WRITE_THROUGH, SEQUENTIAL_ONLY, NO_INTERMEDIATE_BUFFERING,
# both kinds of synchronous IO, DELETE_ON_CLOSE.
_MODE: Final = 0x103E
_NONE_MAPPED: Final = 0xC000_0073
_DISPOSITION_MAX: Final = int(max(Disposition))


async def create(element: SmbElement) -> SmbAnswer:
    request, is_smb3 = read_create(element.message), element.connection.negotiated.is_smb3
    if not is_smb3:
        request = msgspec.structs.replace(request, contexts=request.contexts.of_smb2())
    assert element.tree is not None
    reconnects = request.contexts.reconnects
    if reconnects and not element.tree.has_pipes:
        # The other fields of the request are ignored.
        return await _reconnect(element, request)
    if request.impersonation > _IMPERSONATION_MAX:
        raise SmbError(statuses.STATUS_BAD_IMPERSONATION_LEVEL)
    if reconnects:
        raise StorageError(errors.RESOURCE_NOT_FOUND)
    if element.tree.has_pipes:
        return pipes.open_pipe(element, request)
    is_replay = is_smb3 and bool(element.header.flags & REPLAY_OPERATION)
    requested = _requested_open(request, is_replay=is_replay)
    owner, services = owner_of(element), element.services
    opened = await opening.open_node(services, element.tree.access, requested, owner, element)
    if opened.is_repeated:
        return _repeated_answer(element, request, opened)
    try:
        created = _add_open(element, opened.handle)
    except SmbError:
        await closing.close(services, opened.handle)
        raise
    durable_handles = services.held.of(Opens).durable
    created.first_named = partial(durable_handles.forget_create, opened.handle)
    return _answer(request, opened, created.file_id)


async def _reconnect(element: SmbElement, request: CreateRequest) -> SmbAnswer:
    """Give a client its durable handle back, under a new volatile id."""
    assert element.tree is not None
    owner, services = owner_of(element), element.services
    requested = _requested_reconnect(request)
    opened = await durable.reconnect(services, element.tree.access, requested, owner)
    try:
        created = _add_open(element, opened.handle)
    except SmbError:
        await durable.disconnect(services, [opened.handle], DisconnectReason.DISCONNECTED)
        raise
    only = CreateContexts(lease=request.contexts.lease)
    return _answer(msgspec.structs.replace(request, contexts=only), opened, created.file_id)


def _requested_reconnect(request: CreateRequest) -> RequestedReconnect:
    given = request.contexts
    v1, v2, lease = given.durable_reconnect, given.durable_reconnect_v2, given.lease
    try:
        path = path_of(request.name)
    except SmbError:
        path = None
    kind = None
    if lease is not None:
        kind = CachingKind.LEASE_V2 if lease.is_v2 else CachingKind.LEASE_V1
    return RequestedReconnect(
        v1.persistent if v2 is None and v1 is not None else v2.persistent if v2 else 0,
        None if v2 is None else v2.create_guid,
        None if lease is None else lease.key,
        kind,
        path,
    )


def _add_open(element: SmbElement, handle: Handle) -> SmbOpen:
    """Raises: SmbError when the tree connect has ended or there are too many opens."""
    session, tree, owner = element.session, element.tree, owner_of(element)
    assert tree is not None
    if session.trees.get(tree.id) is not tree:
        raise SmbError(statuses.STATUS_NETWORK_NAME_DELETED)
    created = session.add_open(tree, FileTarget(element.services, handle), handle.id)
    owner.opened(handle, created.file_id)
    created.channel_sequence = element.header.channel_sequence
    return created


def _answer(
    request: CreateRequest, opened: OpenedHandle, file_id: FileId, level: int | None = None
) -> SmbAnswer:
    """`level` is the oplock level that the answer names; None = the one that is held."""
    if level is None:
        is_lease = opened.kind is not CachingKind.OPLOCK
        level = OplockLevel.LEASE if is_lease else level_of(opened.caching)
    answer = CreateAnswer(
        oplock_level=level,
        action=opened.action,
        node=network_open(information_of(opened.info)),
        file_id=file_id,
        contexts=contexts.write_chain(_response_contexts(request, opened)),
    )
    return SmbAnswer(write_create_answer(answer), file_id=file_id)


def _repeated_answer(
    element: SmbElement, request: CreateRequest, opened: OpenedHandle
) -> SmbAnswer:
    """Answer a repeated CREATE, as smbd does. The answer names the oplock that the repetition
    requests, and says whether that could have been durable. The open itself is unchanged."""
    file_id = owner_of(element).file_id_of(opened.handle)
    if file_id is None:
        # The first CREATE is not answered yet.
        raise SmbError(file_errors.STATUS_FILE_NOT_AVAILABLE)
    level = request.oplock_level
    if level not in (OplockLevel.BATCH, OplockLevel.LEASE):
        opened = msgspec.structs.replace(opened, durable_timeout_ms=None)
    return _answer(request, opened, file_id, level)


def _requested_open(request: CreateRequest, *, is_replay: bool) -> RequestedOpen:
    """Raises: SmbError for values that no open can have."""
    options = request.options
    if options & _RESERVED or request.share & ~0x7 or request.disposition > _DISPOSITION_MAX:
        raise SmbError(file_errors.STATUS_INVALID_PARAMETER)
    if options & _NOT_SUPPORTED:
        raise SmbError(statuses.STATUS_NOT_SUPPORTED)
    must_be_file = bool(options & _NON_DIRECTORY_FILE)
    given = request.contexts
    path, at = _point_in_time(path_of(request.name, must_be_file=must_be_file), given)
    return RequestedOpen(
        path=path,
        access=request.access,
        share=Use(request.share),
        disposition=Disposition(request.disposition),
        attributes=request.attributes,
        must_be_directory=bool(options & _DIRECTORY_FILE),
        must_be_file=must_be_file,
        deletes_on_close=bool(options & _DELETE_ON_CLOSE),
        is_unbuffered=bool(options & _NO_INTERMEDIATE_BUFFERING),
        mode=options & _MODE,
        cache=_requested_caching(request),
        durable=_requested_durability(given, is_replay=is_replay),
        allocation_bytes=given.allocation,
        permission=None if given.security is None else _permission(given.security),
        has_extended_attributes=given.extended_attributes is not None,
        at=at,
    )


def _point_in_time(
    path: tuple[str, ...], given: CreateContexts
) -> tuple[tuple[str, ...], int | None]:
    """The path within the snapshot that TWrp or the path names, and its time; None = the present.

    Two times are refused by INVALID_PARAMETER, two tokens by OBJECT_NAME_INVALID.
    """
    within, at = previous_versions.without_token(path)
    if given.snapshot is None:
        return within, at
    ticks = given.snapshot + FILETIME_EPOCH_TICKS
    if at not in (None, ticks):
        raise SmbError(file_errors.STATUS_INVALID_PARAMETER)
    return within, ticks


def _requested_caching(request: CreateRequest) -> RequestedCaching:
    """A lease needs both the oplock level LEASE and its context."""
    lease = request.contexts.lease
    if request.oplock_level != OplockLevel.LEASE:
        level = request.oplock_level
        requested = LEVELS.get(level)  # type: ignore[call-overload]  # any number may come
        return NO_CACHING_REQUESTED if not requested else RequestedCaching(wanted=int(requested))
    if lease is None:
        return NO_CACHING_REQUESTED
    kind = CachingKind.LEASE_V2 if lease.is_v2 else CachingKind.LEASE_V1
    return RequestedCaching(kind, lease.state, lease.key, lease.epoch)


def _requested_durability(given: CreateContexts, *, is_replay: bool) -> RequestedDurability | None:
    v2 = given.durable_request_v2
    if v2 is not None:
        return RequestedDurability(v2.create_guid, v2.timeout_ms, is_replay)
    return RequestedDurability() if given.durable_request else None


def _permission(data: bytes) -> str:
    descriptor = read_descriptor(memoryview(data))
    return sddl(descriptor, owner=NAMED["BA"], group=NAMED["BA"])


def _response_contexts(request: CreateRequest, opened: OpenedHandle) -> list[tuple[bytes, bytes]]:
    given, answered = request.contexts, []
    if given.maximal_access is not None:
        change = information_of(opened.info).change
        is_known = given.maximal_access.timestamp == change
        status, access = (_NONE_MAPPED, 0) if is_known else (0, opened.maximal_access)
        answered.append((contexts.MAXIMAL_ACCESS, contexts.maximal_access_data(status, access)))
    if given.disk_id:
        volume = volume_id(opened.info.share_created)
        data = contexts.disk_id_data(opened.info.node_id, volume)
        answered.append((contexts.DISK_ID, data))
    if given.lease is not None and opened.kind is not CachingKind.OPLOCK:
        answered.append((contexts.LEASE, contexts.lease_data(_granted_lease(given.lease, opened))))
    if opened.durable_timeout_ms is not None:
        v2 = given.durable_request_v2
        if v2 is None:
            answered.append((contexts.DURABLE_REQUEST, contexts.DURABLE_ANSWER))
        else:
            data = contexts.durable_v2_data(opened.durable_timeout_ms, 0)
            answered.append((contexts.DURABLE_REQUEST_V2, data))
    return answered


def _granted_lease(requested: LeaseContext, opened: OpenedHandle) -> LeaseContext:
    """In the version that the lease's first open has set."""
    is_v2 = opened.kind is CachingKind.LEASE_V2
    flags = requested.flags & contexts.LEASE_PARENT_KEY_SET if requested.is_v2 and is_v2 else 0
    if opened.is_breaking:
        flags |= contexts.LEASE_BREAK_IN_PROGRESS
    has_parent = bool(flags & contexts.LEASE_PARENT_KEY_SET)
    return msgspec.structs.replace(
        requested,
        state=int(opened.caching),
        flags=flags,
        parent_key=requested.parent_key if has_parent else bytes(16),
        epoch=opened.epoch,
        is_v2=is_v2,
    )
