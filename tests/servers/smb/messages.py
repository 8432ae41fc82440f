"""Messages of SMB, NTLM and SPNEGO as a client writes them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import struct
from collections.abc import Sequence

from strongroom.auth.legacy_ciphers import rc4
from strongroom.auth.ntlm import TO_SERVER, mechanisms_mic, response_key
from strongroom.wire.smb.header import HEADER_BYTES
from strongroom.wire.smb.setup import ntlm, spnego
from strongroom.wire.smb.setup.der import OCTET_STRING, SEQUENCE, of_context, write_value
from strongroom.wire.smb.setup.negotiate_contexts import NegotiateContext, write_contexts

CLIENT_GUID = bytes(range(16))
NTLM_FLAGS = (
    ntlm.REQUIRED | ntlm.SIGN | ntlm.SEAL | ntlm.KEY_EXCHANGE | ntlm.VERSION | ntlm.REQUEST_TARGET
)


def negotiate_body(
    dialects: Sequence[int],
    ciphers: Sequence[int],
    signings: Sequence[int],
    *,
    can_encrypt: bool = True,
    more: Sequence[NegotiateContext] = (),
) -> bytes:
    """Return the body of NEGOTIATE; an empty list omits its context."""
    contexts = list(more)
    if 0x0311 in dialects:
        contexts.insert(0, NegotiateContext(1, struct.pack("<HHH", 1, 0, 1)))
        for kind, ids in ((2, ciphers), (8, signings)):
            if ids:
                data = struct.pack(f"<H{len(ids)}H", len(ids), *ids)
                contexts.append(NegotiateContext(kind, data))
    listed = struct.pack(f"<{len(dialects)}H", *dialects)
    listed += bytes(-(100 + len(listed)) % 8)
    offset = 100 + len(listed) if contexts else 0
    capabilities = 0x40 if can_encrypt else 0
    fixed = struct.pack(
        "<HHHHI16sIHH", 36, len(dialects), 1, 0, capabilities, CLIENT_GUID, offset, len(contexts), 0
    )
    return fixed + listed + write_contexts(contexts)


def session_setup_body(token: bytes, *, flags: int = 0, previous: int = 0) -> bytes:
    """SESSION_SETUP."""
    return struct.pack("<HBBIIHHQ", 25, flags, 1, 0, 0, 88, len(token), previous) + token


def tree_connect_body(path: str) -> bytes:
    """TREE_CONNECT."""
    raw = path.encode("utf-16-le", "surrogatepass")
    return struct.pack("<HHHH", 9, 0, 72, len(raw)) + raw


PLAIN = b"\4\0\0\0"


def token_of(body: bytes) -> bytes:
    offset, length = struct.unpack_from("<HH", body, 4)
    return body[offset - HEADER_BYTES :][:length]


def agreed(body: bytes, dialect: int, can_encrypt: bool) -> tuple[int, int]:
    """Return the cipher and the signing algorithm in an answer to NEGOTIATE."""
    if dialect < 0x0300:
        return 0, 0
    if dialect != 0x0311:
        return (1 if can_encrypt else 0), 1
    (count,) = struct.unpack_from("<H", body, 6)
    (at,) = struct.unpack_from("<I", body, 60)
    at -= HEADER_BYTES
    found = {2: 0, 8: 1}
    for _ in range(count):
        kind, length = struct.unpack_from("<HH", body, at)
        if kind in found:
            found[kind] = struct.unpack_from("<H", body, at + 10)[0]
        at += 8 + length + (-length % 8)
    return found[2], found[8]


# NTLM and SPNEGO as a client writes them.

MECHANISMS = write_value(SEQUENCE, spnego.NTLMSSP)
EXCHANGED_KEY = bytes(range(100, 116))


def negotiate_message(flags: int = NTLM_FLAGS) -> bytes:
    """NEGOTIATE_MESSAGE."""
    return ntlm.SIGNATURE + struct.pack("<II", 1, flags) + bytes(16)


def authenticate_message(
    first: bytes,
    challenge: bytes,
    user: str,
    key: bytes,
    *,
    domain: str = "WORKGROUP",
    hashed_domain: str | None = None,
    flags: int = NTLM_FLAGS,
    with_mic: bool = True,
    spoils_mic: bool = False,
    response: bytes | None = None,
) -> tuple[bytes, bytes]:
    """Return AUTHENTICATE_MESSAGE, and the session key that both sides then share."""
    password = base64.b64encode(key).decode()
    proof_key = response_key(password, user, domain if hashed_domain is None else hashed_domain)
    pairs = struct.pack("<HHI", 6, 4, 2) if with_mic else b""
    blob = b"\1\1" + bytes(6) + bytes(8) + b"client's" + bytes(4) + pairs + bytes(4) + bytes(4)
    proof = hmac.digest(proof_key, challenge[24:32] + blob, "md5")
    base = hmac.digest(proof_key, proof, "md5")
    sent = proof + blob if response is None else response
    names = [text.encode("utf-16-le") for text in (domain, user, "WORKSTATION")]
    parts = [b"", sent, *names, rc4(base, EXCHANGED_KEY)]
    at, fields = 88, b""
    for part in parts:
        fields += struct.pack("<HHI", len(part), len(part), at)
        at += len(part)
    head = ntlm.SIGNATURE + struct.pack("<I", 3) + fields + struct.pack("<I", flags) + bytes(8)
    bare = head + bytes(16) + b"".join(parts)
    mic = hmac.digest(EXCHANGED_KEY, first + challenge + bare, "md5")
    if spoils_mic:
        mic = hashlib.md5(mic).digest()
    return head + mic + b"".join(parts), EXCHANGED_KEY


def first_token(token: bytes) -> bytes:
    mechanisms = write_value(of_context(0), MECHANISMS)
    carried = write_value(of_context(2), write_value(OCTET_STRING, token))
    inner = write_value(of_context(0), write_value(SEQUENCE, mechanisms, carried))
    return write_value(0x60, bytes.fromhex("06062b0601050502"), inner)


def last_token(token: bytes, shared: bytes) -> bytes:
    mic = mechanisms_mic(shared, TO_SERVER, MECHANISMS, exchanged=True)
    carried = write_value(of_context(2), write_value(OCTET_STRING, token))
    signed = write_value(of_context(3), write_value(OCTET_STRING, mic))
    return write_value(of_context(1), write_value(SEQUENCE, carried, signed))
