"""The parameters of a SAS: malformed ones, and their exact refusals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.auth import sas
from strongroom.auth.claims import Anonymous
from strongroom.auth.request import Service
from strongroom.auth.sas import PARAMETERS, Sas, decode_query, is_sas, parse_sas, token_of
from strongroom.errors.core import (
    AUTHENTICATION_FAILED,
    INVALID_QUERY_PARAMETER_VALUE,
    ErrorCode,
    StorageError,
)
from tests.auth.signing import NAME, claim_of, refused, request

BASE = {"sv": "2021-12-02", "sr": "b", "sp": "r", "se": "2099-01-01", "sig": "s"}
ACCOUNT = {"sv": "2021-12-02", "ss": "b", "srt": "sco", "sp": "r", "se": "2099-01-01", "sig": "s"}
DELEGATION = {
    **BASE,
    "skoid": "o",
    "sktid": "t",
    "skt": "2020-01-01",
    "ske": "2099-01-01",
    "sks": "b",
    "skv": "2021-12-02",
}


def _parse(fields: dict[str, str], service: Service = Service.BLOB) -> Sas:
    return parse_sas(tuple(fields.items()), service)


def test_all_parameters_are_read_and_others_passed_over() -> None:
    assert _parse({**BASE, "comp": "list", "SIP": "1.2.3.4"}) == Sas(
        sv="2021-12-02", sr="b", sp="r", se="2099-01-01", sig="s", sip="1.2.3.4"
    )


@pytest.mark.parametrize(
    ("base", "changed", "says"),
    [
        (BASE, {"sig": ""}, "no signature"),
        (BASE, {"sv": "latest"}, "sv='latest'"),
        (BASE, {"sv": "2021-12-2"}, "sv="),
        (BASE, {"se": "tomorrow"}, "se='tomorrow'"),
        (BASE, {"se": "2099-13-01"}, "se="),
        (BASE, {"st": "2020-01-01T00:00:00+01:00"}, "st="),
        (BASE, {"sip": "1.2.3"}, "sip="),
        (BASE, {"sip": "1.2.3.4-"}, "sip="),
        (BASE, {"sip": "1.2.3.5-1.2.3.4"}, "sip="),
        (BASE, {"sip": "::1"}, "sip="),
        (BASE, {"sip": "10.0.0.0/8"}, "sip="),
        (BASE, {"spr": "http"}, "spr='http'"),
        (BASE, {"spr": "https, http"}, "spr="),
        (BASE, {"spr": "http,https,http"}, "spr="),
        (BASE, {"sr": ""}, "sr=''"),
        (BASE, {"sr": "q"}, "sr='q'"),
        (BASE, {"sr": "bs", "sv": "2018-03-28"}, "sv=2018-11-09"),
        (BASE, {"sr": "bv", "sv": "2018-03-28"}, "sv=2018-11-09"),
        (BASE, {"sr": "d", "sdd": "1", "sv": "2019-12-12"}, "sv=2020-02-10"),
        (BASE, {"sr": "d"}, "sdd=''"),
        (BASE, {"sr": "d", "sdd": "-1"}, "sdd='-1'"),
        (BASE, {"sp": "rz"}, "'z' is none of"),
        (BASE, {"sp": "rwr"}, "repeated"),
        (BASE, {"sp": "c", "sv": "2015-02-21"}, "sv=2015-04-05"),
        (BASE, {"sp": "x", "sv": "2019-07-07"}, "sv=2019-12-12"),
        (BASE, {"sp": "t", "sv": "2019-07-07"}, "sv=2019-12-12"),
        (BASE, {"sp": "y", "sv": "2019-12-12"}, "sv=2020-02-10"),
        (BASE, {"sp": "m", "sv": "2019-12-12"}, "sv=2020-02-10"),
        (BASE, {"sp": "e", "sv": "2019-12-12"}, "sv=2020-02-10"),
        (BASE, {"sp": "o", "sv": "2019-12-12"}, "sv=2020-02-10"),
        (BASE, {"sp": "i", "sv": "2020-04-08"}, "sv=2020-06-12"),
        (BASE, {"rscd": "a\r\nSet-Cookie: b"}, "control character"),
        (BASE, {"si": "a\nb"}, "control character"),
        (ACCOUNT, {"ss": ""}, "needs both"),
        (ACCOUNT, {"srt": ""}, "needs both"),
        (ACCOUNT, {"ss": "x"}, "ss='x'"),
        (ACCOUNT, {"ss": "bb"}, "repeated"),
        (ACCOUNT, {"srt": "z"}, "srt='z'"),
        (ACCOUNT, {"sp": "rr"}, "repeated"),
        (ACCOUNT, {"sp": "q"}, "'q' is none of"),
        (ACCOUNT, {"sv": "2015-02-21"}, "2015-04-05"),
        (ACCOUNT, {"sv": ""}, "2015-04-05"),
        (ACCOUNT, {"si": "policy"}, "cannot have it"),
        (ACCOUNT, {"skoid": "o"}, "cannot have it"),
        (DELEGATION, {"si": "policy"}, "cannot have it"),
        (DELEGATION, {"sv": "2018-03-28"}, "2018-11-09"),
        (DELEGATION, {"sktid": ""}, "sktid"),
        (DELEGATION, {"skt": ""}, "skt"),
        (DELEGATION, {"skt": "soon"}, "skt='soon'"),
        (DELEGATION, {"ske": ""}, "ske"),
        (DELEGATION, {"sks": ""}, "sks"),
        (DELEGATION, {"skv": ""}, "skv"),
    ],
)
def test_what_is_malformed(base: dict[str, str], changed: dict[str, str], says: str) -> None:
    _parse(base)
    with pytest.raises(StorageError) as caught:
        _parse({**base, **changed})
    assert says in refused(caught, AUTHENTICATION_FAILED)


@pytest.mark.parametrize(
    ("service", "changed", "says"),
    [
        (Service.QUEUE, {"sr": "b"}, "sr='b'"),
        (Service.QUEUE, {"sr": "", "sp": "rw"}, "'w' is none of"),
        (Service.TABLE, {"sr": "", "tn": ""}, "tn"),
        (Service.TABLE, {"sr": "", "tn": "t", "srk": "1"}, "srk"),
        (Service.TABLE, {"sr": "", "tn": "t", "erk": "1"}, "erk"),
        (Service.TABLE, {"sr": "", "tn": "t", "sp": "rp"}, "'p' is none of"),
        (Service.FILE, {"sr": "b"}, "sr='b'"),
        (Service.FILE, {"sr": "s", "sp": "ra"}, "'a' is none of"),
        (Service.FILE, {"sr": "s", "sv": "2014-02-14"}, "2015-02-21"),
    ],
)
def test_what_is_malformed_elsewhere(service: Service, changed: dict[str, str], says: str) -> None:
    with pytest.raises(StorageError) as caught:
        _parse({**BASE, **changed}, service)
    assert says in refused(caught, AUTHENTICATION_FAILED)


@pytest.mark.parametrize("letters", ["racwdxyltfmeopi", "ipoemftlyxdwcar", "rwl", ""])
def test_letters_in_any_order(letters: str) -> None:
    assert _parse({**BASE, "sp": letters}).sp == letters


@pytest.mark.parametrize("name", ["sp", "sig", "sv", "SE", "rscc", "tn"])
def test_a_parameter_given_twice(name: str) -> None:
    pairs = (*BASE.items(), (name, "x"), (name.lower(), "x"))
    with pytest.raises(StorageError) as caught:
        parse_sas(pairs, Service.BLOB)
    refused(caught, INVALID_QUERY_PARAMETER_VALUE)
    extras = dict(caught.value.extras)
    assert extras["QueryParameterName"] == name.lower()
    assert extras["Reason"] == "It is given more than once."


@pytest.mark.parametrize(
    ("query", "meant"),
    [
        ("sig=x", True),
        ("SIG=", True),
        ("sv=2021-12-02", True),
        ("sp=r&se=2099-01-01", True),
        ("comp=list&restype=container", False),
        ("se=1", False),
        ("", False),
    ],
)
def test_what_is_meant_as_a_sas(query: str, meant: bool) -> None:
    assert is_sas(query) is meant


@pytest.mark.parametrize("more", ["a=%2B&" * 1000, "a=%2B&" * 40, "a=%2B&a=" + "x" * 1024])
def test_only_short_queries_are_remembered(more: str) -> None:
    short, long = "sig=x&a=%2B", "sig=x&" + more
    assert decode_query(short) is decode_query(short)
    assert decode_query(long) is not decode_query(long), "anybody can send as many as he likes"
    assert decode_query(long)[:2] == decode_query(short)
    kept = sas._is_sas_remembered.cache_info().currsize
    assert is_sas(long)
    assert sas._is_sas_remembered.cache_info().currsize == kept


@pytest.mark.parametrize("query", ["?sv=2021-12-02&sr=b&sp=r&se=2099-01-01", "?sp=r&se=2099-01-01"])
def test_a_sas_without_its_signature_is_not_anonymous(query: str) -> None:
    with pytest.raises(StorageError) as caught:
        claim_of(request("GET", f"/c1/b1{query}"))
    assert "no signature" in refused(caught, AUTHENTICATION_FAILED)


def test_no_credentials() -> None:
    assert claim_of(request("GET", "/c1/b1?comp=metadata")) == Anonymous(NAME)


def test_the_signature_is_in_no_repr() -> None:
    assert "secret" not in repr(_parse({**BASE, "sig": "secret"}))


@given(
    st.lists(
        st.tuples(
            st.sampled_from([*Sas.__struct_fields__, "comp"]),
            st.one_of(
                st.text(max_size=8),
                st.sampled_from(["b", "c", "d", "r", "2020-12-06", "2099-01-01", "sco", "1"]),
            ),
        ),
        max_size=12,
    ),
    st.sampled_from(Service),
)
def test_no_input_raises_anything_but_a_refusal(
    pairs: list[tuple[str, str]], service: Service
) -> None:
    rows: list[ErrorCode] = []
    try:
        assert parse_sas(pairs, service).sig
    except StorageError as refusal:
        rows.append(refusal.row)
    assert set(rows) <= {AUTHENTICATION_FAILED, INVALID_QUERY_PARAMETER_VALUE}


@pytest.mark.parametrize(
    ("query", "token"),
    [
        ("", ""),
        ("sv=1&sig=y", "sv=1&sig=y"),
        ("comp=block&sv=1&blockid=x%3D&sig=y", "sv=1&sig=y"),
        ("SV=1&popreceipt=a&%73ig=y&Sig=z", "SV=1&%73ig=y&Sig=z"),
        ("sig&timeout&=&", "sig"),
        ("s\xefg=1&a=b", "s\xefg=1"),
    ],
)
def test_what_can_be_of_a_token_is_told_from_what_cannot(query: str, token: str) -> None:
    assert token_of(query) == token
    assert list(filter(_is_of_token, decode_query(query))) == list(
        filter(_is_of_token, decode_query(token))
    )


def _is_of_token(pair: tuple[str, str]) -> bool:
    return pair[0].lower() in PARAMETERS
