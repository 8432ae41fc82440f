"""MD4 and RC4, which only NTLM (ntlm.py) needs and OpenSSL no longer offers.

Sources: RFC 1320 section 3; RFC 6229 (test vectors of RC4). Neither protects anything by itself: a
session's own keys come from HMAC-SHA256.
"""

from __future__ import annotations

import struct
from typing import Final

_WORD: Final = 0xFFFF_FFFF
_START: Final = (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476)
_BLOCK_BYTES: Final = 64
# For each round: the added constant, the order of the words, and the rotation of each step.
_ROUNDS: Final = (
    (0, tuple(range(16)), (3, 7, 11, 19)),
    (0x5A827999, (0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), (3, 5, 9, 13)),
    (0x6ED9EBA1, (0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15), (3, 9, 11, 15)),
)


def md4(message: bytes) -> bytes:
    """The MD4 digest of a message, 16 bytes."""
    padded = message + b"\x80" + bytes(-(len(message) + 9) % _BLOCK_BYTES)
    padded += struct.pack("<Q", len(message) * 8 & (1 << 64) - 1)
    state = _START
    for at in range(0, len(padded), _BLOCK_BYTES):
        mixed = _mixed(state, struct.unpack_from("<16I", padded, at))
        a, b, c, d = ((old + new) & _WORD for old, new in zip(state, mixed, strict=True))
        state = (a, b, c, d)
    return struct.pack("<4I", *state)


def _mixed(state: tuple[int, int, int, int], words: tuple[int, ...]) -> tuple[int, ...]:
    a, b, c, d = state
    for number, (constant, order, shifts) in enumerate(_ROUNDS):
        for step, word in enumerate(order):
            if number == 0:
                chosen = (b & c) | (~b & d)
            elif number == 1:
                chosen = (b & c) | (b & d) | (c & d)
            else:
                chosen = b ^ c ^ d
            total = (a + chosen + words[word] + constant) & _WORD
            shift = shifts[step % 4]
            a, b, c, d = d, (total << shift | total >> (32 - shift)) & _WORD, b, c
    return a, b, c, d


def rc4(key: bytes, data: bytes) -> bytes:
    """Encrypt or decrypt data, from the start of the key's stream."""
    box = list(range(256))
    j = 0
    for i in range(256):
        j = (j + box[i] + key[i % len(key)]) & 0xFF
        box[i], box[j] = box[j], box[i]
    out = bytearray()
    i = j = 0
    for byte in data:
        i = (i + 1) & 0xFF
        j = (j + box[i]) & 0xFF
        box[i], box[j] = box[j], box[i]
        out.append(byte ^ box[(box[i] + box[j]) & 0xFF])
    return bytes(out)
