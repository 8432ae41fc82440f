"""The string to sign of every generation, written out, and the limits of a valid token."""

from __future__ import annotations

import base64

import pytest

from strongroom.auth.claims import SasClaim, SasKind
from strongroom.auth.request import Service, Target
from strongroom.auth.sas import Sas, parse_sas
from strongroom.auth.sas_signature import string_to_sign, verify_signature
from strongroom.errors.core import AUTHENTICATION_FAILED, StorageError
from strongroom.wire.core.http import Headers
from tests.auth.signing import (
    ACCOUNT,
    BLOB,
    CONTAINER,
    KEY,
    NAME,
    SECOND_KEY,
    claim_of,
    refused,
    request,
    signature,
    token,
)

UDK = {"skoid": "OID", "sktid": "TID", "skt": "KT", "ske": "KE", "sks": "KS", "skv": "KV"}
EVERY = {
    "sp": "SP",
    "st": "ST",
    "se": "SE",
    "si": "SI",
    "sip": "SIP",
    "spr": "SPR",
    "ses": "SES",
    "rscc": "CC",
    "rscd": "CD",
    "rsce": "CE",
    "rscl": "CL",
    "rsct": "CT",
}
RANGE = {"tn": "T1", "spk": "SPK", "srk": "SRK", "epk": "EPK", "erk": "ERK"}
USERS = {"saoid": "SA", "suoid": "SU", "scid": "SC", "skdutid": "DT", "sduoid": "DO"}
SNAPSHOT = Target(Service.BLOB, NAME, "c1", "b1", snapshot="TIME")
VERSIONED = Target(Service.BLOB, NAME, "c1", "b1", version_id="TIME")
QUEUE = Target(Service.QUEUE, NAME, "q1")
TABLE = Target(Service.TABLE, NAME, "T1")
FILE = Target(Service.FILE, NAME, "s1", "d/f")

# (sv, sr, target, expected: lines separated by spaces, "." = an empty line)
SERVICE_ROWS = [
    ("", "b", BLOB, "SP ST SE /{a}/c1/b1 SI"),
    ("2011-08-18", "c", BLOB, "SP ST SE /{a}/c1 SI"),
    ("2012-02-12", "b", BLOB, "SP ST SE /{a}/c1/b1 SI 2012-02-12"),
    ("2013-08-15", "b", BLOB, "SP ST SE /{a}/c1/b1 SI 2013-08-15 CC CD CE CL CT"),
    ("2014-02-14", "c", CONTAINER, "SP ST SE /{a}/c1 SI 2014-02-14 CC CD CE CL CT"),
    ("2015-02-21", "b", BLOB, "SP ST SE /blob/{a}/c1/b1 SI 2015-02-21 CC CD CE CL CT"),
    ("2015-04-05", "b", BLOB, "SP ST SE /blob/{a}/c1/b1 SI SIP SPR 2015-04-05 CC CD CE CL CT"),
    ("2018-03-28", "c", BLOB, "SP ST SE /blob/{a}/c1 SI SIP SPR 2018-03-28 CC CD CE CL CT"),
    ("2018-11-09", "b", BLOB, "SP ST SE /blob/{a}/c1/b1 SI SIP SPR 2018-11-09 b . CC CD CE CL CT"),
    (
        "2020-10-02",
        "bs",
        SNAPSHOT,
        "SP ST SE /blob/{a}/c1/b1 SI SIP SPR 2020-10-02 bs TIME CC CD CE CL CT",
    ),
    (
        "2020-12-06",
        "bv",
        VERSIONED,
        "SP ST SE /blob/{a}/c1/b1 SI SIP SPR 2020-12-06 bv TIME SES CC CD CE CL CT",
    ),
    (
        "2099-01-01",
        "c",
        SNAPSHOT,
        "SP ST SE /blob/{a}/c1 SI SIP SPR 2099-01-01 c . SES CC CD CE CL CT",
    ),
    ("2012-02-12", "", QUEUE, "SP ST SE /{a}/q1 SI 2012-02-12"),
    ("2015-02-21", "", QUEUE, "SP ST SE /queue/{a}/q1 SI 2015-02-21"),
    ("2015-04-05", "", QUEUE, "SP ST SE /queue/{a}/q1 SI SIP SPR 2015-04-05"),
    ("2026-10-06", "", QUEUE, "SP ST SE /queue/{a}/q1 SI SIP SPR 2026-10-06"),
    ("2012-02-12", "", TABLE, "SP ST SE /{a}/t1 SI 2012-02-12 SPK SRK EPK ERK"),
    ("2015-02-21", "", TABLE, "SP ST SE /table/{a}/t1 SI 2015-02-21 SPK SRK EPK ERK"),
    ("2026-10-06", "", TABLE, "SP ST SE /table/{a}/t1 SI SIP SPR 2026-10-06 SPK SRK EPK ERK"),
    ("2015-02-21", "f", FILE, "SP ST SE /file/{a}/s1/d/f SI 2015-02-21 CC CD CE CL CT"),
    ("2015-04-05", "s", FILE, "SP ST SE /file/{a}/s1 SI SIP SPR 2015-04-05 CC CD CE CL CT"),
    ("2026-10-06", "f", FILE, "SP ST SE /file/{a}/s1/d/f SI SIP SPR 2026-10-06 CC CD CE CL CT"),
]
HEAD = "SP ST SE /blob/{a}/c1/b1 OID TID KT KE KS KV"
DELEGATION_ROWS = [
    ("2018-11-09", "b", BLOB, HEAD + " SIP SPR 2018-11-09 b . CC CD CE CL CT"),
    ("2020-02-10", "b", BLOB, HEAD + " SA SU SC SIP SPR 2020-02-10 b . CC CD CE CL CT"),
    (
        "2020-12-06",
        "bs",
        SNAPSHOT,
        HEAD + " SA SU SC SIP SPR 2020-12-06 bs TIME SES CC CD CE CL CT",
    ),
    (
        "2025-07-05",
        "bv",
        VERSIONED,
        HEAD + " SA SU SC DT DO SIP SPR 2025-07-05 bv TIME SES CC CD CE CL CT",
    ),
    (
        "2026-04-06",
        "b",
        BLOB,
        HEAD + " SA SU SC DT DO SIP SPR 2026-04-06 b . SES . . CC CD CE CL CT",
    ),
    (
        "2026-04-06",
        "",
        QUEUE,
        "SP ST SE /queue/{a}/q1 OID TID KT KE KS KV DT DO SIP SPR 2026-04-06",
    ),
    (
        "2026-04-06",
        "f",
        FILE,
        "SP ST SE /file/{a}/s1/d/f OID TID KT KE KS KV DT DO SIP SPR 2026-04-06 CC CD CE CL CT",
    ),
]


def _lines(text: str) -> str:
    return "\n".join("" if line == "." else line for line in text.format(a=NAME).split(" "))


@pytest.mark.parametrize(("sv", "sr", "target", "expected"), SERVICE_ROWS)
def test_every_generation_of_the_service_sas(
    sv: str, sr: str, target: Target, expected: str
) -> None:
    sas = Sas(sv=sv, sr=sr, sig="s", **EVERY, **RANGE)
    assert string_to_sign(sas, target) == _lines(expected)


@pytest.mark.parametrize(("sv", "sr", "target", "expected"), DELEGATION_ROWS)
def test_every_generation_of_the_user_delegation_sas(
    sv: str, sr: str, target: Target, expected: str
) -> None:
    sas = Sas(sv=sv, sr=sr, sig="s", **{**EVERY, "si": ""}, **UDK, **USERS)
    assert string_to_sign(sas, target) == _lines(expected)


def test_signed_headers_and_parameters_of_the_user_delegation_sas() -> None:
    sas = Sas(sv="2026-04-06", sr="b", sig="s", **UDK, srh="x-ms-a,Foo", srq="q1,q2")
    headers = Headers([("X-Ms-A", "1"), ("foo", "2")])
    text = string_to_sign(sas, BLOB, headers, (("q1", "3"), ("q2", "4")))
    assert text.endswith("\nb\n\n\nx-ms-a:1\nFoo:2\n\n\nq1:3\nq2:4\n\n\n\n\n")


def test_a_signed_parameter_is_found_in_any_case_since_operations_read_it_so() -> None:
    sas = Sas(sv="2026-04-06", sr="c", sig="s", **UDK, srq="prefix")
    absent = string_to_sign(sas, CONTAINER, None, ())
    assert string_to_sign(sas, CONTAINER, None, (("Prefix", "other"),)) != absent


@pytest.mark.parametrize("again", ["include", "Include"])
def test_a_signed_parameter_that_comes_twice_is_refused(again: str) -> None:
    sas = Sas(sv="2026-04-06", sr="c", sig="s", **UDK, srq="include")
    with pytest.raises(StorageError) as caught:
        string_to_sign(sas, CONTAINER, None, (("include", "metadata"), (again, "deleted")))
    assert "'include' is signed (srq)" in refused(caught, AUTHENTICATION_FAILED)


@pytest.mark.parametrize(
    ("sv", "expected"),
    [
        ("2015-04-05", "{a} SP SS SRT ST SE SIP SPR 2015-04-05 ."),
        ("2020-10-02", "{a} SP SS SRT ST SE SIP SPR 2020-10-02 ."),
        ("2020-12-06", "{a} SP SS SRT ST SE SIP SPR 2020-12-06 SES ."),
        ("2026-10-06", "{a} SP SS SRT ST SE SIP SPR 2026-10-06 SES ."),
    ],
)
def test_every_generation_of_the_account_sas(sv: str, expected: str) -> None:
    sas = Sas(sv=sv, sig="s", ss="SS", srt="SRT", **EVERY)
    assert string_to_sign(sas, QUEUE) == _lines(expected)


@pytest.mark.parametrize(
    ("sas", "target"),
    [
        (Sas(sv="2011-08-18"), QUEUE),
        (Sas(sv="2011-08-18", tn="T1"), TABLE),
        (Sas(sv="2014-02-14", sr="f"), FILE),
        (Sas(sv="2021-12-02", skoid="o"), QUEUE),
        (Sas(sv="2026-04-06", skoid="o"), TABLE),
    ],
)
def test_kinds_that_a_version_does_not_know(sas: Sas, target: Target) -> None:
    with pytest.raises(StorageError) as caught:
        string_to_sign(sas, target)
    assert f"in sv='{sas.sv}'" in refused(caught, AUTHENTICATION_FAILED)


def _signed(fields: dict[str, str], target: Target, key: str = KEY) -> Sas:
    unsigned = parse_sas(tuple({**fields, "sig": "x"}.items()), target.service)
    sig = signature(string_to_sign(unsigned, target), key)
    return parse_sas(tuple({**fields, "sig": sig}.items()), target.service)


FIELDS = {"sv": "2021-12-02", "sr": "b", "sp": "r", "se": "2099-01-01"}


@pytest.mark.parametrize(("number", "key"), [(1, KEY), (2, SECOND_KEY)])
def test_both_keys_sign_and_the_claim_says_which(number: int, key: str) -> None:
    sas = _signed(FIELDS, BLOB, key)
    claim = SasClaim(NAME, SasKind.SERVICE, sas, BLOB, key=number)
    assert verify_signature(sas, ACCOUNT, BLOB) == claim


def test_another_key_does_not_and_the_detail_shows_the_string() -> None:
    with pytest.raises(StorageError) as caught:
        verify_signature(_signed(FIELDS, BLOB, "b3RoZXI="), ACCOUNT, BLOB)
    assert refused(caught, AUTHENTICATION_FAILED) == (
        "Signature did not match. String to sign used was "
        f"r\n\n2099-01-01\n/blob/{NAME}/c1/b1\n\n\n\n2021-12-02\nb\n\n\n\n\n\n\n"
    )


DEEP = Target(Service.BLOB, NAME, "c1", "a/b/c")
REACH = [
    ({"sr": "b"}, BLOB, True),
    ({"sr": "b"}, SNAPSHOT, False),
    ({"sr": "b"}, VERSIONED, False),
    ({"sr": "bs"}, SNAPSHOT, True),
    ({"sr": "bs"}, BLOB, False),
    ({"sr": "bs"}, VERSIONED, False),
    ({"sr": "bv"}, VERSIONED, True),
    ({"sr": "bv"}, BLOB, False),
    ({"sr": "bv"}, SNAPSHOT, False),
    ({"sr": "c"}, BLOB, True),
    ({"sr": "c"}, SNAPSHOT, True),
    ({"sr": "c"}, VERSIONED, True),
    ({"sr": "c"}, CONTAINER, True),
    ({"sr": "d", "sdd": "1"}, DEEP, True),
]


@pytest.mark.parametrize(("fields", "target", "reached"), REACH)
def test_which_urls_each_resource_reaches(
    fields: dict[str, str], target: Target, reached: bool
) -> None:
    sas = _signed({**FIELDS, **fields}, target)
    if reached:
        assert verify_signature(sas, ACCOUNT, target).sas is sas
        return
    with pytest.raises(StorageError) as caught:
        verify_signature(sas, ACCOUNT, target)
    assert f"sr={fields['sr']} reaches" in refused(caught, AUTHENTICATION_FAILED)


@pytest.mark.parametrize(
    ("fields", "signed_for", "used_for"),
    [
        ({"sr": "b"}, BLOB, DEEP),
        ({"sr": "b"}, BLOB, CONTAINER),
        ({"sr": "b"}, BLOB, Target(Service.BLOB, NAME, "c2", "b1")),
        ({"sr": "c"}, CONTAINER, Target(Service.BLOB, NAME, "c2", "b1")),
        ({"sr": "c"}, CONTAINER, Target(Service.BLOB, NAME)),
        ({"sr": "bs"}, SNAPSHOT, Target(Service.BLOB, NAME, "c1", "b1", snapshot="OTHER")),
        ({"sr": "d", "sdd": "2"}, DEEP, Target(Service.BLOB, NAME, "c1", "a/x/c")),
    ],
)
def test_a_token_for_something_else(
    fields: dict[str, str], signed_for: Target, used_for: Target
) -> None:
    sas = _signed({**FIELDS, **fields}, signed_for)
    with pytest.raises(StorageError) as caught:
        verify_signature(sas, ACCOUNT, used_for)
    assert "Signature did not match" in refused(caught, AUTHENTICATION_FAILED)


def test_the_directory_token_reaches_what_lies_in_it() -> None:
    sas = _signed({**FIELDS, "sr": "d", "sdd": "2"}, DEEP)
    for blob in ("a/b", "a/b/c", "a/b/d/e"):
        target = Target(Service.BLOB, NAME, "c1", blob)
        assert verify_signature(sas, ACCOUNT, target).target == target


def test_the_table_of_tn_is_the_table_of_the_url() -> None:
    fields = {"sv": "2021-12-02", "sp": "r", "se": "2099-01-01", "tn": "t1"}
    assert verify_signature(_signed(fields, TABLE), ACCOUNT, TABLE).target == TABLE
    with pytest.raises(StorageError) as caught:
        verify_signature(_signed({**fields, "tn": "t2"}, TABLE), ACCOUNT, TABLE)
    assert "another table" in refused(caught, AUTHENTICATION_FAILED)


def test_a_user_delegation_sas_needs_its_key() -> None:
    fields = {**FIELDS, **UDK, "skt": "2020-01-01", "ske": "2099-01-01"}
    key = base64.b64encode(b"delegated").decode()
    sas = _signed(fields, BLOB, key)
    claim = verify_signature(sas, ACCOUNT, BLOB, (b"delegated",))
    assert claim.kind is SasKind.USER_DELEGATION
    with pytest.raises(StorageError) as caught:
        verify_signature(sas, ACCOUNT, BLOB)
    assert "not known" in refused(caught, AUTHENTICATION_FAILED)
    # Signed with an account key instead of the delegated one: no way around the delegation.
    with pytest.raises(StorageError) as caught:
        verify_signature(_signed(fields, BLOB), ACCOUNT, BLOB, (b"delegated",))
    refused(caught, AUTHENTICATION_FAILED)


def _url(fields: dict[str, str], target: Target = BLOB) -> str:
    return f"/c1/b1?comp=x&{token(**fields, sig=_signed(fields, target).sig)}"


def test_the_token_in_the_url() -> None:
    sent = request("GET", _url(FIELDS))
    claim = claim_of(sent)
    assert isinstance(claim, SasClaim)
    assert (claim.sas.sp, claim.target) == ("r", BLOB)


def test_an_authorization_header_goes_before_the_token() -> None:
    sent = request("GET", _url(FIELDS), [("Authorization", f"SharedKey {NAME}:x")])
    with pytest.raises(StorageError) as caught:
        claim_of(sent)
    assert "x-ms-date" in refused(caught, AUTHENTICATION_FAILED)


def test_spaces_as_percent_20_or_as_plus() -> None:
    url = _url({**FIELDS, "rscd": "attachment; filename=a b"})
    assert "%20" in url
    for sent in (url, url.replace("%20", "+")):
        claim = claim_of(request("GET", sent))
        assert isinstance(claim, SasClaim)
        assert claim.sas.rscd == "attachment; filename=a b"


def test_a_plus_that_was_meant_and_a_signature_with_bare_plus() -> None:
    fields = {**FIELDS, "rscd": "a+b"}
    for number in range(100):
        fields["rscc"] = str(number)
        sig = _signed(fields, BLOB).sig
        if "+" in sig:
            break
    claim = claim_of(request("GET", f"/c1/b1?{token(**fields)}&sig={sig}"))
    assert isinstance(claim, SasClaim)
    assert claim.sas.rscd == "a+b"


def test_names_beyond_ascii() -> None:
    target = Target(Service.BLOB, NAME, "c1", "Grüße/日本/\U0001f600")
    sas = _signed(FIELDS, target)
    assert verify_signature(sas, ACCOUNT, target).sas is sas
    lone = Target(Service.BLOB, NAME, "c1", "\ud800")
    with pytest.raises(StorageError) as caught:
        verify_signature(sas, ACCOUNT, lone)
    refused(caught, AUTHENTICATION_FAILED)
