"""The contexts of NEGOTIATE in dialect 3.1.1: the list, and those that the server understands.

Source: [MS-SMB2] sections 2.2.3.1, 2.2.4.1; smb.md 1.10.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

import msgspec

from strongroom.wire.smb.structures import Layout, MalformedMessage

PREAUTH_INTEGRITY: Final = 1
ENCRYPTION: Final = 2
SIGNING: Final = 8

SHA_512: Final = 1

AES_128_CCM: Final = 1
AES_128_GCM: Final = 2
AES_256_CCM: Final = 3
AES_256_GCM: Final = 4

HMAC_SHA256: Final = 0
AES_CMAC: Final = 1
AES_GMAC: Final = 2

CONTEXTS_MAX: Final = 32


class _Head(msgspec.Struct, frozen=True):
    kind: int
    length: int


class NegotiateContext(msgspec.Struct, frozen=True):
    kind: int
    data: bytes


_HEAD: Final = Layout(_Head, "HH4x")


def read_contexts(
    message: memoryview, offset: int, count: int, *, after: int
) -> tuple[NegotiateContext, ...]:
    """Parse the list of `count` contexts at `offset` of a message.

    Arguments:
        after: where the fixed part and the dialects end.
    """
    if count > CONTEXTS_MAX:
        raise MalformedMessage(f"{count} contexts; {CONTEXTS_MAX} are allowed")
    if count and (offset < after or offset % 8):
        raise MalformedMessage(f"contexts begin at {offset}, which is not behind the dialects")
    contexts: list[NegotiateContext] = []
    at = offset
    for _ in range(count):
        head = _HEAD.read(message, at)
        data = message[at + _HEAD.size : at + _HEAD.size + head.length]
        if len(data) != head.length:
            raise MalformedMessage("a context is cut off")
        contexts.append(NegotiateContext(head.kind, bytes(data)))
        at += _HEAD.size + head.length + (-head.length % 8)
    return tuple(contexts)


def write_contexts(contexts: Sequence[NegotiateContext]) -> bytes:
    """The bytes of a list; it must be written at a multiple of eight bytes."""
    pieces: list[bytes] = []
    for number, context in enumerate(contexts, 1):
        pieces += (_HEAD.write(_Head(context.kind, len(context.data))), context.data)
        if number < len(contexts):
            pieces.append(bytes(-len(context.data) % 8))
    return b"".join(pieces)


def read_hashes(data: bytes) -> tuple[int, ...]:
    """The hash algorithms in PREAUTH_INTEGRITY."""
    if len(data) < 4:
        raise MalformedMessage("the context PREAUTH_INTEGRITY is cut off")
    count, salt_bytes = struct.unpack_from("<HH", data)
    if len(data) < 4 + 2 * count + salt_bytes:
        raise MalformedMessage("the context PREAUTH_INTEGRITY is cut off")
    return struct.unpack_from(f"<{count}H", data, 4)


def read_ids(data: bytes) -> tuple[int, ...]:
    """The algorithms in ENCRYPTION or SIGNING, at least one."""
    if len(data) < 2:
        raise MalformedMessage("a list of algorithms is cut off")
    (count,) = struct.unpack_from("<H", data)
    if not count or len(data) < 2 + 2 * count:
        raise MalformedMessage(f"a list has no room for {count} algorithms")
    return struct.unpack_from(f"<{count}H", data, 2)


def preauth_context(salt: bytes) -> NegotiateContext:
    """The server's PREAUTH_INTEGRITY: SHA-512, and a random salt."""
    return NegotiateContext(PREAUTH_INTEGRITY, struct.pack("<HHH", 1, len(salt), SHA_512) + salt)


def chosen_context(kind: int, algorithm: int) -> NegotiateContext:
    """The server's ENCRYPTION or SIGNING: the one algorithm that it chose."""
    return NegotiateContext(kind, struct.pack("<HH", 1, algorithm))
