"""SMB requests that are not in the recording: locks, leases, change notification, every query
class.

Lives here: one well-formed message for each way into a handler, built by a client's codecs.
Must not live here: their changes (smb_frames.py). All ids are zero; the fuzzer fills them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from strongroom.wire.smb.commands import Command
from strongroom.wire.smb.header import FileId, Header, write_header
from strongroom.wire.smb.information.file_information import RenameChange
from strongroom.wire.smb.requests import (
    change_notify,
    create,
    ioctl,
    lock,
    oplock_break,
    query_directory,
    query_info,
    transfers,
)
from strongroom.wire.smb.requests.create_contexts import LeaseContext, lease_data, write_chain
from tests.servers.smb import client_codecs

_NOBODY = FileId(0, 0)
_ALL_ACCESS, _READ_WRITE = 0x1F01FF, 0x3
_NAMES = ("file", "directory", r"directory\below", "other", "")
_LEASE_KEYS = (b"1" * 16, b"2" * 16)
_OPLOCKS = (1, 8, 9)
_LEASES = (0, 1, 3, 5, 7)
_RANGES = ((0, 10), (5, 10), (0, 0), (1 << 62, 1 << 62))
_SPAN = struct.pack("<qq", 0, 1 << 20)


def built() -> tuple[bytes, ...]:
    """Return all requests, each with a header."""
    return tuple(
        write_header(Header(command=command)) + body
        for bodies in (_creates(), _transfers(), _locks(), _controls(), _queries(), _rest())
        for command, body in bodies
    )


def _creates() -> Iterator[tuple[Command, bytes]]:
    for at, name in enumerate(_NAMES):
        for access, disposition, options, level in (
            (_ALL_ACCESS, 3, 0, _OPLOCKS[at % 3]),
            (_READ_WRITE, 5, 0, 0),
            (_ALL_ACCESS, 3, 0x1000, 0),
            (0x81, 1, 0x1, 0),
        ):
            request = create.CreateRequest(
                oplock_level=level,
                access=access,
                share=7,
                disposition=disposition,
                options=options,
                name=name,
            )
            yield Command.CREATE, client_codecs.write_create(request, b"")
    for at, state in enumerate(_LEASES):
        for key in _LEASE_KEYS:
            request = create.CreateRequest(
                oplock_level=0xFF, access=_READ_WRITE, share=7, disposition=3, name="file"
            )
            leased = LeaseContext(key, state, epoch=at, is_v2=bool(at % 2))
            chain = [(b"RqLs", lease_data(leased)), (b"MxAc", b""), (b"QFid", b"")]
            chain += [(b"DH2Q", bytes(16) + key), (b"AlSi", bytes(8))] if at > 2 else []
            yield Command.CREATE, client_codecs.write_create(request, write_chain(chain))
    for context in (
        (b"DHnQ", bytes(16)),
        (b"DHnC", bytes(16)),
        (b"DH2Q", bytes(16) + _LEASE_KEYS[0]),
        (b"DH2C", bytes(36)),
    ):
        request = create.CreateRequest(
            oplock_level=9, access=_ALL_ACCESS, share=7, disposition=3, name="durable"
        )
        yield Command.CREATE, client_codecs.write_create(request, write_chain([context]))


def _transfers() -> Iterator[tuple[Command, bytes]]:
    for offset, size in ((0, 10), (5, 3000), (1 << 40, 1)):
        wanted = transfers.WriteRequest(_NOBODY, offset, memoryview(bytes(size)), False, False)
        yield Command.WRITE, client_codecs.write_write(wanted)
        yield (
            Command.READ,
            client_codecs.write_read(transfers.ReadRequest(_NOBODY, offset, size, 0, False)),
        )
    yield Command.FLUSH, client_codecs.write_flush(_NOBODY)
    yield Command.CLOSE, client_codecs.write_close(transfers.CloseRequest(_NOBODY, True))


def _locks() -> Iterator[tuple[Command, bytes]]:
    for flags in (lock.SHARED, lock.EXCLUSIVE, lock.EXCLUSIVE | lock.FAIL_IMMEDIATELY, lock.UNLOCK):
        for span in _RANGES:
            element = lock.LockElement(*span, flags)
            yield Command.LOCK, client_codecs.write_lock(lock.LockRequest(_NOBODY, (element,)))
    several = tuple(lock.LockElement(*span, 0x11) for span in _RANGES)
    yield Command.LOCK, client_codecs.write_lock(lock.LockRequest(_NOBODY, several, 1, 1))
    for state in _LEASES:
        for key in _LEASE_KEYS:
            answer = oplock_break.LeaseBreakAck(key, state)
            yield Command.OPLOCK_BREAK, oplock_break.write_lease_acknowledgment(answer)
    for level in (0, *_OPLOCKS):
        sent = oplock_break.OplockBreak(_NOBODY, level)
        yield Command.OPLOCK_BREAK, oplock_break.write_oplock_break(sent)


def _controls() -> Iterator[tuple[Command, bytes]]:
    chunks = bytes(24) + struct.pack("<II", 1, 0) + struct.pack("<QQII", 0, 100, 50, 0)
    data = {
        ioctl.Fsctl.SET_ZERO_DATA: _SPAN,
        ioctl.Fsctl.QUERY_ALLOCATED_RANGES: _SPAN,
        ioctl.Fsctl.SRV_COPYCHUNK: chunks,
        ioctl.Fsctl.SRV_COPYCHUNK_WRITE: chunks,
        ioctl.Fsctl.VALIDATE_NEGOTIATE_INFO: struct.pack("<I16sHHH", 0, bytes(16), 1, 1, 0x0311),
        ioctl.Fsctl.DFS_GET_REFERRALS: struct.pack("<H", 4) + "\\a\\b\0".encode("utf-16-le"),
    }
    for code in ioctl.Fsctl:
        request = ioctl.IoctlRequest(code, _NOBODY, memoryview(data.get(code, b"")), 4096)
        yield Command.IOCTL, client_codecs.write_ioctl(request)


def _queries() -> Iterator[tuple[Command, bytes]]:
    for info_type, classes in ((1, range(4, 65)), (2, range(1, 12)), (3, (0,)), (4, (0,))):
        for kind in classes:
            asked = query_info.QueryInfoRequest(info_type, kind, _NOBODY, 4096, 7)
            yield Command.QUERY_INFO, client_codecs.write_query_info(asked)
    changes = {
        4: bytes(32) + struct.pack("<II", 0x20, 0),
        10: client_codecs.write_rename(RenameChange("other", True)),
        13: b"\1",
        14: bytes(8),
        19: struct.pack("<q", 4096),
        20: struct.pack("<q", 1 << 30),
    }
    for kind, data in changes.items():
        wanted = query_info.SetInfoRequest(1, kind, _NOBODY, memoryview(data), 0)
        yield Command.SET_INFO, client_codecs.write_set_info(wanted)
    for kind in (1, 2, 3, 12, 37, 38, 60, 63):
        for pattern, flags in (("*", 1), ("f?l*", 0), ("file", 2)):
            listed = query_directory.QueryDirectoryRequest(kind, flags, _NOBODY, pattern, 4096)
            yield Command.QUERY_DIRECTORY, client_codecs.write_query_directory(listed)


def _rest() -> Iterator[tuple[Command, bytes]]:
    for tree in (False, True):
        watch = change_notify.ChangeNotifyRequest(_NOBODY, 4096, 0xFFF, tree)
        yield Command.CHANGE_NOTIFY, client_codecs.write_change_notify(watch)
    yield Command.CANCEL, b"\4\0\0\0"
    yield Command.ECHO, b"\4\0\0\0"
