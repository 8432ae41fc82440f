"""The keys of an SMB session, derived from the session key of the authentication.

Also the hash that binds the keys to the negotiation. Sources: [MS-SMB2] sections 3.1.4.2,
3.3.5.5.3; NIST SP 800-108, counter mode; smb.md 1.8.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

import msgspec

DIALECT_300: Final = 0x0300
DIALECT_311: Final = 0x0311
# AES-256-CCM and AES-256-GCM, by the ids of [MS-SMB2] section 2.2.3.1.2.
_LONG_CIPHERS: Final = frozenset({3, 4})
_SHORT_KEY_BYTES: Final = 16
_LONG_KEY_BYTES: Final = 32
NO_PREAUTH_HASH: Final = bytes(64)


class SessionKeys(msgspec.Struct, frozen=True):
    """The keys of a session, as its server uses them.

    Attributes:
        decryption: decrypts the client's messages.
        encryption: encrypts the server's messages.
        application: for protocols above SMB.
    """

    signing: bytes
    decryption: bytes
    encryption: bytes
    application: bytes

    def __repr__(self) -> str:
        return "SessionKeys(...)"


class _Purpose(msgspec.Struct, frozen=True):
    """The label of a key, and its context in the dialects before 3.1.1; both end with a NUL."""

    label_311: bytes
    label: bytes
    context: bytes


_SIGNING: Final = _Purpose(b"SMBSigningKey\0", b"SMB2AESCMAC\0", b"SmbSign\0")
# The blank before the NUL is part of the context.
_TO_SERVER: Final = _Purpose(b"SMBC2SCipherKey\0", b"SMB2AESCCM\0", b"ServerIn \0")
_TO_CLIENT: Final = _Purpose(b"SMBS2CCipherKey\0", b"SMB2AESCCM\0", b"ServerOut\0")
_APPLICATION: Final = _Purpose(b"SMBAppKey\0", b"SMB2APP\0", b"SmbRpc\0")


def session_keys(authenticated: bytes, dialect: int, cipher: int, preauth: bytes) -> SessionKeys:
    """The keys of a session.

    Arguments:
        authenticated: the session key of the authentication.
        cipher: the id of the negotiated cipher; 0 = none.
        preauth: the session's preauthentication hash, for dialect 3.1.1.
    """
    short = authenticated[:_SHORT_KEY_BYTES].ljust(_SHORT_KEY_BYTES, b"\0")
    if dialect < DIALECT_300:
        # No key is derived, and there are no ciphers.
        return SessionKeys(signing=short, decryption=b"", encryption=b"", application=short)
    is_long = cipher in _LONG_CIPHERS
    of_cipher = authenticated if is_long else short
    cipher_bytes = _LONG_KEY_BYTES if is_long else _SHORT_KEY_BYTES

    def derive(key: bytes, purpose: _Purpose, size_bytes: int) -> bytes:
        if dialect == DIALECT_311:
            return derived_key(key, purpose.label_311, preauth, size_bytes)
        return derived_key(key, purpose.label, purpose.context, size_bytes)

    return SessionKeys(
        signing=derive(short, _SIGNING, _SHORT_KEY_BYTES),
        decryption=derive(of_cipher, _TO_SERVER, cipher_bytes),
        encryption=derive(of_cipher, _TO_CLIENT, cipher_bytes),
        application=derive(short, _APPLICATION, _SHORT_KEY_BYTES),
    )


def derived_key(key: bytes, label: bytes, context: bytes, size_bytes: int) -> bytes:
    """One block of SP 800-108's counter mode with HMAC-SHA256; 32 bytes at most.

    Arguments:
        label: the label, including its final NUL.
    """
    message = b"\0\0\0\1" + label + b"\0" + context + (size_bytes * 8).to_bytes(4, "big")
    return hmac.digest(key, message, "sha256")[:size_bytes]


def extended_hash(so_far: bytes, message: bytes | memoryview) -> bytes:
    """The preauthentication hash after one more message, which begins with its SMB 2 header."""
    digest = hashlib.sha512(so_far)
    digest.update(message)
    return digest.digest()
