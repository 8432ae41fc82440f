"""Key sets: the accepted keys, the refused sets, and the signatures that the keys verify."""

from __future__ import annotations

import json
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from hypothesis import given
from hypothesis import strategies as st
from jwt.algorithms import RSAAlgorithm

from strongroom.auth.key_set import (
    ALGORITHMS,
    DOCUMENT_BYTES_MAX,
    KEYS_MAX,
    KeySetError,
    is_signed,
    parse_key_set,
)
from tests.auth import tokens


@pytest.mark.parametrize("algorithm", tokens.ALGORITHMS)
def test_a_key_verifies_what_it_signed(algorithm: str) -> None:
    key = parse_key_set(tokens.key_set()).find(tokens.kid_for(algorithm))
    assert key is not None
    token = tokens.token(algorithm)
    assert is_signed(token, algorithm, key)
    body, _, signature = token.rpartition(".")
    assert not is_signed(f"{body}.{signature[:-8]}AAAAAAAA", algorithm, key)
    header, payload, signature = token.split(".")
    assert not is_signed(f"{header}.{payload[:-4]}AAAA.{signature}", algorithm, key)
    assert not is_signed(f"{header}.{payload}.", algorithm, key)
    assert not is_signed("A", algorithm, key)


def test_the_algorithms_are_those_that_are_tested() -> None:
    assert frozenset(tokens.ALGORITHMS) == ALGORITHMS


def test_a_key_verifies_no_other_algorithm_than_its_own() -> None:
    keys = parse_key_set(tokens.key_set(tokens.jwk(tokens.key_for("RS256"), "k", alg="RS256")))
    key = keys.find("k")
    assert key is not None
    assert is_signed(tokens.token("RS256"), "RS256", key)
    assert not is_signed(tokens.token("PS256"), "PS256", key)
    curve = parse_key_set(tokens.key_set()).find("ES256")
    assert curve is not None and not is_signed(tokens.token("ES384"), "ES384", curve)


@pytest.mark.parametrize("algorithm", ["HS256", "HS512", "none"])
def test_a_public_key_is_never_a_shared_secret(algorithm: str) -> None:
    private = tokens.key_for("RS256")
    key = parse_key_set(tokens.key_set(tokens.jwk(private, "RSA"))).find("RSA")
    assert key is not None
    secret = tokens.public_pem(private)
    body = tokens.unsigned({"alg": algorithm, "kid": "RSA"})[:-1]
    forged = f"{body}."
    if algorithm != "none":
        library: Any = jwt.get_algorithm_by_name(algorithm)
        forged += tokens.part(library.sign(body.encode(), secret))
    assert not is_signed(forged, algorithm, key)
    assert not is_signed(forged, "RS256", key)


def test_the_key_without_an_id_serves_tokens_without_one() -> None:
    row = tokens.jwk(tokens.key_for("RS256"), "")
    only = parse_key_set(tokens.key_set(row))
    assert only.find(None) is not None and only.find("x") is None
    several = parse_key_set(tokens.key_set())
    assert several.find(None) is None and len(several) == 3


def test_keys_of_other_kinds_are_passed_over() -> None:
    rows = [
        tokens.jwk(tokens.key_for("RS256"), "good"),
        tokens.jwk(tokens.key_for("RS256"), "encrypts", use="enc"),
        tokens.jwk(tokens.key_for("RS256"), "other", alg="RSA-OAEP"),
        tokens.jwk(ec.generate_private_key(ec.SECP521R1()), "curve"),
        {"kty": "OKP", "crv": "Ed25519", "x": "AA", "kid": "edwards"},
    ]
    keys = parse_key_set(tokens.key_set(*rows))
    assert len(keys) == 1 and keys.find("good") is not None


def _weak() -> dict[str, Any]:
    return tokens.jwk(rsa.generate_private_key(65537, 1024), "weak")


def _private() -> dict[str, Any]:
    found: dict[str, Any] = RSAAlgorithm.to_jwk(tokens.key_for("RS256"), as_dict=True)
    return found | {"kid": "mine"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "no JSON Web Key Set"),
        (b"{}", "no JSON Web Key Set"),
        (b'{"keys": 1}', "no JSON Web Key Set"),
        (b"[" * 100_000, "no JSON Web Key Set"),
        (b'{"keys": []}', "no key for any"),
        (b" " * (DOCUMENT_BYTES_MAX + 1), "longer than"),
        (json.dumps({"keys": [{"kty": "x"}] * (KEYS_MAX + 1)}).encode(), "more than"),
        (b'{"keys": [{"kty": "oct", "k": "c2VjcmV0", "kid": "s"}]}', "'s' of the key set is a s"),
        (b'{"keys": [{"kty": "RSA", "kid": "r", "n": "!!", "e": "AQAB"}]}', "'r' of the key set"),
        (b'{"keys": [{"kty": "RSA", "kid": "r"}]}', "malformed"),
        (b'{"keys": [{"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}]}', "malformed"),
    ],
)
def test_a_key_set_that_cannot_be_used(text: bytes, reason: str) -> None:
    with pytest.raises(KeySetError, match=reason):
        parse_key_set(text)


def test_weak_private_and_repeated_keys_are_refused() -> None:
    with pytest.raises(KeySetError, match="1024 bits"):
        parse_key_set(tokens.key_set(_weak()))
    with pytest.raises(KeySetError, match="'mine' of the key set is a secret") as caught:
        parse_key_set(tokens.key_set(_private()))
    assert _private()["d"][:8] not in str(caught.value)
    row = tokens.jwk(tokens.key_for("RS256"), "twice")
    with pytest.raises(KeySetError, match="two keys with the id 'twice'"):
        parse_key_set(tokens.key_set(row, row))


@given(st.recursive(st.none() | st.text() | st.integers(), lambda inner: st.lists(inner)))
def test_any_json_is_a_key_set_or_is_refused(value: Any) -> None:
    row = {"kty": "RSA", "n": value if isinstance(value, str) else "AQ", "e": "AQAB"}
    for document in (value, {"keys": value}, {"keys": [row]}):
        with pytest.raises(KeySetError):
            parse_key_set(json.dumps(document).encode())
