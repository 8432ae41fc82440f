"""Header codecs: the accepted values, and the exact refusal of everything else."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.errors.core import StorageError
from strongroom.values import ByteRange, crc64_text, md5_text
from strongroom.wire.core import headers
from tests.refusals import outcome

HEADER = "400 InvalidHeaderValue"


@pytest.mark.parametrize(("value", "expected"), [("true", True), ("False", False), ("TRUE", True)])
def test_booleans(value: str, expected: bool) -> None:
    assert headers.boolean("x", value) is expected


@pytest.mark.parametrize("value", ["", "1", "yes", "true ", "tru"])
def test_what_is_no_boolean(value: str) -> None:
    assert outcome(lambda: headers.boolean("x", value)) == HEADER


INTEGERS = [
    *[(value, "ok") for value in ("0", "-1", "60", "007")],
    *[
        (value, HEADER)
        for value in ("", "-2", "61", "1.0", "0x1", "+1", " 1", "1_0", "٣", "9" * 5000)
    ],
]


@pytest.mark.parametrize(("value", "expected"), INTEGERS)
def test_integers(value: str, expected: str) -> None:
    assert outcome(lambda: headers.integer("x", value, -1, 60)) == expected
    if expected == "ok":
        assert headers.integer("x", value, -1, 60) == int(value)


def test_a_refusal_names_the_header_and_quotes_the_value() -> None:
    with pytest.raises(StorageError) as caught:
        headers.integer("x-ms-lease-duration", "soon", -1, 60)
    extras = dict(caught.value.extras)
    assert extras == {"HeaderName": "x-ms-lease-duration", "HeaderValue": "soon"}


def test_digests() -> None:
    assert headers.md5("1B2M2Y8AsgTpgAmY7PhCfg==").hex() == "d41d8cd98f00b204e9800998ecf8427e"
    assert md5_text(headers.md5("1B2M2Y8AsgTpgAmY7PhCfg==")) == "1B2M2Y8AsgTpgAmY7PhCfg=="
    assert headers.crc64("x", "AAAAAAAAAAA=") == 0
    checksum = 0xAE8B14860A799888
    assert headers.crc64("x", crc64_text(checksum)) == checksum
    assert crc64_text(1) == "AQAAAAAAAAA="


BAD_BASE64 = [
    "",
    "x",
    "AAAA",
    "1B2M2Y8AsgTpgAmY7PhCfg",
    "1B2M2Y8AsgTpgAmY7PhCfg== ",
    "*" * 24,
    "é" * 24,
]


@pytest.mark.parametrize("value", BAD_BASE64)
def test_what_is_no_digest(value: str) -> None:
    assert outcome(lambda: headers.md5(value)) == "400 InvalidMd5"
    assert outcome(lambda: headers.crc64("x-ms-content-crc64", value)) == HEADER
    assert headers.unchecked_md5(value) == (None, value)


RANGES = [
    ("bytes=0-", ByteRange(0, None)),
    ("bytes=0-0", ByteRange(0, 0)),
    ("bytes=5-9", ByteRange(5, 9)),
    (" bytes=5-9 ", ByteRange(5, 9)),
    ("bytes=5-9223372036854775807", ByteRange(5, 2**63 - 1)),
    ("bytes=5-18446744073709551615", ByteRange(5, 2**64 - 1)),
    *[(value, None) for value in (None, "", "bytes=-5", "bytes=9-5", "bytes=0-1,3-4", "bytes=a-b")],
    *[(value, None) for value in ("bytes 0-1", "bits=0-1", "bytes=0", "bytes=1-" + "9" * 5000)],
]


@pytest.mark.parametrize(("value", "expected"), RANGES)
def test_ranges(value: str | None, expected: ByteRange | None) -> None:
    assert headers.byte_range(value) == expected


ETAGS = [
    ("*", ("*",)),
    ('"*"', ('"*"',)),
    ('"0x1"', ('"0x1"',)),
    ("0x1", ('"0x1"',)),
    (' "0x1" , 0x2,"a,b"', ('"0x1"', '"0x2"', '"a,b"')),
    ('W/"0x1"', ('W/"0x1"',)),
    ('""', ('""',)),
]


@pytest.mark.parametrize(("value", "expected"), ETAGS)
def test_etags(value: str, expected: tuple[str, ...]) -> None:
    assert headers.etags("If-Match", value) == expected


@pytest.mark.parametrize(
    "value", ["", " ", ",", '"a', 'a"', '"a",', '"a" "b"', "*,*", '"a",*', "a b"]
)
def test_what_is_no_list_of_etags(value: str) -> None:
    assert outcome(lambda: headers.etags("If-Match", value)) == HEADER


D = "c0ffee00-1234-5678-9abc-def012345678"
GUIDS = [D, D.upper(), D.replace("-", ""), f"{{{D}}}", f"({D})", f"{{{D.upper()}}}"]


@pytest.mark.parametrize("value", GUIDS)
def test_guids(value: str) -> None:
    assert headers.guid("x-ms-lease-id", value) == D


BAD_GUIDS = [
    "",
    "x",
    D[:-1],
    f"{{{D})",
    f"{{{D}",
    D.replace("-", "", 1),
    D + "\n",
    D.replace("c", "g"),
]


@pytest.mark.parametrize("value", BAD_GUIDS)
def test_what_is_no_guid(value: str) -> None:
    assert outcome(lambda: headers.guid("x-ms-lease-id", value)) == HEADER


def test_metadata_keeps_order_and_case() -> None:
    fields = [("X-MS-Meta-Name", "1"), ("Host", "h"), ("x-ms-meta-", ""), ("x-ms-meta-b", "ü")]
    assert headers.metadata(fields) == (("Name", "1"), ("", ""), ("b", "ü"))


def test_lists_and_choices() -> None:
    assert headers.comma_list(" a, b,,c ") == ("a", "b", "c")
    assert headers.comma_list("") == ()
    assert headers.one_of("x-ms-blob-type", "blockblob", ("BlockBlob", "PageBlob")) == "BlockBlob"
    assert outcome(lambda: headers.one_of("x", "no", ("BlockBlob",))) == HEADER


def test_dates() -> None:
    assert (
        outcome(lambda: headers.date("If-Modified-Since", "Fri, 26 Jun 2015 23:39:12 GMT")) == "ok"
    )
    assert outcome(lambda: headers.date("If-Modified-Since", "yesterday")) == HEADER


CODECS: list[Callable[[str], object]] = [
    lambda value: headers.boolean("x", value),
    lambda value: headers.integer("x", value, 0, 9),
    lambda value: headers.date("x", value),
    headers.md5,
    lambda value: headers.crc64("x", value),
    headers.unchecked_md5,
    headers.byte_range,
    lambda value: headers.etags("x", value),
    lambda value: headers.guid("x", value),
    headers.comma_list,
]


@given(st.text() | st.binary().map(lambda raw: raw.decode("latin-1")))
def test_any_text_has_a_value_or_is_refused(value: str) -> None:
    for codec in CODECS:
        # Binds the loop's value.
        seen = outcome(lambda codec=codec: codec(value))  # type: ignore[misc]
        assert seen in ("ok", HEADER, "400 InvalidMd5")
