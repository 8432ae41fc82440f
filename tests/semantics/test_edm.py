"""The values of table entities: JSON and text in, canonical JSON out, types and limits."""

from __future__ import annotations

import contextlib
import math
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.semantics.table import edm
from strongroom.semantics.table.edm import EdmType, NotOfType, OutOfRange, Typed, Value
from strongroom.values import INT32, iso7

GUID = "c9da6455-213d-42c9-9a79-3e9149a57833"
WHEN = "2013-08-09T18:55:48.3402073Z"
FIRST, LAST = edm.parse_time("1601-01-01"), edm.parse_time("9999-12-31T23:59:59.9999999Z")

VALUES: list[tuple[object, str | None, str]] = [
    # JSON value, type as sent, fragment
    ("x", None, '"P":"x"'),
    ('"\\\n\u00e9\U0001f600', None, '"P":"\\"\\\\\\n\u00e9\U0001f600"'),
    (True, None, '"P":true'),
    (0, None, '"P":0'),
    (-(2**31), None, '"P":-2147483648'),
    (2.0, None, '"P":2.0'),
    (1e300, None, '"P":1e300'),
    (5e-324, None, '"P":5e-324'),
    (-0.0, None, '"P":-0.0'),
    ("true", "Edm.Boolean", '"P":true'),
    ("False", "Edm.Boolean", '"P":false'),
    ("7", "Edm.Int32", '"P":7'),
    (7, "Edm.Int64", '"P@odata.type":"Edm.Int64","P":"7"'),
    ("0" * 9_000 + "7", "Edm.Int64", '"P@odata.type":"Edm.Int64","P":"7"'),
    ("-" + "0" * 30, "Edm.Int32", '"P":0'),
    ("+07", "Edm.Int64", '"P@odata.type":"Edm.Int64","P":"7"'),
    ("-9223372036854775808", "Edm.Int64",
     '"P@odata.type":"Edm.Int64","P":"-9223372036854775808"'),
    (3, "Edm.Double", '"P":3.0'),
    ("1.5e2", "Edm.Double", '"P":150.0'),
    ("NaN", "Edm.Double", '"P@odata.type":"Edm.Double","P":"NaN"'),
    ("INF", "Edm.Double", '"P@odata.type":"Edm.Double","P":"Infinity"'),
    ("-Infinity", "Edm.Double", '"P@odata.type":"Edm.Double","P":"-Infinity"'),
    (WHEN, "Edm.DateTime", f'"P@odata.type":"Edm.DateTime","P":"{WHEN}"'),
    (GUID.upper(), "Edm.Guid", f'"P@odata.type":"Edm.Guid","P":"{GUID}"'),
    ("AP8=", "Edm.Binary", '"P@odata.type":"Edm.Binary","P":"AP8="'),
    ("", "Edm.Binary", '"P@odata.type":"Edm.Binary","P":""'),
    ("NaN", "Edm.String", '"P":"NaN"'),
]  # fmt: skip


@pytest.mark.parametrize(("raw", "type_name", "fragment"), VALUES)
def test_a_value_becomes_canonical(raw: object, type_name: str | None, fragment: str) -> None:
    value = edm.value_of(raw, type_name)
    assert edm.pair("P", value) == fragment.encode()
    again: dict[str, Any] = msgspec.json.decode(f"{{{fragment}}}")
    assert edm.pair("P", edm.value_of(again["P"], again.get("P@odata.type"))) == fragment.encode()


TICKS = edm.parse_time(WHEN)
FORMS: list[tuple[object, str | None, Value]] = [
    # JSON value, type as sent, value: plain if JSON shows its type
    ("x", None, "x"),
    (True, None, True),
    (1, None, 1),
    (1.0, None, 1.0),
    (-0.0, None, -0.0),
    ("x", "Edm.String", "x"),
    (True, "Edm.Boolean", True),
    ("true", "Edm.Boolean", True),
    (1, "Edm.Int32", 1),
    ("-2147483648", "Edm.Int32", -(2**31)),
    (1, "Edm.Double", 1.0),
    ("1.5", "Edm.Double", 1.5),
    ("-0", "Edm.Double", -0.0),
    ("NaN", "Edm.Double", Typed(EdmType.DOUBLE, math.nan)),
    ("INF", "Edm.Double", Typed(EdmType.DOUBLE, math.inf)),
    ("-Infinity", "Edm.Double", Typed(EdmType.DOUBLE, -math.inf)),
    (1, "Edm.Int64", Typed(EdmType.INT64, 1)),
    ("9223372036854775807", "Edm.Int64", Typed(EdmType.INT64, 2**63 - 1)),
    (WHEN, "Edm.DateTime", Typed(EdmType.DATE_TIME, TICKS)),
    (GUID, "Edm.Guid", Typed(EdmType.GUID, UUID(GUID))),
    ("AP8=", "Edm.Binary", Typed(EdmType.BINARY, b"\x00\xff")),
]


@pytest.mark.parametrize(("raw", "type_name", "value"), FORMS)
def test_a_value_has_one_form(raw: object, type_name: str | None, value: Value) -> None:
    # 1 == True == 1.0, and no NaN equals another.
    assert repr(edm.value_of(raw, type_name)) == repr(value)


REFUSED: list[tuple[object, str | None]] = [
    (2**31, None), (-(2**31) - 1, None), (math.inf, None), (None, None), ([], None), ({}, None),
    (1, "Edm.String"), (1, "Edm.Boolean"), ("yes", "Edm.Boolean"), (True, "Edm.Int32"),
    (1.0, "Edm.Int32"), ("1.0", "Edm.Int32"), ("", "Edm.Int32"), ("\u0661", "Edm.Boolean"),
    (2**31, "Edm.Int32"), (2**63, "Edm.Int64"), ("9" * 21, "Edm.Int64"), ("1_000", "Edm.Int64"),
    (" 1", "Edm.Int64"), ("0x1", "Edm.Int64"), (True, "Edm.Double"), ("nan", "Edm.Double"),
    ("1e999", "Edm.Double"), (10**400, "Edm.Double"), ("1e", "Edm.Double"), ("", "Edm.Double"),
    (".", "Edm.Double"), ("today", "Edm.DateTime"), (7, "Edm.DateTime"),
    ("2013-13-01T00:00:00Z", "Edm.DateTime"), ("2013-02-29", "Edm.DateTime"),
    ("2013-01-01T24:00:00Z", "Edm.DateTime"), ("0000-01-01", "Edm.DateTime"),
    (GUID[1:], "Edm.Guid"), (f"{{{GUID}}}", "Edm.Guid"), (GUID.replace("-", ""), "Edm.Guid"),
    ("A", "Edm.Binary"), ("AP8=\n", "Edm.Binary"), ("A-_=", "Edm.Binary"), (1, "Edm.Binary"),
    ("\u0661", "Edm.Int32"), ("\uff11", "Edm.Int64"), ("1\u0661", "Edm.Double"),
    ("1e\u0661", "Edm.Double"), ("\u0662013-08-09", "Edm.DateTime"),
    ("2013-08-09T18:55:48+99:99", "Edm.DateTime"), ("2013-08-09T18:55:48+01:60", "Edm.DateTime"),
    ("2013-08-09T18:55:48-14:01", "Edm.DateTime"), ("+-1", "Edm.Int32"), ("-", "Edm.Int32"),
    ("x", "Edm.Time"), ("x", "String"), ("x", ""),
]  # fmt: skip


@pytest.mark.parametrize(("raw", "type_name"), REFUSED, ids=repr)
def test_what_a_type_cannot_have_is_refused(raw: object, type_name: str | None) -> None:
    with pytest.raises(NotOfType):
        edm.value_of(raw, type_name)


MOMENTS = [
    # text, canonical
    (WHEN, WHEN),
    ("2013-08-09T18:55:48Z", "2013-08-09T18:55:48.0000000Z"),
    ("2013-08-09T18:55Z", "2013-08-09T18:55:00.0000000Z"),
    ("2013-08-09", "2013-08-09T00:00:00.0000000Z"),
    ("2013-08-09 18:55:48.12", "2013-08-09T18:55:48.1200000Z"),
    ("2013-08-09T18:55:48.123456789Z", "2013-08-09T18:55:48.1234567Z"),
    ("2013-08-09T20:55:48+02:00", "2013-08-09T18:55:48.0000000Z"),
    ("2013-08-09T23:55:48-0530", "2013-08-10T05:25:48.0000000Z"),
    ("2013-08-09T18:55:48+14:00", "2013-08-09T04:55:48.0000000Z"),
    ("1600-12-31T23:00:00-01:00", "1601-01-01T00:00:00.0000000Z"),
]


@pytest.mark.parametrize(("text", "canonical"), MOMENTS)
def test_moments_in_several_forms(text: str, canonical: str) -> None:
    assert iso7(edm.parse_time(text)) == canonical


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("1600-12-31T23:59:59.9999999Z", "12/31/1600 23:59:59"),
        ("0001-01-01", "01/01/0001 00:00:00"),
        ("1601-01-01T00:30:00+01:00", "01/01/1601 00:30:00"),
        ("9999-12-31T23:59:59-00:01", "12/31/9999 23:59:59"),
    ],
)
def test_moments_out_of_range_are_quoted(text: str, quoted: str) -> None:
    with pytest.raises(OutOfRange) as refused:
        edm.parse_time(text)
    assert str(refused.value) == quoted


@pytest.mark.parametrize(
    ("value", "size_bytes"),
    [
        ("ab\U0001f600", 8),
        (Typed(EdmType.BINARY, b"abc"), 3),
        (True, 1),
        (1, 4),
        (Typed(EdmType.INT64, 1), 8),
        (1.0, 8),
        (Typed(EdmType.DOUBLE, math.inf), 8),
        (Typed(EdmType.DATE_TIME, 1), 8),
        (Typed(EdmType.GUID, UUID(GUID)), 16),
    ],
)
def test_what_a_value_counts(value: Value, size_bytes: int) -> None:
    assert edm.size_bytes(value) == size_bytes


ANY_VALUE: st.SearchStrategy[Value] = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.booleans(),
    st.integers(*INT32),
    st.builds(Typed, st.just(EdmType.INT64), st.integers(*edm.INT64)),
    st.floats(allow_nan=False, allow_infinity=False),
    st.builds(Typed, st.just(EdmType.DOUBLE), st.sampled_from([math.nan, math.inf, -math.inf])),
    st.builds(Typed, st.just(EdmType.DATE_TIME), st.integers(FIRST, LAST)),
    st.builds(Typed, st.just(EdmType.GUID), st.uuids()),
    st.builds(Typed, st.just(EdmType.BINARY), st.binary()),
)


@given(ANY_VALUE)
def test_every_value_is_read_back_from_its_fragment(value: Value) -> None:
    fragment = edm.pair("P", value)
    members: dict[str, Any] = msgspec.json.decode(b"{" + fragment + b"}")
    found = edm.value_of(members["P"], members.get("P@odata.type"))
    assert repr(found) == repr(value)  # 1 == True == 1.0
    assert repr(edm.untyped(found)) == repr(value.value if isinstance(value, Typed) else value)


@given(st.dictionaries(st.sampled_from("ABCDEF"), ANY_VALUE))
def test_properties_are_written_one_after_the_other(properties: dict[str, Value]) -> None:
    pairs = [edm.pair(name, value) for name, value in properties.items()]
    assert edm.fragment(properties) == b",".join(pairs)


@given(st.text(max_size=40) | st.floats() | st.integers(), st.sampled_from(EdmType))
def test_nothing_else_is_raised_than_what_is_told(raw: object, kind: EdmType) -> None:
    with contextlib.suppress(NotOfType, OutOfRange):
        assert msgspec.json.decode(b"{" + edm.pair("P", edm.value_of(raw, kind.value)) + b"}")
