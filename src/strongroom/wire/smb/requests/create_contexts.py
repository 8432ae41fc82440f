"""Create contexts: the chain of named extensions to CREATE, and the data of the served ones.

The chain, each context's layout, and which contexts exclude each other. Source: [MS-SMB2] sections
2.2.13.2, 2.2.14.2 and 3.3.5.9; smb.md 2.4.

Contexts with unknown names are ignored. Of two contexts with the same name the first one counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from strongroom.wire.smb.header import FileId
from strongroom.wire.smb.requests.bodies import padded
from strongroom.wire.smb.structures import Layout, MalformedMessage, variable_part

CONTEXTS_MAX: Final = 32
LEASE: Final = b"RqLs"
DURABLE_REQUEST: Final = b"DHnQ"
DURABLE_RECONNECT: Final = b"DHnC"
DURABLE_REQUEST_V2: Final = b"DH2Q"
DURABLE_RECONNECT_V2: Final = b"DH2C"
MAXIMAL_ACCESS: Final = b"MxAc"
DISK_ID: Final = b"QFid"
ALLOCATION: Final = b"AlSi"
SNAPSHOT: Final = b"TWrp"
SECURITY: Final = b"SecD"
EXTENDED_ATTRIBUTES: Final = b"ExtA"

LEASE_BREAK_IN_PROGRESS: Final = 0x2
LEASE_PARENT_KEY_SET: Final = 0x4


class LeaseContext(msgspec.Struct, frozen=True):
    """RqLs, in a request or a response: a lease of version 1 or 2. Only version 2 has epochs."""

    key: bytes
    state: int
    flags: int = 0
    parent_key: bytes = bytes(16)
    epoch: int = 0
    is_v2: bool = False


class DurableRequestV2(msgspec.Struct, frozen=True):
    """DH2Q: the request for a handle that outlives its connection.

    Attributes:
        timeout_ms: 0 = the server's choice.
        flags: 2 = persistent.
    """

    timeout_ms: int
    flags: int
    create_guid: bytes


class DurableReconnectV2(msgspec.Struct, frozen=True):
    """DH2C: the request to reconnect to a durable open."""

    persistent: int
    volatile: int
    create_guid: bytes
    flags: int


class MaximalAccess(msgspec.Struct, frozen=True):
    """MxAc: the query for the caller's maximal access.

    Attributes:
        timestamp: a FILETIME; the client already knows the answer for a file that is unchanged
            since then. None = not given.
    """

    timestamp: int | None = None


class CreateContexts(msgspec.Struct, frozen=True):
    """The contexts of one CREATE; None = the context was not sent."""

    lease: LeaseContext | None = None
    durable_request: bool = False
    durable_reconnect: FileId | None = None
    durable_request_v2: DurableRequestV2 | None = None
    durable_reconnect_v2: DurableReconnectV2 | None = None
    maximal_access: MaximalAccess | None = None
    disk_id: bool = False
    allocation: int | None = None
    snapshot: int | None = None
    security: bytes | None = None
    extended_attributes: bytes | None = None

    @property
    def reconnects(self) -> bool:
        """Whether the client wants to reconnect to an open, so that nothing is opened."""
        return self.durable_reconnect is not None or self.durable_reconnect_v2 is not None

    def of_smb2(self) -> CreateContexts:
        """Those that dialect 2.1 knows. It ignores durable handles and leases of version 2
        ([MS-SMB2] 3.3.5.9.10 to 3.3.5.9.12)."""
        lease = None if self.lease is None or self.lease.is_v2 else self.lease
        return msgspec.structs.replace(
            self, durable_request_v2=None, durable_reconnect_v2=None, lease=lease
        )


class _Entry(msgspec.Struct, frozen=True):
    next: int
    name_offset: int
    name_length: int
    data_offset: int
    data_length: int


class _LeaseV1(msgspec.Struct, frozen=True):
    key: bytes
    state: int
    flags: int


class _LeaseV2(msgspec.Struct, frozen=True):
    key: bytes
    state: int
    flags: int
    parent_key: bytes
    epoch: int


class _Number(msgspec.Struct, frozen=True):
    value: int


class _Pair(msgspec.Struct, frozen=True):
    first: int
    second: int


_ENTRY: Final = Layout(_Entry, "IHH2xHI")
_LEASE_V1: Final = Layout(_LeaseV1, "16sII8x")
_LEASE_V2: Final = Layout(_LeaseV2, "16sII8x16sH2x")
_FILE_ID: Final = Layout(FileId, "QQ")
_DURABLE_V2: Final = Layout(DurableRequestV2, "II8x16s")
_RECONNECT_V2: Final = Layout(DurableReconnectV2, "QQ16sI")
_NUMBER: Final = Layout(_Number, "Q")
_PAIR: Final = Layout(_Pair, "II")
_IDS: Final = Layout(_Pair, "QQ16x")


def _exactly(size: int, name: bytes, data: memoryview) -> memoryview:
    if len(data) != size:
        raise MalformedMessage(f"the context {name!r} has {len(data)} bytes, not {size}")
    return data


def _lease(data: memoryview) -> LeaseContext:
    if len(data) == _LEASE_V2.size:
        v2 = _LEASE_V2.read(data)
        return LeaseContext(v2.key, v2.state, v2.flags, v2.parent_key, v2.epoch, is_v2=True)
    v1 = _LEASE_V1.read(_exactly(_LEASE_V1.size, LEASE, data))
    return LeaseContext(v1.key, v1.state, v1.flags)


def _present(size: int, name: bytes) -> Callable[[memoryview], bool]:
    return lambda data: bool(_exactly(size, name, data)) or not size


def _number(name: bytes) -> Callable[[memoryview], int]:
    return lambda data: _NUMBER.read(_exactly(_NUMBER.size, name, data)).value


def _maximal_access(data: memoryview) -> MaximalAccess:
    return MaximalAccess(_number(MAXIMAL_ACCESS)(data) if data else None)


_FIELDS: Final[Mapping[bytes, tuple[str, Callable[[memoryview], Any]]]] = {
    LEASE: ("lease", _lease),
    DURABLE_REQUEST: ("durable_request", _present(16, DURABLE_REQUEST)),
    DURABLE_RECONNECT: (
        "durable_reconnect",
        lambda data: _FILE_ID.read(_exactly(_FILE_ID.size, DURABLE_RECONNECT, data)),
    ),
    DURABLE_REQUEST_V2: (
        "durable_request_v2",
        lambda data: _DURABLE_V2.read(_exactly(_DURABLE_V2.size, DURABLE_REQUEST_V2, data)),
    ),
    DURABLE_RECONNECT_V2: (
        "durable_reconnect_v2",
        lambda data: _RECONNECT_V2.read(_exactly(_RECONNECT_V2.size, DURABLE_RECONNECT_V2, data)),
    ),
    MAXIMAL_ACCESS: ("maximal_access", _maximal_access),
    DISK_ID: ("disk_id", _present(0, DISK_ID)),
    ALLOCATION: ("allocation", _number(ALLOCATION)),
    SNAPSHOT: ("snapshot", _number(SNAPSHOT)),
    SECURITY: ("security", bytes),
    EXTENDED_ATTRIBUTES: ("extended_attributes", bytes),
}
# [MS-SMB2] 3.3.5.9.6, 3.3.5.9.7, 3.3.5.9.10 and 3.3.5.9.12: pairs that one request must not
# combine.
_EXCLUDE: Final = (
    (DURABLE_REQUEST, DURABLE_REQUEST_V2),
    (DURABLE_REQUEST, DURABLE_RECONNECT_V2),
    (DURABLE_RECONNECT, DURABLE_REQUEST_V2),
    (DURABLE_RECONNECT, DURABLE_RECONNECT_V2),
    (DURABLE_REQUEST_V2, DURABLE_RECONNECT_V2),
)


def chain(data: memoryview) -> list[tuple[bytes, memoryview]]:
    """The names and data of a chain of contexts, in order."""
    contexts: list[tuple[bytes, memoryview]] = []
    while data:
        entry = _ENTRY.read(data)
        if entry.next and (entry.next % 8 or not _ENTRY.size <= entry.next < len(data)):
            raise MalformedMessage(f"the next context cannot lie at {entry.next}")
        own = data[: entry.next or len(data)]
        if entry.name_length < 4:
            raise MalformedMessage("the name of a context is shorter than 4 bytes")
        name = variable_part(own, entry.name_offset, entry.name_length, after=_ENTRY.size)
        contexts.append(
            (
                bytes(name),
                variable_part(own, entry.data_offset, entry.data_length, after=_ENTRY.size),
            )
        )
        if len(contexts) > CONTEXTS_MAX:
            raise MalformedMessage(f"more than {CONTEXTS_MAX} contexts")
        data = data[entry.next :] if entry.next else data[:0]
    return contexts


def read_contexts(data: memoryview) -> CreateContexts:
    data_of: dict[bytes, memoryview] = {}
    for name, value in chain(data):
        data_of.setdefault(name, value)
    for first, second in _EXCLUDE:
        if first in data_of and second in data_of:
            raise MalformedMessage(f"{first!r} and {second!r} exclude each other")
    fields = {
        _FIELDS[name][0]: _FIELDS[name][1](value)
        for name, value in data_of.items()
        if name in _FIELDS
    }
    return CreateContexts(**fields)


def write_chain(contexts: Iterable[tuple[bytes, bytes]]) -> bytes:
    """b"" for no context."""
    chained = list(contexts)
    written = bytearray()
    for index, (name, data) in enumerate(chained, start=1):
        head = padded(bytes(_ENTRY.size) + name)
        offset = len(head) if data else 0
        whole = head + data if index == len(chained) else padded(head + data)
        entry = _Entry(
            next=len(whole) if index < len(chained) else 0,
            name_offset=_ENTRY.size,
            name_length=len(name),
            data_offset=offset,
            data_length=len(data),
        )
        written += _ENTRY.write(entry) + whole[_ENTRY.size :]
    return bytes(written)


def lease_data(lease: LeaseContext) -> bytes:
    """The data of RqLs, which is the same in both directions."""
    if lease.is_v2:
        return _LEASE_V2.write(
            _LeaseV2(lease.key, lease.state, lease.flags, lease.parent_key, lease.epoch)
        )
    return _LEASE_V1.write(_LeaseV1(lease.key, lease.state, lease.flags))


def durable_v2_data(timeout_ms: int, flags: int) -> bytes:
    """The response data of DH2Q; that of DHnQ is `DURABLE_ANSWER`."""
    return _PAIR.write(_Pair(timeout_ms, flags))


DURABLE_ANSWER: Final = bytes(8)


def maximal_access_data(status: int, access: int) -> bytes:
    """The response data of MxAc."""
    return _PAIR.write(_Pair(status, access))


def disk_id_data(file_id: int, volume_id: int) -> bytes:
    """The response data of QFid."""
    return _IDS.write(_Pair(file_id, volume_id))
