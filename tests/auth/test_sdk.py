"""Requests signed by the official library are accepted, and no changed character is."""

from __future__ import annotations

import string
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from azure.storage.blob import generate_account_sas, generate_blob_sas, generate_container_sas
from hypothesis import assume, given
from hypothesis import strategies as st

from strongroom.auth.authorize import Permission, authorize
from strongroom.auth.claims import Anonymous, SasClaim, SasKind
from strongroom.auth.request import Service, Target
from strongroom.auth.sas import decode_query, parse_sas
from strongroom.auth.sas_signature import verify_signature
from strongroom.errors.core import StorageError
from strongroom.values import PublicAccess, ticks_of
from strongroom.wire.core.http import Request
from tests.auth.signing import (
    ACCOUNT,
    DATE,
    KEY,
    NAME,
    SECOND_KEY,
    claim_of,
    is_owner,
    request,
    sdk_authorization,
)

WORD = st.text(string.ascii_lowercase + string.digits, min_size=1, max_size=8)
# White space inside a value is kept, around it HTTP strips it.
VALUE = st.text(string.ascii_letters + string.digits + " ;=/\"'+%é", max_size=12).map(str.strip)
TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=10)
STANDARD = (
    "Content-Encoding",
    "Content-Language",
    "Content-Length",
    "Content-MD5",
    "Content-Type",
    "Date",
    "If-Modified-Since",
    "If-Match",
    "If-None-Match",
    "If-Unmodified-Since",
)
HEADERS = st.dictionaries(
    st.one_of(
        st.sampled_from(STANDARD),
        st.text(string.ascii_lowercase + string.digits + "_-", min_size=1, max_size=6).map(
            lambda name: f"x-ms-meta-{name}"
        ),
        WORD.map(lambda name: f"unsigned-{name}"),
    ),
    VALUE,
    max_size=8,
)
# The signer of the SDK keeps the last of repeated parameters: names are distinct, as it sends them.
QUERY = st.dictionaries(WORD, TEXT, max_size=4)
PATH = st.lists(TEXT.filter(lambda text: text not in (".", "..")), min_size=1, max_size=3)


def _url(path: list[str], query: dict[str, str], safe: str = "~") -> str:
    encoded = "/".join(quote(piece, safe=safe) for piece in path)
    pairs = "&".join(f"{name}={quote(value, safe=safe)}" for name, value in query.items())
    return f"http://127.0.0.1:10000/{NAME}/{encoded}" + (f"?{pairs}" if pairs else "")


def _signed(method: str, url: str, headers: dict[str, str], key: str = KEY) -> Request:
    parts = urlsplit(url)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    fields = {**headers, "Authorization": sdk_authorization(method, url, headers, key)}
    return request(method, target, fields.items())


def _headers(headers: dict[str, str]) -> dict[str, str]:
    return {**headers, "x-ms-date": DATE, "x-ms-version": "2026-10-06"}


@given(
    st.sampled_from(["GET", "PUT", "DELETE", "HEAD", "POST"]),
    PATH,
    QUERY,
    HEADERS,
    st.sampled_from([KEY, SECOND_KEY]),
    st.sampled_from(["", "~/", "+/:@!"]),
)
def test_its_requests_are_accepted(
    method: str,
    path: list[str],
    query: dict[str, str],
    headers: dict[str, str],
    key: str,
    safe: str,
) -> None:
    sent = _signed(method, _url(path, query, safe), _headers(headers), key)
    assert is_owner(claim_of(sent))


SIGNED = st.dictionaries(
    st.one_of(
        # Content-Length is apart: a change to and from 0 is none, which its own test says.
        st.sampled_from([name for name in STANDARD if name not in ("Content-Length", "Date")]),
        WORD.map(lambda name: f"x-ms-meta-{name}"),
    ),
    st.text(string.ascii_letters, min_size=1, max_size=6),
    min_size=1,
    max_size=5,
)


@given(PATH, st.dictionaries(WORD, st.text(string.ascii_letters, max_size=6)), SIGNED, st.data())
def test_no_character_may_change(
    path: list[str], query: dict[str, str], headers: dict[str, str], data: st.DataObject
) -> None:
    url = _url(path, query)
    genuine = _signed("PUT", url, _headers(headers))
    assert is_owner(claim_of(genuine))
    where = data.draw(st.sampled_from(["method", "target", *headers, "x-ms-version", "signature"]))
    fields = dict(genuine.headers.fields)
    method, target = genuine.method, genuine.target
    if where == "method":
        method = "POST"
    elif where == "target":
        target = _with_one_other(target, data, first=1)
        assume("+" not in target and "%" not in target)
        # Without these, a parameter changes into the same parameter: `a` into `a=`.
        assume(sorted(_pairs(target)) != sorted(_pairs(genuine.target)))
    elif where == "signature":
        start = len(f"SharedKey {NAME}:")
        fields["Authorization"] = _with_one_other(fields["Authorization"], data, first=start)
    else:
        fields[where] = _with_one_other(fields[where], data, first=0)
    with pytest.raises(StorageError):
        claim_of(request(method, target, fields.items()))


def _with_one_other(text: str, data: st.DataObject, first: int) -> str:
    index = data.draw(st.integers(first, len(text) - 1))
    # The case of a parameter's name is not signed, so letters change into other letters.
    other = data.draw(st.sampled_from("abcXYZ019/=&?").filter(lambda c: c.lower() != text[index]))
    assume(other.lower() != text[index].lower())
    return text[:index] + other + text[index + 1 :]


def _pairs(target: str) -> list[tuple[str, str]]:
    path, _, query = target.partition("?")
    cut = (piece.partition("=") for piece in query.split("&") if piece)
    return [("/", path), *((name.lower(), value) for name, _, value in cut)]


EXPIRY = datetime(2026, 1, 1, tzinfo=UTC)
NOW = ticks_of(EXPIRY - timedelta(days=1))
OPTION = st.one_of(st.none(), TEXT)
COMMON = st.fixed_dictionaries(
    {
        "expiry": st.just(EXPIRY),
        "start": st.one_of(st.none(), st.just(EXPIRY - timedelta(days=2))),
        "ip": st.sampled_from([None, "127.0.0.1", "127.0.0.0-127.0.0.9"]),
        "protocol": st.sampled_from([None, "https,http"]),
        "encryption_scope": st.sampled_from([None, "scope"]),
    }
)
OVERRIDES = st.fixed_dictionaries(
    {
        "cache_control": OPTION,
        "content_disposition": OPTION,
        "content_encoding": OPTION,
        "content_language": OPTION,
        "content_type": OPTION,
    }
)
TIME = "2020-01-02T03:04:05.1234567Z"
READ = Permission(sas=("r",), account_sas=("o", ("r",)))


def _accepted(sent: Request, target: Target) -> SasClaim:
    claim = claim_of(sent, target)
    assert isinstance(claim, SasClaim)
    grant = authorize(
        claim, READ, target, PublicAccess.NONE, (), NOW, "127.0.0.1", False, "2026-10-06"
    )
    assert "r" in grant.letters
    return claim


@given(
    name=TEXT.filter(bool),
    letters=st.sampled_from(["r", "racwdxytmei", "rw"]),
    common=COMMON,
    overrides=OVERRIDES,
    which=st.sampled_from([{}, {"snapshot": TIME}, {"version_id": TIME}]),
    key=st.sampled_from([KEY, SECOND_KEY]),
)
def test_its_blob_tokens_verify(
    name: str,
    letters: str,
    common: dict[str, Any],
    overrides: dict[str, Any],
    which: dict[str, Any],
    key: str,
) -> None:
    token = generate_blob_sas(
        NAME, "c1", name, account_key=key, permission=letters, **common, **overrides, **which
    )
    target = Target(Service.BLOB, NAME, "c1", name, **which)
    claim = _accepted(request("GET", f"/{NAME}/c1/x?{token}"), target)
    assert claim.kind is SasKind.SERVICE
    assert claim.sas.rscd == (overrides["content_disposition"] or "")
    assert claim.sas.rsct == (overrides["content_type"] or "")


@given(
    letters=st.sampled_from(["r", "racwdxyltfmei"]),
    common=COMMON,
    overrides=OVERRIDES,
    blob=st.one_of(st.none(), TEXT),
)
def test_its_container_tokens_verify(
    letters: str, common: dict[str, Any], overrides: dict[str, Any], blob: str | None
) -> None:
    token = generate_container_sas(
        NAME, "c1", account_key=KEY, permission=letters, **common, **overrides
    )
    target = Target(Service.BLOB, NAME, "c1", blob)
    claim = _accepted(request("GET", f"/{NAME}/c1?restype=container&{token}"), target)
    assert claim.sas.sr == "c"


@given(
    letters=st.sampled_from(["r", "rwdxylacuptfi", "rwdlacup"]),
    types=st.sampled_from(["o", "sco", "co"]),
    services=st.sampled_from(["b", "bqtf", "bf"]),
    common=COMMON,
)
def test_its_account_tokens_verify(
    letters: str, types: str, services: str, common: dict[str, Any]
) -> None:
    token = generate_account_sas(NAME, KEY, types, letters, services=services, **common)
    target = Target(Service.BLOB, NAME, "c9", "any/blob")
    claim = _accepted(request("GET", f"/{NAME}/c9/any/blob?{token}"), target)
    assert claim.kind is SasKind.ACCOUNT


@given(
    st.data(),
    st.sampled_from(["blob", "container", "account"]),
)
def test_no_character_of_a_token_may_change(data: st.DataObject, kind: str) -> None:
    until: dict[str, Any] = {
        "expiry": EXPIRY,
        "start": EXPIRY - timedelta(days=2),
        "ip": "10.0.0.1-10.0.0.9",
    }
    if kind == "account":
        token = generate_account_sas(NAME, KEY, "sco", "rwdl", **until)
    elif kind == "container":
        token = generate_container_sas(NAME, "c1", account_key=KEY, permission="rl", **until)
    else:
        token = generate_blob_sas(
            NAME, "c1", "b1", account_key=KEY, permission="rw", content_type="text", **until
        )
    changed = _with_one_other(token, data, first=0)
    assume(_same_after_decoding(token) != _same_after_decoding(changed))
    with pytest.raises(StorageError):
        claim_of(request("GET", f"/{NAME}/c1/b1?{changed}"))


def _same_after_decoding(token: str) -> list[tuple[str, str]]:
    """Return a token in the form for comparison: a space in base64 can only have been a plus."""
    pairs = ((name.lower(), value) for name, value in decode_query(token))
    return sorted((n, value.replace(" ", "+") if n == "sig" else value) for n, value in pairs)


class _DelegationKey:
    signed_oid = "11111111-1111-1111-1111-111111111111"
    signed_tid = "22222222-2222-2222-2222-222222222222"
    signed_start = "2025-12-25T00:00:00Z"
    signed_expiry = "2026-01-01T00:00:00Z"
    signed_service = "b"
    signed_version = "2026-04-06"
    signed_delegated_user_tid: str | None = None
    value = SECOND_KEY


@given(
    common=COMMON,
    overrides=OVERRIDES,
    users=st.fixed_dictionaries(
        {
            "preauthorized_agent_object_id": st.sampled_from([None, "agent"]),
            "correlation_id": st.sampled_from([None, "correlation"]),
            "user_delegation_oid": st.sampled_from([None, "oid"]),
        }
    ),
    signed_headers=st.dictionaries(WORD.map(lambda name: f"x-ms-{name}"), WORD, max_size=3),
    signed_query=st.dictionaries(WORD.map(lambda name: f"q{name}"), WORD, max_size=3),
)
def test_its_user_delegation_tokens_verify(
    common: dict[str, Any],
    overrides: dict[str, Any],
    users: dict[str, Any],
    signed_headers: dict[str, str],
    signed_query: dict[str, str],
) -> None:
    key: Any = _DelegationKey()
    token = generate_blob_sas(
        NAME,
        "c1",
        "b1",
        user_delegation_key=key,
        permission="r",
        request_headers=signed_headers,
        request_query_params=signed_query,
        **common,
        **overrides,
        **users,
    )
    query = "&".join([token, *(f"{name}={value}" for name, value in signed_query.items())])
    sent = request("GET", f"/c1/b1?{query}", signed_headers.items())
    target = Target(Service.BLOB, NAME, "c1", "b1")
    pairs = decode_query(sent.query)
    claim = verify_signature(
        parse_sas(pairs, Service.BLOB), ACCOUNT, target, (ACCOUNT.keys[1],), sent.headers, pairs
    )
    assert claim.kind is SasKind.USER_DELEGATION


@given(
    target=st.text(st.characters(max_codepoint=255), max_size=60),
    fields=st.lists(
        st.tuples(
            st.sampled_from(
                ["Authorization", "x-ms-date", "Date", "x-ms-version", "x-ms-a", "Range"]
            ),
            st.one_of(
                st.text(st.characters(max_codepoint=255), max_size=30),
                st.sampled_from([DATE, f"SharedKey {NAME}:abc", f"SharedKeyLite {NAME}:abc"]),
            ),
        ),
        max_size=6,
    ),
    service=st.sampled_from(Service),
)
def test_no_request_raises_anything_but_a_refusal(
    target: str, fields: list[tuple[str, str]], service: Service
) -> None:
    sent = request("GET", target, fields)
    statuses: list[int] = []
    try:
        assert claim_of(sent, Target(service, NAME, "c1")) == Anonymous(NAME)
    except StorageError as refusal:
        statuses.append(refusal.row.status)
    else:
        assert sent.headers.get("authorization") is None
    assert set(statuses) <= {400, 403}
