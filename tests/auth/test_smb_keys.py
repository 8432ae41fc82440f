"""Keys of SMB sessions: the derivation agrees with known values and with another implementation."""

from __future__ import annotations

import hashlib

import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.kbkdf import KBKDFHMAC, CounterLocation, Mode
from hypothesis import given
from hypothesis import strategies as st

from strongroom.auth.smb_keys import (
    NO_PREAUTH_HASH,
    SessionKeys,
    derived_key,
    extended_hash,
    session_keys,
)

KEY = bytes(range(16))
PREAUTH = hashlib.sha512(b"").digest()


@pytest.mark.parametrize("dialect", [0x0300, 0x0302])
def test_keys_before_dialect_311_have_fixed_contexts(dialect: int) -> None:
    keys = session_keys(KEY, dialect, 1, PREAUTH)
    assert keys.signing.hex() == "6234814cbb8ea9227440ebfeb5eacbe1"
    assert keys.decryption.hex() == "8e21f3cae16d07d84c03d74467f57878"
    assert keys.encryption.hex() == "95d8b55c852cd25349994b3842fa4105"


@pytest.mark.parametrize("cipher", [0, 1, 2])
def test_keys_of_dialect_311_depend_on_what_was_negotiated(cipher: int) -> None:
    keys = session_keys(KEY, 0x0311, cipher, PREAUTH)
    assert keys.signing.hex() == "623188344f21234d2a702a8acdb69a88"
    assert keys.decryption.hex() == "ce371fabe8b9f7a0c63ff1399d69617e"
    assert keys.encryption.hex() == "6c3bf1955c3ee34d2fd201bde459235b"
    assert session_keys(KEY, 0x0311, cipher, NO_PREAUTH_HASH).signing != keys.signing


@pytest.mark.parametrize("cipher", [3, 4])
def test_only_the_keys_of_long_ciphers_are_long(cipher: int) -> None:
    keys = session_keys(KEY, 0x0311, cipher, PREAUTH)
    assert keys.encryption.hex() == (
        "1ba3dbe4540fd4ce105b6e3e12c3936fbd8fc53ffc5f5eb65d7b7806a28f59f1"
    )
    assert keys.signing.hex() == "623188344f21234d2a702a8acdb69a88"
    assert len(keys.application) == 16


def test_a_long_authenticated_key_is_cut_for_short_keys_only() -> None:
    long = KEY + b"more of the key!"
    assert session_keys(long, 0x0311, 2, PREAUTH) == session_keys(KEY, 0x0311, 2, PREAUTH)
    assert (
        session_keys(long, 0x0311, 4, PREAUTH).encryption
        != session_keys(KEY, 0x0311, 4, PREAUTH).encryption
    )


def test_a_short_authenticated_key_is_filled_with_zeros() -> None:
    filled = b"short".ljust(16, b"\0")
    assert session_keys(b"short", 0x0300, 1, b"") == session_keys(filled, 0x0300, 1, b"")


@given(
    key=st.binary(min_size=16, max_size=16),
    label=st.binary(min_size=1, max_size=20),
    context=st.binary(max_size=64),
    size=st.sampled_from([16, 32]),
)
def test_another_implementation_derives_the_same(
    key: bytes, label: bytes, context: bytes, size: int
) -> None:
    other = KBKDFHMAC(
        algorithm=SHA256(),
        mode=Mode.CounterMode,
        length=size,
        rlen=4,
        llen=4,
        location=CounterLocation.BeforeFixed,
        label=label,
        context=context,
        fixed=None,
    )
    assert derived_key(key, label, context, size) == other.derive(key)


def test_the_hash_takes_in_each_message() -> None:
    once = extended_hash(NO_PREAUTH_HASH, b"request")
    assert once == hashlib.sha512(bytes(64) + b"request").digest()
    assert extended_hash(once, memoryview(b"answer")) == hashlib.sha512(once + b"answer").digest()


def test_keys_are_not_shown() -> None:
    assert repr(SessionKeys(b"a", b"b", b"c", b"d")) == "SessionKeys(...)"
