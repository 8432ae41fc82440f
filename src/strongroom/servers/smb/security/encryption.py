"""The encryption of frames.

Lives here: the ciphers of a session, and its nonces. Must not live here: which message must be
encrypted (checks.py). Source: [MS-SMB2] sections 3.1.4.3, 3.3.5.2.1; RFC 5084; smb.md 1.9.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESCCM, AESGCM

from strongroom.auth.smb_keys import SessionKeys
from strongroom.servers.smb.refusals import CloseConnection
from strongroom.wire.smb.framing import TRANSFORM_PROTOCOL_ID
from strongroom.wire.smb.setup.negotiate_contexts import (
    AES_128_CCM,
    AES_128_GCM,
    AES_256_CCM,
    AES_256_GCM,
)
from strongroom.wire.smb.structures import Piece
from strongroom.wire.smb.transform import (
    ASSOCIATED_DATA_AT,
    TRANSFORM_BYTES,
    TransformHeader,
    write_transform,
)

_TAG_BYTES: Final = 16
_NONCE_BYTES: Final = {AES_128_CCM: 11, AES_128_GCM: 12, AES_256_CCM: 11, AES_256_GCM: 12}
_GCM: Final = frozenset({AES_128_GCM, AES_256_GCM})
# A larger frame is processed in chunks, so that other threads can run in between.
_CHUNK_BYTES: Final = 256 * 1024
# The most frames under one key: NIST's limit is 2^32 encryptions.
_FRAMES_MAX: Final = 1 << 32


class SessionCipher:
    """Encrypts and decrypts the frames of one session. No nonce is used twice."""

    def __init__(self, cipher: int, keys: SessionKeys, session_id: int) -> None:
        self._nonce_bytes = _NONCE_BYTES[cipher]
        self._is_gcm = cipher in _GCM
        self._keys = keys
        self._session_id = session_id
        make = AESGCM if self._is_gcm else AESCCM
        self._sealing = make(keys.encryption)
        self._opening = make(keys.decryption)
        self._sent = 0

    def next_nonce(self) -> bytes:
        """Return a nonce that was not used before. Raises: CloseConnection when there are no
        more."""
        if self._sent == _FRAMES_MAX:
            raise CloseConnection("the session has sent as many frames as its key may encrypt")
        self._sent += 1
        return self._sent.to_bytes(self._nonce_bytes, "little")

    def seal(self, nonce: bytes, pieces: Sequence[Piece]) -> list[Piece]:
        """Returns the frame's header, and the encrypted bytes. `nonce` is from `next_nonce`, for
        this frame only."""
        size = sum(map(len, pieces))
        header = write_transform(nonce, size, self._session_id)
        covered = header[ASSOCIATED_DATA_AT:]
        if self._is_gcm and size > _CHUNK_BYTES:
            sealed, tag = self._seal_in_chunks(nonce, covered, size, pieces)
        else:
            whole = memoryview(self._sealing.encrypt(nonce, b"".join(pieces), covered))
            sealed, tag = whole[:-_TAG_BYTES], bytes(whole[-_TAG_BYTES:])
        return [TRANSFORM_PROTOCOL_ID + tag + covered, sealed]

    def open(self, header: TransformHeader, frame: memoryview) -> memoryview:
        """Returns the plain bytes.

        Raises: CloseConnection when its tag is wrong: it was changed, or encrypted by another key.
        """
        nonce = header.nonce[: self._nonce_bytes]
        covered, sealed = frame[ASSOCIATED_DATA_AT:TRANSFORM_BYTES], frame[TRANSFORM_BYTES:]
        try:
            if self._is_gcm and len(sealed) > _CHUNK_BYTES:
                return self._open_in_chunks(nonce, covered, sealed, header.tag)
            plain = self._opening.decrypt(nonce, bytes(sealed) + header.tag, covered)
        except InvalidTag:
            raise CloseConnection("an encrypted frame has a wrong tag") from None
        return memoryview(plain)

    def _seal_in_chunks(
        self, nonce: bytes, covered: bytes, size: int, pieces: Sequence[Piece]
    ) -> tuple[memoryview, bytes]:
        encryptor = Cipher(algorithms.AES(self._keys.encryption), modes.GCM(nonce)).encryptor()
        encryptor.authenticate_additional_data(covered)
        out, at = memoryview(bytearray(size)), 0
        for piece in pieces:
            view = memoryview(piece)
            for start in range(0, len(view), _CHUNK_BYTES):
                chunk = view[start : start + _CHUNK_BYTES]
                at += encryptor.update_into(chunk, out[at:])
        encryptor.finalize()
        return out, encryptor.tag

    def _open_in_chunks(
        self, nonce: bytes, covered: memoryview, sealed: memoryview, tag: bytes
    ) -> memoryview:
        mode = modes.GCM(nonce, tag)
        decryptor = Cipher(algorithms.AES(self._keys.decryption), mode).decryptor()
        decryptor.authenticate_additional_data(covered)
        out = memoryview(bytearray(len(sealed)))
        for at in range(0, len(sealed), _CHUNK_BYTES):
            decryptor.update_into(sealed[at : at + _CHUNK_BYTES], out[at:])
        decryptor.finalize()  # nothing of `out` is used if this raises
        return out
