"""Bearer tokens: parsing, the checks of claims, and the exact refusals."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.auth.bearer import (
    NO_TENANT,
    SKEW_TICKS,
    TOKEN_CHARS_MAX,
    Identity,
    Issuer,
    bearer_text,
    judge_claims,
    parse_token,
    require_algorithm,
)
from strongroom.auth.refusals import challenge
from strongroom.auth.request import Service, Target
from strongroom.errors.core import INVALID_AUTHENTICATION_INFO, INVALID_TOKEN, StorageError
from strongroom.values import TICKS_PER_S, UNIX_EPOCH_TICKS
from tests.auth import tokens
from tests.refusals import OK, outcome

BLOB = Target(Service.BLOB, "orders", "c", "b")
NOW_S = 1_800_000_000
NOW = UNIX_EPOCH_TICKS + NOW_S * TICKS_PER_S


def judged(issuer: Issuer = tokens.SETTINGS, target: Target = BLOB, **more: Any) -> Identity:
    claims = {"nbf": NOW_S - 5, "exp": NOW_S + 3600, **more}
    return judge_claims(parse_token(tokens.token(**claims)), issuer, target, NOW)


def detail(caught: pytest.ExceptionInfo[StorageError], row: Any = INVALID_TOKEN) -> str:
    assert caught.value.row is row
    assert (row is INVALID_TOKEN) == ("WWW-Authenticate" in dict(caught.value.headers))
    return dict(caught.value.extras)["AuthenticationErrorDetail"]


def test_who_a_token_speaks_for() -> None:
    assert judged() == Identity(tokens.USER, tokens.TENANT)
    found = judged(groups=[tokens.GROUP], sub="subject")
    assert found.principals == (tokens.USER, tokens.GROUP)
    # Issuers other than Entra have neither tenants nor object ids.
    other = Issuer(name=tokens.ISSUER)
    assert judged(other, oid=None, sub="me", tid=None) == Identity("me", NO_TENANT)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"iss": tokens.ISSUER[:-1]}, "Issuer did not match"),
        ({"iss": None}, "Issuer did not match"),
        ({"tid": tokens.OTHER}, "Tenant did not match"),
        ({"tid": None}, "Tenant did not match"),
        ({"aud": None}, "Audience did not match"),
        ({"aud": []}, "Audience did not match"),
        ({"aud": "https://graph.microsoft.com"}, "Audience did not match"),
        ({"aud": "https://other.blob.core.windows.net"}, "Audience did not match"),
        ({"aud": "https://orders.queue.core.windows.net"}, "Audience did not match"),
        ({"aud": "https://storage.azure.com.example.net"}, "Audience did not match"),
        ({"oid": None}, "names no principal"),
        ({"oid": ""}, "names no principal"),
        ({"oid": "x" * 257}, "names no principal"),
        ({"oid": "a\nb"}, "characters that no id has"),
        ({"groups": ["g"] * 1001}, "names no principal"),
        ({"groups": ["a\x00"]}, "characters that no id has"),
        ({"groups": "one"}, "cannot be read"),
        ({"oid": 7}, "cannot be read"),
        ({"exp": None}, "cannot be read"),
        ({"exp": "tomorrow"}, "cannot be read"),
        ({"exp": 1e300}, "time cannot be read"),
        ({"exp": 10**18}, "time cannot be read"),
        ({"exp": -(10**18)}, "time cannot be read"),
        ({"nbf": 10**18}, "time cannot be read"),
    ],
)
def test_a_token_that_is_not_believed(more: dict[str, Any], reason: str) -> None:
    with pytest.raises(StorageError) as caught:
        judged(**more)
    assert reason in detail(caught)


@pytest.mark.parametrize(
    "audience",
    [
        "https://storage.azure.com",
        "https://storage.azure.com/",
        "https://orders.blob.core.windows.net",
        "https://orders.blob.core.windows.net/",
        "https://orders.blob.example.org",
        "e406a681-f3d4-42a8-90b6-c2b029497af1",
        ["https://graph.microsoft.com", "https://storage.azure.com"],
    ],
)
def test_audiences_that_are_accepted(audience: Any) -> None:
    issuer = Issuer(name=tokens.ISSUER, suffixes=("blob.example.org",))
    assert judged(issuer, aud=audience).object_id == tokens.USER


def test_configured_audiences_replace_the_usual_ones() -> None:
    issuer = Issuer(name=tokens.ISSUER, audiences=("https://store.example.net",))
    assert judged(issuer, aud="https://store.example.net/").object_id == tokens.USER
    with pytest.raises(StorageError) as caught:
        judged(issuer)
    assert "Audience" in detail(caught)
    assert "resource_id=https://store.example.net" in dict(caught.value.headers)["WWW-Authenticate"]


def test_times_may_be_a_minute_off() -> None:
    skew_s = SKEW_TICKS // TICKS_PER_S
    assert judged(exp=NOW_S - skew_s + 1, nbf=NOW_S + skew_s).object_id == tokens.USER
    assert judged(exp=NOW_S + 0.5, nbf=None).object_id == tokens.USER
    with pytest.raises(StorageError) as caught:
        judged(exp=NOW_S - skew_s)
    assert "expired" in detail(caught)
    with pytest.raises(StorageError) as caught:
        judged(nbf=NOW_S + skew_s + 1)
    assert "not yet valid" in detail(caught)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "a.b",
        "a.b.c",
        "a.b.c.d",
        "....",
        "e30.e30.é",
        "e30=.e30.e30",
        tokens.part([]) + ".e30.e30",
        tokens.part({}) + ".e30.e30",
        tokens.part({"alg": 1}) + ".e30.e30",
        tokens.part({"alg": "RS256", "kid": ["x"]}) + ".e30.e30",
        tokens.part({"alg": "RS256", "crit": ["b64"], "b64": False}) + ".e30.e30",
        tokens.part(b"[" * 10_000) + ".e30.e30",
        tokens.part(b"\xff\xfe") + ".e30.e30",
        "A" * (TOKEN_CHARS_MAX + 1),
    ],
)
def test_what_is_no_token(text: str) -> None:
    with pytest.raises(StorageError) as caught:
        parse_token(text)
    assert "bearer token" in detail(caught, INVALID_AUTHENTICATION_INFO)


@pytest.mark.parametrize("algorithm", ["none", "None", "HS256", "HS384", "HS512", "EdDSA", "", "x"])
def test_algorithms_that_no_public_key_verifies(algorithm: str) -> None:
    token = parse_token(tokens.unsigned({"alg": algorithm, "kid": "RSA"}))
    with pytest.raises(StorageError) as caught:
        require_algorithm(token, "Bearer")
    assert "algorithm" in detail(caught)


@pytest.mark.parametrize("algorithm", tokens.ALGORITHMS)
def test_algorithms_that_are_accepted(algorithm: str) -> None:
    token = parse_token(tokens.token(algorithm))
    assert outcome(lambda: require_algorithm(token, "Bearer")) == OK


def test_claims_that_are_nested_too_deeply() -> None:
    token = parse_token(f"{tokens.part({'alg': 'RS256'})}.{tokens.part(b'[' * 11_000)}.")
    with pytest.raises(StorageError) as caught:
        judge_claims(token, tokens.SETTINGS, BLOB, NOW)
    assert "cannot be read" in detail(caught)


@pytest.mark.parametrize(
    ("header", "text"),
    [
        (None, None),
        ("SharedKey a:b", None),
        ("Bearers x", None),
        ("Bearer", ""),
        ("bearer  x.y.z ", "x.y.z"),
        ("BEARER x", "x"),
    ],
)
def test_the_token_of_a_header(header: str | None, text: str | None) -> None:
    assert bearer_text(header) == text


@pytest.mark.parametrize(
    ("issuer", "tenant", "where"),
    [
        (None, None, "https://login.microsoftonline.com/common/oauth2/authorize"),
        (None, "t", "https://login.microsoftonline.com/t/oauth2/authorize"),
        (
            tokens.ISSUER,
            None,
            f"https://login.microsoftonline.com/{tokens.TENANT}/oauth2/authorize",
        ),
        (
            "https://login.microsoftonline.com/t1/v2.0",
            None,
            "https://login.microsoftonline.com/t1/oauth2/authorize",
        ),
        ("https://dex.example.net", None, "https://dex.example.net"),
    ],
)
def test_where_a_client_gets_a_token(issuer: str | None, tenant: str | None, where: str) -> None:
    found = challenge(issuer, tenant, tokens.AUDIENCE)
    assert found == f"Bearer authorization_uri={where} resource_id={tokens.AUDIENCE}"


@given(st.binary(max_size=200), st.binary(max_size=200), st.text(max_size=40))
def test_any_text_is_a_token_or_is_refused(header: bytes, payload: bytes, tail: str) -> None:
    head = base64.urlsafe_b64encode(header).decode().rstrip("=")
    for text in (f"{head}.{tokens.part(payload)}.", f"{head}.{tail}", tail):
        with pytest.raises(StorageError) as caught:
            judge_claims(parse_token(text), tokens.SETTINGS, BLOB, NOW)
        assert caught.value.row.status in (400, 401)
