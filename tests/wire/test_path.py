"""Request paths: both styles, decoding, invalid paths."""

from __future__ import annotations

from functools import partial
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.wire.core import path
from strongroom.wire.core.path import UrlTarget
from tests.refusals import outcome

INVALID = "400 InvalidUri"
LOCAL = "127.0.0.1:10000"
HOSTED = "Acct.blob.localhost:10000"


def parsed(raw: str, host: str | None, suffixes: tuple[str, ...] = path.BLOB_SUFFIXES) -> UrlTarget:
    return path.parse(raw, path.account_of_host(host, suffixes))


TARGETS: list[tuple[str, str | None, UrlTarget]] = [
    ("/acct", LOCAL, UrlTarget("acct")),
    ("/acct/", LOCAL, UrlTarget("acct")),
    ("/acct/c", LOCAL, UrlTarget("acct", "c")),
    ("/acct/c/", LOCAL, UrlTarget("acct", "c")),
    ("/acct-secondary/acct", LOCAL, UrlTarget("acct", secondary=True)),
    ("/acct-secondary/acct/", LOCAL, UrlTarget("acct", secondary=True)),
    ("/acct-secondary/acct/c/b/d", LOCAL, UrlTarget("acct", "c", "b/d", secondary=True)),
    ("/acct-secondary/acct2/b", LOCAL, UrlTarget("acct", "acct2", "b", secondary=True)),
    ("/acct/acct/b", LOCAL, UrlTarget("acct", "acct", "b")),
    ("/acct/c/b", LOCAL, UrlTarget("acct", "c", "b")),
    ("/acct/c/b/d//e/", None, UrlTarget("acct", "c", "b/d//e/")),
    ("/acct/c//b", LOCAL, UrlTarget("acct", "c", "/b")),
    ("/acct/c/a%2Fb%20c%25", LOCAL, UrlTarget("acct", "c", "a/b c%")),
    ("/acct/c/%C3%A9", LOCAL, UrlTarget("acct", "c", "é")),
    ("/acct/c/\xc3\xa9", LOCAL, UrlTarget("acct", "c", "é")),
    ("/acct/c/a/../b/./c", LOCAL, UrlTarget("acct", "c", "a/../b/./c")),
    ("/acct/c/..%2F..%2Fetc", LOCAL, UrlTarget("acct", "c", "../../etc")),
    ("/acct/c/a%5Cb\\c", LOCAL, UrlTarget("acct", "c", "a\\b\\c")),
    ("/acct/c/a+b", LOCAL, UrlTarget("acct", "c", "a+b")),
    ("/acct/$root/b", LOCAL, UrlTarget("acct", "$root", "b")),
    ("/acct-secondary/c/b", LOCAL, UrlTarget("acct", "c", "b", secondary=True)),
    ("/c/b", HOSTED, UrlTarget("acct", "c", "b", host_style=True)),
    ("/", HOSTED, UrlTarget("acct", host_style=True)),
    ("/c", "acct-secondary.blob.localhost", UrlTarget("acct", "c", None, True, True)),
    ("/c", "acct.blob.localhost.", UrlTarget("acct", "c", host_style=True)),
    ("/acct/c", "a.b.blob.localhost", UrlTarget("acct", "c")),
    ("/acct/c", "blob.localhost", UrlTarget("acct", "c")),
    ("/acct/c", "acct.blob.example", UrlTarget("acct", "c")),
    ("/acct/c", "[::1]:10000", UrlTarget("acct", "c")),
    ("/acct/c", "[::1]", UrlTarget("acct", "c")),
]


@pytest.mark.parametrize(("raw", "host", "expected"), TARGETS)
def test_targets(raw: str, host: str | None, expected: UrlTarget) -> None:
    assert parsed(raw, host) == expected


BAD = ["", "acct/c", "/", "//c", "/acct//b", "/-secondary/c", "http://h/acct", "*"]
BAD += [
    "/acct/c/%",
    "/acct/c/%2",
    "/acct/c/%GG",
    "/acct/c/%FF",
    "/acct/%C3/b",
    "/%E9/c",
    "/acct/c/\xff",
]


@pytest.mark.parametrize("raw", BAD)
def test_what_is_no_path(raw: str) -> None:
    assert outcome(lambda: parsed(raw, LOCAL)) == INVALID


def test_other_suffixes() -> None:
    suffixes = ("blob.core.example", "blob.localhost")
    assert parsed("/c", "acct.blob.core.example:443", suffixes).account == "acct"
    assert parsed("/a/c", "acct.core.example", suffixes).account == "a"


def test_blobs_of_the_root_container() -> None:
    assert parsed("/acct/b.txt", LOCAL).in_root() == UrlTarget("acct", "$root", "b.txt")
    assert parsed("/acct/c/b", LOCAL).in_root() == UrlTarget("acct", "c", "b")
    assert parsed("/acct", LOCAL).in_root() == UrlTarget("acct")


@given(st.binary().map(lambda raw: raw.decode("latin-1")), st.text() | st.none())
def test_any_path_is_read_or_refused(raw: str, host: str | None) -> None:
    for text in (raw, f"/a/c/{raw}", f"/{raw}"):
        assert outcome(partial(parsed, text, host)) in ("ok", INVALID)


@given(st.text(min_size=1).filter(lambda name: name.isprintable()))
def test_encoded_names_come_back(name: str) -> None:
    assert parsed(f"/acct/c/{quote(name, safe='')}", LOCAL).blob == name
