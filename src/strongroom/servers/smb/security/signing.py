"""Signatures of messages.

Lives here: the three algorithms, over messages in pieces. Must not live here: which message must be
signed (checks.py, elements.py). Source: [MS-SMB2] section 3.1.4.1; smb.md 1.8.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from collections.abc import Iterable, Iterator
from typing import Final, Protocol

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.cmac import CMAC

from strongroom.wire.smb.commands import Command
from strongroom.wire.smb.header import HEADER_BYTES, Header
from strongroom.wire.smb.setup.negotiate_contexts import AES_CMAC, AES_GMAC, HMAC_SHA256
from strongroom.wire.smb.structures import Piece

SIGNATURE_AT: Final = 48
SIGNATURE_BYTES: Final = 16
NO_SIGNATURE: Final = bytes(SIGNATURE_BYTES)
# Data is processed in chunks of this size, so that other threads can run in between.
_CHUNK_BYTES: Final = 256 * 1024
_FROM_SERVER: Final = 1
_OF_CANCEL: Final = 2


class Signature(Protocol):
    """Computes the 16 bytes of a signature."""

    def __call__(self, key: bytes, nonce: bytes, pieces: Iterable[Piece]) -> bytes: ...


def _hmac_sha256(key: bytes, nonce: bytes, pieces: Iterable[Piece]) -> bytes:
    digest = hmac.new(key, digestmod=hashlib.sha256)
    for piece in pieces:
        digest.update(piece)
    return digest.digest()[:SIGNATURE_BYTES]


def _aes_cmac(key: bytes, nonce: bytes, pieces: Iterable[Piece]) -> bytes:
    digest = CMAC(algorithms.AES(key))
    for chunk in _chunks(pieces):
        digest.update(bytes(chunk))
    return digest.finalize()


def _aes_gmac(key: bytes, nonce: bytes, pieces: Iterable[Piece]) -> bytes:
    encryptor = Cipher(algorithms.AES(key), modes.GCM(nonce)).encryptor()
    for chunk in _chunks(pieces):
        encryptor.authenticate_additional_data(chunk)
    encryptor.finalize()
    return encryptor.tag


_ALGORITHMS: Final[dict[int, Signature]] = {
    HMAC_SHA256: _hmac_sha256,
    AES_CMAC: _aes_cmac,
    AES_GMAC: _aes_gmac,
}


def signature(
    algorithm: int, key: bytes, header: Header, pieces: Iterable[Piece], *, from_server: bool
) -> bytes:
    """`pieces` are the message with zeros in place of the signature, and the padding that
    follows."""
    role = _FROM_SERVER if from_server else 0
    if header.command == Command.CANCEL:
        role |= _OF_CANCEL
    nonce = struct.pack("<QI", header.message_id, role)
    return _ALGORITHMS[algorithm](key, nonce, pieces)


def has_valid_signature(algorithm: int, key: bytes, header: Header, message: memoryview) -> bool:
    """`message` is a client's, from its header on."""
    pieces = (message[:SIGNATURE_AT], NO_SIGNATURE, message[HEADER_BYTES:])
    expected = signature(algorithm, key, header, pieces, from_server=False)
    return hmac.compare_digest(expected, header.signature)


def _chunks(pieces: Iterable[Piece]) -> Iterator[Piece]:
    for piece in pieces:
        if len(piece) <= _CHUNK_BYTES:
            yield piece
            continue
        view = memoryview(piece)
        for at in range(0, len(view), _CHUNK_BYTES):
            yield view[at : at + _CHUNK_BYTES]
