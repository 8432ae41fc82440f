"""NTLMv2: verifies that a client knows a password, and derives the shared session key.

It verifies the raw bytes that the client sent, the MIC, and the signature of SPNEGO's list of
mechanisms. The messages' layouts are in wire/. Source: [MS-NLMP] sections 3.1.5.1.2, 3.3.2, 3.4;
smb.md 2.2.

The password of a storage account is the text of one of its keys, in base64.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Sequence
from typing import Final

import msgspec

from strongroom.auth.accounts import KEYS_MAX, Account
from strongroom.auth.legacy_ciphers import md4, rc4

_SIGN: Final = 0x10
_SEAL: Final = 0x20
_EXTENDED_SESSION_SECURITY: Final = 0x8_0000
_KEY_128: Final = 0x2000_0000
_KEY_EXCHANGE: Final = 0x4000_0000
_REQUIRED: Final = _EXTENDED_SESSION_SECURITY | _KEY_128

_PROOF_BYTES: Final = 16
_BLOB_FIXED_BYTES: Final = 28
_BLOB_VERSION: Final = b"\x01\x01"
_AV_END: Final = 0
_AV_FLAGS: Final = 6
_MIC_IS_PRESENT: Final = 0x2
_KEY_BYTES: Final = 16

TO_SERVER: Final = b"client-to-server"
TO_CLIENT: Final = b"server-to-client"


class NtlmAttempt(msgspec.Struct, frozen=True):
    """A client's proof that it knows a password.

    Attributes:
        user, domain: the names as sent; the proof covers both.
        response: NtChallengeResponse: the proof, and the raw bytes that it covers.
        mic: the message's MIC; None if the message has no field for it.
        messages: the three messages concatenated, with zeros in place of the MIC.
    """

    user: str
    domain: str
    response: bytes
    encrypted_key: bytes
    flags: int
    challenge: bytes
    mic: bytes | None
    messages: bytes

    def __repr__(self) -> str:
        return f"NtlmAttempt(user={self.user!r})"


def passwords_of(account: Account | None) -> tuple[str, ...]:
    """The base64 texts of an account's keys; no password for None."""
    keys = () if account is None else account.keys
    return tuple(base64.b64encode(key).decode("ascii") for key in keys)


def verified_key(attempt: NtlmAttempt, passwords: Sequence[str]) -> bytes | None:
    """The session key of an attempt that proves one of the passwords; None otherwise.

    The work is the same for two passwords, one, or none. So the time does not reveal whether an
    account exists.
    """
    blob = attempt.response[_PROOF_BYTES:]
    is_well_formed = (
        bool(attempt.user)
        and len(blob) >= _BLOB_FIXED_BYTES + 4
        and blob[:2] == _BLOB_VERSION
        and attempt.flags & _REQUIRED == _REQUIRED
    )
    proven = b""
    for number in range(KEYS_MAX):
        password = passwords[number] if number < len(passwords) else None
        # Some clients compute the proof without the domain that they send.
        for domain in (attempt.domain, ""):
            key = response_key(_NO_PASSWORD if password is None else password, attempt.user, domain)
            is_right = hmac.compare_digest(
                hmac.digest(key, attempt.challenge + blob, "md5"), attempt.response[:_PROOF_BYTES]
            )
            base = hmac.digest(key, attempt.response[:_PROOF_BYTES], "md5")
            if is_right and password is not None:
                proven = base
    if not proven or not is_well_formed:
        return None
    return _exported_key(attempt, proven, blob)


def is_malformed(response: bytes) -> bool:
    """Whether the fields of an NTLMv2 response (NtChallengeResponse) reach beyond its end. Such a
    response is no proof, not even a wrong one."""
    blob = response[_PROOF_BYTES:]
    is_second = len(blob) >= _BLOB_FIXED_BYTES + 4 and blob[:2] == _BLOB_VERSION
    return is_second and _blob_flags(blob) is None


def response_key(password: str, user: str, domain: str) -> bytes:
    """NTOWFv2, the key of the proof."""
    hashed = md4(password.encode("utf-16-le"))
    return hmac.digest(hashed, (user.upper() + domain).encode("utf-16-le"), "md5")


def mechanisms_mic(key: bytes, direction: bytes, mechanisms: bytes, *, exchanged: bool) -> bytes:
    """The signature over SPNEGO's list of mechanisms, 16 bytes.

    Arguments:
        key: the session key.
        direction: TO_SERVER or TO_CLIENT.
        mechanisms: the list exactly as it was sent.
        exchanged: whether KEY_EXCHANGE was negotiated; the checksum is then encrypted.
    """
    signing = _magic(key, direction, b"signing")
    checksum = hmac.digest(signing, bytes(4) + mechanisms, "md5")[:8]
    if exchanged:
        checksum = rc4(_magic(key, direction, b"sealing"), checksum)
    return b"\1\0\0\0" + checksum + bytes(4)


def exchanges_key(flags: int) -> bool:
    """Whether the client sends a key of its own."""
    return bool(flags & _KEY_EXCHANGE)


def _exported_key(attempt: NtlmAttempt, base: bytes, blob: bytes) -> bytes | None:
    key = base
    if attempt.flags & _KEY_EXCHANGE and attempt.flags & (_SIGN | _SEAL):
        if len(attempt.encrypted_key) != _KEY_BYTES:
            return None
        key = rc4(base, attempt.encrypted_key)
    flags = _blob_flags(blob)
    if flags is None:
        return None
    if flags & _MIC_IS_PRESENT:
        expected = hmac.digest(key, attempt.messages, "md5")
        if attempt.mic is None or not hmac.compare_digest(expected, attempt.mic):
            return None
    return key


def _blob_flags(blob: bytes) -> int | None:
    """The flags among a blob's pairs, 0 if there are none; None if a pair reaches beyond its
    end."""
    at, flags = _BLOB_FIXED_BYTES, 0
    while len(blob) - at >= 4:
        number = int.from_bytes(blob[at : at + 2], "little")
        size = int.from_bytes(blob[at + 2 : at + 4], "little")
        at += 4
        if number == _AV_END:
            return flags
        if len(blob) - at < size:
            return None
        if number == _AV_FLAGS:
            flags = int.from_bytes(blob[at : at + size], "little")
        at += size
    return None


def _magic(key: bytes, direction: bytes, purpose: bytes) -> bytes:
    text = b"session key to %s %s key magic constant\0" % (direction, purpose)
    return hashlib.md5(key + text, usedforsecurity=False).digest()


# As long as the text of a generated key, so that hashing takes the same time.
_NO_PASSWORD: Final = "-" * 88
