"""NTLMv2: the published values, every kind of wrong proof, and equal work for all attempts."""

from __future__ import annotations

import hmac
import struct

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.auth import ntlm
from strongroom.auth.accounts import Account
from strongroom.auth.legacy_ciphers import md4, rc4
from strongroom.auth.ntlm import NtlmAttempt, mechanisms_mic, passwords_of, verified_key

CHALLENGE = bytes.fromhex("0123456789abcdef")
# [MS-NLMP] 4.2.4.1.3: the pairs are the NetBIOS names of domain and server.
_NAMES = struct.pack("<HH", 2, 12) + "Domain".encode("utf-16-le")
_NAMES += struct.pack("<HH", 1, 12) + "Server".encode("utf-16-le") + bytes(4)
BLOB = b"\x01\x01" + bytes(6) + bytes(8) + b"\xaa" * 8 + bytes(4) + _NAMES + bytes(4)
PROOF = bytes.fromhex("68cd0ab851e51c96aabc927bebef6a1c")
BASE_KEY = bytes.fromhex("8de40ccadbc14a82f15cb0ad0de95ca3")
SENT_KEY = bytes.fromhex("c5dad2544fc9799094ce1ce90bc9d03e")
FLAGS = 0xE208_8233

ATTEMPT = NtlmAttempt("User", "Domain", PROOF + BLOB, SENT_KEY, FLAGS, CHALLENGE, None, b"")


def changed(**fields: object) -> NtlmAttempt:
    return msgspec.structs.replace(ATTEMPT, **fields)


def proven(blob: bytes, *, domain: str = "Domain", **fields: object) -> NtlmAttempt:
    key = ntlm.response_key("Password", "User", domain)
    proof = hmac.digest(key, CHALLENGE + blob, "md5")
    sent = rc4(hmac.digest(key, proof, "md5"), b"U" * 16)
    return changed(response=proof + blob, encrypted_key=sent, **fields)


@pytest.mark.parametrize(
    ("message", "digest"),
    [  # RFC 1320, appendix A.5
        (b"", "31d6cfe0d16ae931b73c59d7e0c089c0"),
        (b"a", "bde52cb31de33e46245e05fbdbd6fb24"),
        (b"abc", "a448017aaf21d8525fc10ae87aa6729d"),
        (b"message digest", "d9130a8164549fe818874806e1c7014b"),
        (b"abcdefghijklmnopqrstuvwxyz", "d79e1c308aa5bbcdeea8ed63df412da9"),
        (b"1234567890" * 8, "e33b4ddc9c38f2199c3e7b164fcc0536"),
    ],
)
def test_md4_agrees_with_its_rfc(message: bytes, digest: str) -> None:
    assert md4(message).hex() == digest


@pytest.mark.parametrize("size", [55, 56, 63, 64, 119, 120])
def test_md4_pads_around_the_end_of_a_block(size: int) -> None:
    # Known from other implementations: a padding error would make these collide.
    assert len({md4(bytes(count)) for count in range(size - 1, size + 2)}) == 3


def test_rc4_agrees_with_rfc_6229() -> None:
    assert rc4(bytes.fromhex("0102030405"), bytes(16)).hex() == "b2396305f03dc027ccc3524a0a1118a8"
    key = bytes(range(1, 17))
    assert rc4(key, bytes(16)).hex() == "9ac7cc9a609d1ef7b2932899cde41b97"


@given(st.binary(min_size=1, max_size=40), st.binary(max_size=100))
def test_rc4_is_its_own_inverse(key: bytes, data: bytes) -> None:
    assert rc4(key, rc4(key, data)) == data


def test_the_published_values_are_reached() -> None:
    assert ntlm.response_key("Password", "User", "Domain").hex() == (
        "0c868a403bfd7a93a3001ef22ef02e3f"
    )
    assert rc4(BASE_KEY, b"U" * 16) == SENT_KEY
    assert verified_key(ATTEMPT, ["Password"]) == b"U" * 16


def test_either_of_two_passwords_is_right() -> None:
    assert verified_key(ATTEMPT, ["other", "Password"]) == b"U" * 16
    assert verified_key(ATTEMPT, ["Password", "other"]) == b"U" * 16


def test_without_an_exchange_the_base_key_is_the_session_key() -> None:
    plain = changed(flags=FLAGS & ~0x4000_0000, encrypted_key=b"")
    assert verified_key(plain, ["Password"]) == BASE_KEY


def test_a_proof_without_the_domain_that_it_names_is_right() -> None:
    assert verified_key(proven(BLOB, domain=""), ["Password"]) == b"U" * 16
    assert verified_key(proven(BLOB, domain="Other"), ["Password"]) is None


@pytest.mark.parametrize(
    "attempt",
    [
        changed(user=""),
        changed(user="user2"),
        changed(challenge=bytes(8)),
        changed(response=b""),
        changed(response=PROOF),
        changed(response=bytes(24)),
        changed(response=bytes(16) + BLOB),
        changed(response=PROOF + BLOB[:-1]),
        changed(flags=FLAGS & ~0x8_0000),
        changed(flags=FLAGS & ~0x2000_0000),
        changed(encrypted_key=SENT_KEY[:15]),
        changed(encrypted_key=b""),
        proven(b"\x02\x01" + BLOB[2:]),
        proven(BLOB[:28]),
        proven(BLOB[:31]),
        proven(BLOB[:28] + struct.pack("<HH", 1, 9) + bytes(8)),
        proven(BLOB[:28] + struct.pack("<HH", 1, 4) + bytes(4)),
    ],
)
def test_what_is_wrong_anywhere_is_refused(attempt: NtlmAttempt) -> None:
    assert verified_key(attempt, ["Password"]) is None


@pytest.mark.parametrize("passwords", [[], ["other"], ["-" * 88], ["", "other"]])
def test_other_passwords_are_refused(passwords: list[str]) -> None:
    assert verified_key(ATTEMPT, passwords) is None


def test_nobody_has_the_password_that_stands_for_none() -> None:
    key = ntlm.response_key("-" * 88, "User", "Domain")
    attempt = changed(response=hmac.digest(key, CHALLENGE + BLOB, "md5") + BLOB)
    assert verified_key(attempt, []) is None


WITH_MIC = BLOB[:28] + struct.pack("<HHI", 6, 4, 2) + BLOB[28:]


def test_a_mic_that_is_announced_must_be_right() -> None:
    mic = hmac.digest(b"U" * 16, b"all messages", "md5")
    attempt = proven(WITH_MIC, mic=mic, messages=b"all messages")
    assert verified_key(attempt, ["Password"]) == b"U" * 16
    for wrong in ({"mic": bytes(16)}, {"mic": None}, {"messages": b"others"}):
        assert verified_key(msgspec.structs.replace(attempt, **wrong), ["Password"]) is None


def test_a_mic_that_is_not_announced_is_not_looked_at() -> None:
    assert verified_key(changed(mic=b"anything"), ["Password"]) == b"U" * 16


@pytest.mark.parametrize("passwords", [[], ["other"], ["Password"], ["a", "Password"]])
def test_the_work_is_the_same_for_any_account_or_none(
    passwords: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[str] = []
    real = ntlm.response_key

    def counting(password: str, user: str, domain: str) -> bytes:
        hashed.append(domain)
        return real(password, user, domain)

    monkeypatch.setattr(ntlm, "response_key", counting)
    verified_key(ATTEMPT, passwords)
    assert hashed == ["Domain", "", "Domain", ""]


@given(
    response=st.binary(max_size=120), key=st.binary(max_size=20), flags=st.integers(0, 2**32 - 1)
)
def test_no_bytes_prove_anything_by_chance(response: bytes, key: bytes, flags: int) -> None:
    attempt = changed(response=response, encrypted_key=key, flags=flags)
    assert verified_key(attempt, ["Password"]) is None


@given(st.binary(max_size=60))
def test_no_pairs_break_the_verification(pairs: bytes) -> None:
    attempt = proven(BLOB[:28] + pairs)
    assert verified_key(attempt, ["Password"]) in (None, b"U" * 16)


def test_the_passwords_of_an_account_are_the_texts_of_its_keys() -> None:
    assert passwords_of(Account("abc", (b"one", b"two"))) == ("b25l", "dHdv")
    assert passwords_of(None) == ()


def test_the_list_of_mechanisms_is_signed_in_each_direction_by_itself() -> None:
    key = bytes(range(16))
    made = {
        mechanisms_mic(key, direction, b"list", exchanged=exchanged)
        for direction in (ntlm.TO_SERVER, ntlm.TO_CLIENT)
        for exchanged in (False, True)
    }
    assert len(made) == 4
    assert all(mic[:4] == b"\1\0\0\0" and mic[12:] == bytes(4) for mic in made)


def test_nothing_secret_is_shown() -> None:
    assert repr(ATTEMPT) == "NtlmAttempt(user='User')"
