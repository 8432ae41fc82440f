"""Signatures and encrypted frames agree with known values, whole and in chunks; changed ones are
refused."""

from __future__ import annotations

import hashlib
import itertools

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.auth.smb_keys import SessionKeys, session_keys
from strongroom.servers.smb.refusals import CloseConnection
from strongroom.servers.smb.security import encryption
from strongroom.servers.smb.security.encryption import SessionCipher
from strongroom.servers.smb.security.signing import has_valid_signature, signature
from strongroom.wire.smb.header import Header, read_header, write_header
from strongroom.wire.smb.transform import read_transform

ECHO = bytes.fromhex(
    "fe534d4240000100000000000d00010009000000000000000700000000000000fffe000000000000"
    "8877665544332211" + "00" * 16 + "04000000"
)
SESSION_ID = 0x1122334455667788
PREAUTH = hashlib.sha512(b"").digest()
KEYS = session_keys(bytes(range(16)), 0x0311, 2, PREAUTH)
LONG_KEYS = session_keys(bytes(range(32)), 0x0311, 4, PREAUTH)
CIPHERS = (1, 2, 3, 4)


def keys_of(cipher: int) -> SessionKeys:
    return LONG_KEYS if cipher > 2 else KEYS


def mirrored(keys: SessionKeys) -> SessionKeys:
    return msgspec.structs.replace(keys, encryption=keys.decryption, decryption=keys.encryption)


@pytest.mark.parametrize(
    ("algorithm", "expected"),
    [(1, "dfd217ac3d8d69d5d34668693294ec6f"), (2, "a14d79e327ef311f77357f32e64d2f28")],
)
def test_signatures_have_known_values(algorithm: int, expected: str) -> None:
    header = read_header(ECHO)
    made = signature(algorithm, KEYS.signing, header, [ECHO], from_server=True)
    assert made.hex() == expected


@given(
    algorithm=st.sampled_from([0, 1, 2]),
    body=st.binary(max_size=100) | st.sampled_from([bytes(600_000)]),
    cuts=st.lists(st.integers(0, 100), max_size=3),
)
def test_pieces_are_signed_as_the_whole(algorithm: int, body: bytes, cuts: list[int]) -> None:
    header = Header(message_id=9, command=9)
    whole = write_header(header) + body
    bounds = [0, *sorted(cuts), len(whole)]
    pieces = [memoryview(whole)[a:b] for a, b in itertools.pairwise(bounds)]
    made = signature(algorithm, KEYS.signing, header, pieces, from_server=False)
    assert made == signature(algorithm, KEYS.signing, header, [whole], from_server=False)
    signed = msgspec.structs.replace(header, signature=made)
    message = memoryview(write_header(signed) + body)
    assert has_valid_signature(algorithm, KEYS.signing, signed, message)
    assert not has_valid_signature(algorithm, KEYS.application, signed, message)


@pytest.mark.parametrize("algorithm", [0, 1, 2])
@pytest.mark.parametrize("at", [4, 12, 30, 40, 64, 67])
def test_any_changed_byte_spoils_a_signature(algorithm: int, at: int) -> None:
    header = read_header(ECHO)
    made = signature(algorithm, KEYS.signing, header, [ECHO], from_server=False)
    signed = msgspec.structs.replace(header, signature=made)
    message = bytearray(write_header(signed) + ECHO[64:])
    message[at] ^= 1
    assert not has_valid_signature(algorithm, KEYS.signing, signed, memoryview(message))


def test_server_and_client_and_cancel_are_told_apart_by_gmac() -> None:
    made = {
        signature(2, KEYS.signing, Header(message_id=1, command=command), [b""], from_server=role)
        for command in (11, 12)
        for role in (False, True)
    }
    assert len(made) == 4


@pytest.mark.parametrize(
    ("cipher", "nonce", "tag"),
    [
        (2, bytes(range(1, 13)), "a59963eeddc1e8831642ff2ffba501bf"),
        (1, bytes(range(1, 12)), "88ca7d0448667520167a1476803086bc"),
    ],
)
def test_an_encrypted_frame_has_known_values(cipher: int, nonce: bytes, tag: str) -> None:
    header, sealed = SessionCipher(cipher, KEYS, SESSION_ID).seal(nonce, [ECHO])
    assert bytes(header)[4:20].hex() == tag
    assert read_transform(memoryview(bytes(header) + bytes(sealed))).session_id == SESSION_ID
    if cipher == 2:
        assert bytes(sealed)[:16].hex() == "aa4645e2f7fa27f6ceae49c3e99a3ba7"


@pytest.mark.parametrize("cipher", CIPHERS)
@pytest.mark.parametrize("sizes", [(68,), (1, 70_000, 3), (80, 600_000), (262_144,), (262_145,)])
def test_what_is_sealed_is_opened(cipher: int, sizes: tuple[int, ...]) -> None:
    pieces = [bytes([number]) * size for number, size in enumerate(sizes)]
    server = SessionCipher(cipher, keys_of(cipher), SESSION_ID)
    client = SessionCipher(cipher, mirrored(keys_of(cipher)), SESSION_ID)
    frame = memoryview(b"".join(server.seal(server.next_nonce(), pieces)))
    assert bytes(client.open(read_transform(frame), frame)) == b"".join(pieces)
    for at in (4, 20, 44, len(frame) - 1):
        spoilt = bytearray(frame)
        spoilt[at] ^= 1
        view = memoryview(spoilt)
        with pytest.raises(CloseConnection):
            client.open(read_transform(view), view)


def test_chunks_are_sealed_as_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = [bytes(range(256)) * 40, b"end"]
    whole = SessionCipher(2, KEYS, 1).seal(bytes(12), pieces)
    monkeypatch.setattr(encryption, "_CHUNK_BYTES", 100)
    assert b"".join(SessionCipher(2, KEYS, 1).seal(bytes(12), pieces)) == b"".join(whole)


def test_no_nonce_is_used_twice_and_they_end(monkeypatch: pytest.MonkeyPatch) -> None:
    for cipher in CIPHERS:
        made = SessionCipher(cipher, keys_of(cipher), 1)
        nonces = {made.next_nonce() for _ in range(1000)}
        assert len(nonces) == 1000
        assert {len(nonce) for nonce in nonces} == {12 if cipher in (2, 4) else 11}
    monkeypatch.setattr(encryption, "_FRAMES_MAX", 1000)
    with pytest.raises(CloseConnection):
        made.next_nonce()
