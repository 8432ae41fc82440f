"""The strings of SharedKey and SharedKeyLite, rule by rule."""

from __future__ import annotations

import itertools
from functools import cmp_to_key
from typing import Any

import msgspec
import pytest
from azure.storage.blob._shared import authentication
from hypothesis import given
from hypothesis import strategies as st

from strongroom.auth import canonical
from strongroom.auth.canonical import (
    DEFAULT_FORM,
    Form,
    Scheme,
    StringsToSign,
    collation_key,
    other_forms,
)
from strongroom.auth.request import Service
from strongroom.auth.shared_key import Credential, verify
from strongroom.errors.core import AUTHENTICATION_FAILED, StorageError
from tests.auth.signing import ACCOUNT, DATE, NAME, NOW, request

Fields = list[tuple[str, str]]
VERSION = ("x-ms-version", "2021-12-02")
WHEN = ("x-ms-date", DATE)
sdk_compare: Any = authentication.compare


def _text(
    fields: Fields,
    target: str = "/a/c",
    form: Form = DEFAULT_FORM,
    scheme: Scheme = Scheme.SHARED_KEY,
    service: Service = Service.BLOB,
) -> str:
    sent = request("GET", target, fields)
    return StringsToSign(scheme, service, sent, "acct").of(form).decode()


def _lines(fields: Fields) -> list[str]:
    return _text(fields).split("\n")[:12]


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (1, "Content-Encoding"),
        (2, "Content-Language"),
        (3, "Content-Length"),
        (4, "Content-MD5"),
        (5, "Content-Type"),
        (6, "Date"),
        (7, "If-Modified-Since"),
        (8, "If-Match"),
        (9, "If-None-Match"),
        (10, "If-Unmodified-Since"),
        (11, "Range"),
    ],
)
def test_each_header_has_its_line(line: int, name: str) -> None:
    expected = ["GET", *[""] * 11]
    expected[line] = "7"
    assert _lines([(name, "7"), VERSION]) == expected


@pytest.mark.parametrize(
    ("version", "line"),
    [("2015-02-21", ""), ("2021-12-02", ""), ("2014-02-14", "0"), ("2009-09-19", "0")],
)
def test_a_length_of_zero_by_version(version: str, line: str) -> None:
    assert _lines([("Content-Length", "0"), ("x-ms-version", version)])[3] == line
    assert _lines([("Content-Length", "10"), ("x-ms-version", version)])[3] == "10"


def test_without_a_version_both_rules_are_tried() -> None:
    sent = request("PUT", "/a", [("Content-Length", "0"), ("x-ms-meta-a", "")])
    made = StringsToSign(Scheme.SHARED_KEY, Service.BLOB, sent, NAME)
    texts = {made.of(form) for form in (DEFAULT_FORM, *other_forms(sent, NAME))}
    tail = b"/devstoreaccount1/a"
    assert texts == {
        b"PUT\n\n\n0\n\n\n\n\n\n\n\n\n" + tail,
        b"PUT\n\n\n\n\n\n\n\n\n\n\n\nx-ms-meta-a:\n" + tail,
    }


def test_the_date_line_is_empty_beside_x_ms_date() -> None:
    fields = [("Date", "D"), WHEN]
    assert _lines(fields)[6] == ""
    assert _text(fields, form=Form(dated=True)).split("\n")[6] == "D"
    assert _lines([("Date", "D")])[6] == "D"


@pytest.mark.parametrize(
    ("version", "signed"),
    [("2016-05-31", True), ("2021-12-02", True), ("2015-12-11", False), ("2009-09-19", False)],
)
def test_empty_x_ms_headers_by_version(version: str, signed: bool) -> None:
    text = _text([("x-ms-meta-a", ""), ("x-ms-version", version)])
    assert ("x-ms-meta-a:\n" in text) is signed


def test_x_ms_headers_are_lowered_trimmed_and_unfolded() -> None:
    fields = [("X-MS-Meta-B", " two \t"), ("x-ms-meta-A", 'a\r\n \tb "c\r\n d" e\n\tf'), VERSION]
    assert _text(fields).endswith(
        '\nx-ms-meta-a:a b "c\r\n d" e f\nx-ms-meta-b:two\nx-ms-version:2021-12-02\n/acct/a/c'
    )


def test_both_orders_of_the_x_ms_headers() -> None:
    names = ["a-b", "a1", "a_b", "aa", "ab"]
    fields = [(f"x-ms-meta-{name}", "1") for name in reversed(names)]
    byte_order = _text(fields).split("\n")[12:-1]
    collated = _text(fields, form=Form(collated=True)).split("\n")[12:-1]
    assert [line[10:-2] for line in byte_order] == names
    assert [line[10:-2] for line in collated] == ["a_b", "a1", "aa", "ab", "a-b"]


TOKEN = st.text("!#$%&'*+-.^_`|~0123456789abcxyz", min_size=1, max_size=8)


@given(st.lists(TOKEN, min_size=2, max_size=6, unique=True))
def test_the_collation_is_the_sdks(names: list[str]) -> None:
    # Names that differ in hyphens and apostrophes only have a test of their own.
    for left, right in itertools.combinations([f"x-ms-{name}" for name in names], 2):
        if collation_key(left)[0] != collation_key(right)[0]:
            ordered = sorted([left, right], key=cmp_to_key(sdk_compare))
            assert sorted([left, right], key=collation_key) == ordered


@given(st.permutations(["x-ms-ab", "x-ms-a-b", "x-ms-ab-", "x-m-sab", "x-ms--ab"]))
def test_the_collation_among_names_that_differ_in_hyphens(names: list[str]) -> None:
    for left, right in itertools.combinations(names, 2):
        ordered = sorted([left, right], key=cmp_to_key(sdk_compare))
        assert sorted([left, right], key=collation_key) == ordered


@pytest.mark.parametrize(
    ("target", "resource"),
    [
        ("/", "/acct/"),
        ("", "/acct/"),
        ("/acct/c/my%20blob%2f", "/acct/acct/c/my%20blob%2f"),
        ("/c?", "/acct/c"),
        ("/c?&&", "/acct/c"),
        ("/c?restype", "/acct/c\nrestype:"),
        ("/c?B=2&a=1", "/acct/c\na:1\nb:2"),
        ("/c?p=a%20b%2Fc%3D", "/acct/c\np:a b/c="),
        ("/c?p=x=y", "/acct/c\np:x=y"),
        ("/c?p=2&P=1&p=", "/acct/c\np:,1,2"),
        ("/c?%24top=5", "/acct/c\n$top:5"),
        (
            "/c?restype=container&comp=list&include=snapshots&include=metadata",
            "/acct/c\ncomp:list\ninclude:metadata,snapshots\nrestype:container",
        ),
        ("/c?p=%C3%A9", "/acct/c\np:é"),
        ("/c?p=a+b", "/acct/c\np:a+b"),
    ],
)
def test_the_resource(target: str, resource: str) -> None:
    assert _text([VERSION], target).removeprefix("GET" + "\n" * 12) == (
        f"x-ms-version:2021-12-02\n{resource}"
    )


def test_plus_may_stand_for_a_space() -> None:
    assert _text([], "/c?p=a+b", Form(plus_is_space=True)).endswith("/acct/c\np:a b")


@pytest.mark.parametrize(
    ("path", "signed"),
    [
        ("/acct-secondary/c/b", "/acct/acct/c/b"),
        ("/acct-secondary", "/acct/acct"),
        ("/acct-secondary/acct/c/b", "/acct/acct/c/b"),
        ("/acct-secondary/acct/", "/acct/acct/"),
        ("/acct-secondary/acct2/b", "/acct/acct/acct2/b"),
        ("/acct-secondarily/c", "/acct/acct-secondarily/c"),
        ("/c/acct-secondary", "/acct/c/acct-secondary"),
    ],
)
def test_the_secondary_signs_as_itself_or_as_the_primary(path: str, signed: str) -> None:
    assert _text([], path).endswith(f"/acct{path}")
    assert _text([], path, Form(primary=True)).endswith(signed)


@pytest.mark.parametrize(
    ("path", "signed"),
    [
        ("/blob/acct-secondary/c/b", "/acct/blob/acct/c/b"),
        ("/blob/acct-secondary", "/acct/blob/acct"),
        ("/blob/acct/acct-secondary", "/acct/blob/acct/acct-secondary"),
    ],
)
def test_the_secondary_behind_a_mount(path: str, signed: str) -> None:
    """On a port of several services the account is the second segment."""
    sent = request("GET", path, [VERSION])
    assert _text([], path, Form(primary=True)).endswith(f"/acct{path}")
    sent.mount = "/blob"
    made = StringsToSign(Scheme.SHARED_KEY, Service.BLOB, sent, "acct")
    assert made.of().decode().endswith(f"/acct{path}")
    assert made.of(Form(primary=True)).decode().endswith(signed)


def test_letters_beyond_ascii_as_sent_or_as_utf8() -> None:
    sent = request("GET", "/c?p=%C3%A9", [("x-ms-meta-a", "\xe9"), VERSION])
    made = StringsToSign(Scheme.SHARED_KEY, Service.BLOB, sent, "acct")
    as_sent, as_utf8 = made.of(), made.of(Form(utf8=True))
    assert b"x-ms-meta-a:\xe9\n" in as_sent
    assert b"x-ms-meta-a:\xc3\xa9\n" in as_utf8
    assert as_sent.endswith(b"p:\xc3\xa9")
    assert as_utf8.endswith(b"p:\xc3\xa9")


LITE = Scheme.SHARED_KEY_LITE
MANY: Fields = [
    ("Content-MD5", "M"),
    ("Content-Type", "T"),
    ("Content-Length", "5"),
    ("Range", "R"),
    ("x-ms-b", "2"),
    ("x-ms-a", "1"),
    VERSION,
]


@pytest.mark.parametrize(
    ("service", "scheme", "extra", "expected"),
    [
        (
            Service.BLOB,
            LITE,
            ("Date", "D"),
            "GET\nM\nT\nD\nx-ms-a:1\nx-ms-b:2\nx-ms-version:2021-12-02\n/acct/c?comp=list",
        ),
        (
            Service.QUEUE,
            LITE,
            ("x-ms-date", "D"),
            "GET\nM\nT\n\nx-ms-a:1\nx-ms-b:2\nx-ms-date:D\n"
            "x-ms-version:2021-12-02\n/acct/c?comp=list",
        ),
        (Service.TABLE, Scheme.SHARED_KEY, ("x-ms-date", "D"), "GET\nM\nT\nD\n/acct/c?comp=list"),
        (Service.TABLE, Scheme.SHARED_KEY, ("Date", "D"), "GET\nM\nT\nD\n/acct/c?comp=list"),
        (Service.TABLE, LITE, ("x-ms-date", "D"), "D\n/acct/c?comp=list"),
        (Service.TABLE, LITE, ("Date", "D"), "D\n/acct/c?comp=list"),
    ],
)
def test_lite_and_tables(
    service: Service, scheme: Scheme, extra: tuple[str, str], expected: str
) -> None:
    text = _text([*MANY, extra], "/c?z=1&comp=list", scheme=scheme, service=service)
    assert text == expected


def test_lite_signs_no_other_parameter_than_comp() -> None:
    assert _text([], "/c?restype=container", scheme=LITE).endswith("\n/acct/c")
    assert _text([], "/c?comparison=1", scheme=LITE).endswith("\n/acct/c")


def test_there_is_nothing_else_to_try_for_a_plain_request() -> None:
    fields = [("x-ms-blob-type", "BlockBlob"), ("x-ms-blob-content-type", "t"), WHEN, VERSION]
    assert list(other_forms(request("PUT", "/acct/c/b?timeout=3", fields), "acct")) == []


def _everything_differs(size_bytes: int) -> Any:
    """A request that every kind of client would have signed in another form."""
    fields = [WHEN, ("Date", DATE), ("Content-Length", "0"), ("x-ms-a-b", ""), ("x-ms-ab", "")]
    fields += [("x-ms-meta-a", "\xe9" * size_bytes), ("x-ms-meta-a-a", "1")]
    return request("PUT", f"/{NAME}-secondary/c/b?a=1+1", fields)


def test_everything_that_clients_do_otherwise_is_tried_together() -> None:
    forms = list(other_forms(_everything_differs(8 * 1024), NAME))
    assert len(set(forms)) == 2 ** len(msgspec.structs.fields(Form)) - 1


def test_a_long_request_is_tried_in_one_other_way_at_a_time() -> None:
    forms = list(other_forms(_everything_differs(16 * 1024), NAME))
    names = [field.name for field in msgspec.structs.fields(Form)]
    assert forms == [Form(**{name: True}) for name in reversed(names)]


def test_what_the_forms_share_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A forged request makes nothing long more often than the choices that it depends on."""
    made = {"_canonical_query": 0, "_canonical_headers": 0}

    def count(name: str) -> None:
        real = getattr(canonical, name)

        def counted(*given: Any) -> Any:
            made[name] += 1
            return real(*given)

        monkeypatch.setattr(canonical, name, counted)

    for name in made:
        count(name)
    forged = Credential(Scheme.SHARED_KEY, NAME, "forged")
    with pytest.raises(StorageError) as caught:
        verify(forged, _everything_differs(1024), Service.BLOB, ACCOUNT, NOW)
    assert caught.value.row is AUTHENTICATION_FAILED
    assert made == {"_canonical_query": 2, "_canonical_headers": 4}
