"""A pipe of IPC$: clients write DCE/RPC calls into it, and read their results from it.

PDUs, binding, fragments, and the queue of results; the calls: calls.py, lsa.py. Sources: DCE 1.1
Remote Procedure Call, chapter 12 (connection-oriented PDUs); [MS-RPCE] section 2.2.2; smb.md 2.3.
"""

from __future__ import annotations

import struct
from typing import Final

import msgspec

from strongroom.wire.smb.rpc.calls import Inventory
from strongroom.wire.smb.rpc.interfaces import INTERFACES, syntax
from strongroom.wire.smb.rpc.ndr import NdrReader, UnknownHandle
from strongroom.wire.smb.structures import Layout, MalformedMessage

_REQUEST: Final = 0
_RESPONSE: Final = 2
_FAULT: Final = 3
_BIND: Final = 11
_BIND_ACK: Final = 12
_BIND_NAK: Final = 13
_ALTER_CONTEXT: Final = 14
_ALTER_CONTEXT_ANSWER: Final = 15
_FIRST: Final = 1
_LAST: Final = 2
_HAS_OBJECT: Final = 0x80
_OBJECT_BYTES: Final = 16
_LITTLE_ENDIAN: Final = 0x10
_OP_RANGE_ERROR: Final = 0x1C01_0002
_UNKNOWN_INTERFACE: Final = 0x1C01_0003
_BAD_STUB: Final = 0x0000_06F7
_CONTEXT_MISMATCH: Final = 0x1C00_001A
_AUTHENTICATION_UNKNOWN: Final = 8

FRAGMENT_BYTES: Final = 4280
"""The largest PDU in either direction."""
_FRAGMENT_BYTES_MIN: Final = 1432
CALL_BYTES_MAX: Final = 64 * 1024
"""The largest stub that is collected from a call's fragments."""
RESULTS_MAX: Final = 4096
"""The largest number of unread PDUs."""
UNREAD_MAX: Final = 64
"""No further call is executed while this many PDUs are unread."""
_CONTEXTS_MAX: Final = 16


class _Head(msgspec.Struct, frozen=True):
    version: int
    minor: int
    type: int
    flags: int
    representation: int
    length: int
    auth_length: int
    call_id: int


class _Bind(msgspec.Struct, frozen=True):
    max_sent: int
    max_received: int
    group: int
    contexts: int


class _Context(msgspec.Struct, frozen=True):
    id: int
    syntaxes: int
    interface: bytes
    version: int


class _Call(msgspec.Struct, frozen=True):
    hint: int
    context: int
    number: int


_HEAD: Final = Layout(_Head, "BBBBIHHI")
_BIND_HEAD: Final = Layout(_Bind, "HHIB3x")
_CONTEXT: Final = Layout(_Context, "HBx16sI")
_CALL: Final = Layout(_Call, "IHH")
_SYNTAX_BYTES: Final = 20


_NDR: Final = syntax("8a885d04-1ceb-11c9-9fe8-08002b104860", 2)
_ACCEPTED: Final = (0, 0)
_NO_INTERFACE: Final = (2, 1)
_NO_SYNTAX: Final = (2, 2)


class RpcPipe:
    """One open of a pipe. `name` is one of `interfaces.INTERFACES`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._interface = INTERFACES[name]
        self._bound: set[int] = set()
        self._fragment_bytes = FRAGMENT_BYTES
        self._incoming = bytearray()
        self._stub = bytearray()
        self._results: list[bytes] = []

    @property
    def unread_bytes(self) -> int:
        return len(self._results[0]) if self._results else 0

    def write(self, data: bytes | bytearray | memoryview, inventory: Inventory) -> None:
        """Receive bytes, and execute each call that they complete. `inventory` is the server's data
        for the results. Raises: MalformedMessage; the bytes that were not executed are dropped."""
        self._incoming += data
        try:
            self._execute(inventory)
        except MalformedMessage:
            # A client could else fill the memory with bytes that are never executed.
            self._incoming.clear()
            self._stub.clear()
            raise

    def _execute(self, inventory: Inventory) -> None:
        """Execute the PDUs that are whole."""
        while len(self._incoming) >= _HEAD.size:
            head = _HEAD.read(bytes(self._incoming[: _HEAD.size]))
            if head.version != 5 or head.representation & 0xFF != _LITTLE_ENDIAN:
                raise MalformedMessage("no PDU of version 5 in little-endian order")
            if not _HEAD.size <= head.length:
                raise MalformedMessage(f"a PDU of {head.length} bytes")
            if len(self._incoming) < head.length:
                break
            body = bytes(self._incoming[_HEAD.size : head.length])
            del self._incoming[: head.length]
            self._pdu(head, body, inventory)

    def read(self, length: int) -> tuple[bytes, bool]:
        """The next bytes of the result, and whether more of the same message is unread.

        Each PDU is one message of the pipe: a read ends with it.
        """
        if not self._results:
            return b"", False
        first = self._results[0]
        taken, rest = first[:length], first[length:]
        if rest:
            self._results[0] = rest
        else:
            del self._results[0]
        return taken, bool(rest)

    def _pdu(self, head: _Head, body: bytes, inventory: Inventory) -> None:
        if len(self._results) >= UNREAD_MAX:
            raise MalformedMessage("results of earlier calls wait to be read")
        if head.type in (_BIND, _ALTER_CONTEXT):
            self._bind(head, body)
        elif head.type == _REQUEST:
            self._request(head, body, inventory)
        # Other PDUs (cancel, orphaned, auth3) have no response.

    def _answer(self, kind: int, call_id: int, body: bytes, flags: int = _FIRST | _LAST) -> None:
        if len(self._results) >= RESULTS_MAX:
            raise MalformedMessage("results of earlier calls wait to be read")
        head = _Head(
            version=5,
            minor=0,
            type=kind,
            flags=flags,
            representation=_LITTLE_ENDIAN,
            length=_HEAD.size + len(body),
            auth_length=0,
            call_id=call_id,
        )
        self._results.append(_HEAD.write(head) + body)

    def _bind(self, head: _Head, body: bytes) -> None:
        if head.auth_length:
            nak = struct.pack("<HBxx", _AUTHENTICATION_UNKNOWN, 0)
            self._answer(_BIND_NAK, head.call_id, nak)
            return
        fixed = _BIND_HEAD.read(body)
        if fixed.contexts > _CONTEXTS_MAX:
            raise MalformedMessage(f"{fixed.contexts} contexts of a bind")
        self._fragment_bytes = min(FRAGMENT_BYTES, max(_FRAGMENT_BYTES_MIN, fixed.max_received))
        results, at = [], _BIND_HEAD.size
        for _ in range(fixed.contexts):
            context = _CONTEXT.read(body, at)
            at += _CONTEXT.size
            syntaxes = body[at : at + _SYNTAX_BYTES * context.syntaxes]
            at += _SYNTAX_BYTES * context.syntaxes
            outcome = self._bind_context(context, syntaxes)
            agreed = _NDR if outcome == _ACCEPTED else bytes(_SYNTAX_BYTES)
            results.append(struct.pack("<HH", *outcome) + agreed)
        address = f"\\PIPE\\{self._name}\0".encode("ascii")
        made = struct.pack("<HHIH", FRAGMENT_BYTES, FRAGMENT_BYTES, fixed.group or 1, len(address))
        made += address
        made += bytes(-len(made) % 4) + struct.pack("<Bxxx", len(results)) + b"".join(results)
        kind = _BIND_ACK if head.type == _BIND else _ALTER_CONTEXT_ANSWER
        self._answer(kind, head.call_id, made)

    def _bind_context(self, context: _Context, syntaxes: bytes) -> tuple[int, int]:
        syntax = context.interface + struct.pack("<I", context.version)
        if syntax != self._interface.syntax:
            return _NO_INTERFACE
        offered = (
            syntaxes[at : at + _SYNTAX_BYTES] for at in range(0, len(syntaxes), _SYNTAX_BYTES)
        )
        if _NDR not in offered:
            return _NO_SYNTAX
        self._bound.add(context.id)
        return _ACCEPTED

    def _request(self, head: _Head, body: bytes, inventory: Inventory) -> None:
        call = _CALL.read(body)
        skipped = _CALL.size + (_OBJECT_BYTES if head.flags & _HAS_OBJECT else 0)
        if head.flags & _FIRST:
            self._stub.clear()
        self._stub += body[skipped:]
        if len(self._stub) > CALL_BYTES_MAX:
            raise MalformedMessage("a call of too many bytes")
        if not head.flags & _LAST:
            return
        stub = bytes(self._stub)
        self._stub.clear()
        function = self._interface.calls.get(call.number)
        if call.context not in self._bound:
            self._fault(head.call_id, call.context, _UNKNOWN_INTERFACE)
            return
        if function is None:
            self._fault(head.call_id, call.context, _OP_RANGE_ERROR)
            return
        try:
            result = function(NdrReader(stub), inventory).data
        except UnknownHandle:
            self._fault(head.call_id, call.context, _CONTEXT_MISMATCH)
            return
        except MalformedMessage:
            self._fault(head.call_id, call.context, _BAD_STUB)
            return
        self._respond(head.call_id, call.context, result)

    def _fault(self, call_id: int, context: int, status: int) -> None:
        self._answer(_FAULT, call_id, struct.pack("<IHBxI4x", 0, context, 0, status))

    def _respond(self, call_id: int, context: int, result: bytes) -> None:
        room = (self._fragment_bytes - _HEAD.size - _CALL.size) & ~7
        for at in range(0, max(1, len(result)), room):
            rest = len(result) - at
            flags = (_FIRST if not at else 0) | (_LAST if rest <= room else 0)
            head = struct.pack("<IHBx", rest, context, 0)
            self._answer(_RESPONSE, call_id, head + result[at : at + room], flags)
