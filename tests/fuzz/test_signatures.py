"""Shared access signatures with every kind of error: forged, hostile, valid but odd."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, unquote

from hypothesis import given
from hypothesis import strategies as st

from tests.conformance.sas import account_sas, service_sas
from tests.effort import examples, pairs
from tests.fuzz.channel import Channel, FuzzRequest
from tests.fuzz.requests import HOSTILE, INJECTION, words
from tests.fuzz.stock import BODY

FIELDS = (
    "sv", "sr", "sp", "st", "se", "si", "sip", "spr", "ss", "srt", "sig", "ses", "sdd", "skoid",
    "sktid", "skt", "ske", "sks", "skv", "saoid", "suoid", "scid", "rscc", "rscd", "rsce", "rscl",
    "rsct", "tn", "spk", "snapshot", "versionid", "api-version", "SIG", "Sv",
)  # fmt: skip
OVERRIDES = ("rscc", "rscd", "rsce", "rscl", "rsct")


def ask(channel: Channel, method: str, token: str, blob: str = "plain") -> int:
    target = f"/{channel.credential.account}/fuzz-a/{blob}?{token}"
    headers = (("x-ms-blob-type", "BlockBlob"),)
    return channel.ask(FuzzRequest(method, target, headers, scheme=None)).status


def signed(channel: Channel, field: str, value: str) -> str:
    """A token for one blob with this in one of its fields."""
    fields: dict[str, Any] = {field: value}
    return service_sas(channel.credential, "fuzz-a", "plain", **fields)


def test_each_field_with_each_hostile_value(stocked: Channel) -> None:
    """Unsigned: whatever is changed, nothing is given away."""
    for make in (service_sas, account_sas):
        args = ("fuzz-a",) if make is service_sas else ()
        token = make(stocked.credential, *args)
        assert ask(stocked, "GET", token) == 200
        whole = dict(pair.partition("=")[::2] for pair in token.split("&"))
        for field, value in pairs(FIELDS, (*HOSTILE, INJECTION)):
            if unquote(whole.get(field, "")) == value:
                continue
            changed = {**whole, field: quote(value, safe="")}
            sent = "&".join(f"{name}={text}" for name, text in changed.items())
            status = ask(stocked, "GET", sent)
            # The account's token does not sign the overrides, and ignores them.
            if field in whole or (make is service_sas and field in OVERRIDES):
                assert status != 200, sent


@examples(300)
@given(
    field=st.sampled_from([*OVERRIDES, "st", "se", "sip", "spr", "si", "sp", "ses"]), value=words
)
def test_signed_hostile_values(stocked: Channel, field: str, value: str) -> None:
    """A client with the key has signed these values, but they are hostile."""
    token = signed(stocked, field, value)
    for method in ("GET", "HEAD", "PUT"):
        ask(stocked, method, token)


def test_overrides_that_nobody_signed_count_for_nothing(stocked: Channel) -> None:
    token = account_sas(stocked.credential) + "&rscc=planted&rsct=planted&rscd=planted"
    target = f"/{stocked.credential.account}/fuzz-a/plain?{token}"
    got = stocked.ask(FuzzRequest("GET", target, scheme=None))
    assert got.status == 200 and "planted" not in dict(got.headers).values()


def test_overrides_never_add_a_header(stocked: Channel) -> None:
    for field in OVERRIDES:
        for value in (*HOSTILE, INJECTION, "\r\nX-Injected: yes", "a\nX-Injected: yes", "\0"):
            token = signed(stocked, field, value)
            target = f"/{stocked.credential.account}/fuzz-a/plain?{token}"
            got = stocked.ask(FuzzRequest("GET", target, scheme=None))
            assert got.status != 200 or got.body == BODY


@examples(300)
@given(
    token=st.lists(st.tuples(st.sampled_from(FIELDS), words), max_size=8),
    method=st.sampled_from(["GET", "HEAD", "PUT", "DELETE"]),
)
def test_random_tokens(stocked: Channel, token: list[tuple[str, str]], method: str) -> None:
    query = "&".join(f"{name}={quote(value, safe='')}" for name, value in [*token, ("sig", "AA==")])
    assert ask(stocked, method, query) >= 400
