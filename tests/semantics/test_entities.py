"""Entities: limits of keys and properties, and the effect of each write."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.errors.core import StorageError
from strongroom.semantics.table import edm, entities
from strongroom.semantics.table.edm import EdmType, Typed, Value
from strongroom.semantics.table.entities import EntityChange, EntityWrite, Properties, StoredEntity
from tests.refusals import OK, outcome, refusal

OUT_OF_RANGE = "400 OutOfRangeInput"
KEYS = [
    ("", OK),
    ("x" * 512, OK),
    ("x" * 513, "400 PropertyValueTooLarge"),
    ("\U0001f600" * 256, OK),
    ("\U0001f600" * 257, "400 PropertyValueTooLarge"),
    ("a'b%c+d &=(),;:@$!*~", OK),
    ("\u00a0\u2028\ufeff\uffff", OK),
    ("\ud800", "400 InvalidInput"),
    *((f"a{character}b", OUT_OF_RANGE) for character in "/\\#?\x00\x1f\t\n\x7f\x80\x9f"),
]


@pytest.mark.parametrize(("key", "expected"), KEYS)
def test_what_a_key_may_be(key: str, expected: str) -> None:
    assert outcome(lambda: entities.check_key("RowKey", key)) == expected


def test_a_key_out_of_range_is_quoted() -> None:
    refused = refusal(lambda: entities.check_key("RowKey", "a/b"))
    assert refused is not None
    assert refused.message == "The 'RowKey' parameter of value 'a/b' is out of range."


def texts(*names: str) -> Properties:
    return dict.fromkeys(names, "x")


PROPERTIES: list[tuple[Properties, str]] = [
    ({}, OK),
    (texts("A", "_b1", "\u00dcn\u00ef", "N" * 255), OK),
    (texts("N" * 256), "400 PropertyNameTooLong"),
    *((texts(name), "400 PropertyNameInvalid") for name in ("", "1a", "a-b", "a b", "a.b", "a@")),
    (texts(*(f"P{n}" for n in range(252))), OK),
    (texts(*(f"P{n}" for n in range(253))), "400 TooManyProperties"),
    ({"P": "x" * 32_768}, OK),
    ({"P": "x" * 32_769}, "400 PropertyValueTooLarge"),
    ({"P": "\U0001f600" * 16_384}, OK),
    ({"P": "\U0001f600" * 16_384 + "x"}, "400 PropertyValueTooLarge"),
    ({"P": Typed(EdmType.BINARY, bytes(65_536))}, OK),
    ({"P": Typed(EdmType.BINARY, bytes(65_537))}, "400 PropertyValueTooLarge"),
    ({"P": "x\udfff"}, "400 InvalidInput"),
    ({"A": 1, "B": 1.5, "C": False, "D": Typed(EdmType.INT64, 1)}, OK),
    ({"A": 1, "B": True, "P": "x" * 32_769}, "400 PropertyValueTooLarge"),
]


@pytest.mark.parametrize(("properties", "expected"), PROPERTIES, ids=range(len(PROPERTIES)))
def test_what_properties_may_be(properties: Properties, expected: str) -> None:
    def check() -> None:
        entities.check_names(properties)
        entities.check_values(properties)

    assert outcome(check) == expected


@pytest.mark.parametrize(
    ("partition_key", "row_key", "expected"),
    [
        ("p", "r", OK),
        ("", "", OK),
        ("p", None, "400 PropertiesNeedValue"),
        (None, "r", "400 PropertiesNeedValue"),
    ],
)
def test_both_keys_must_be_given(
    partition_key: str | None, row_key: str | None, expected: str
) -> None:
    assert outcome(lambda: entities.require_keys(partition_key, row_key)) == expected


def decided(stored: StoredEntity | None, wanted: EntityWrite) -> str:
    """Return the fragment after a write, `gone`, or the error code."""
    try:
        found = entities.decide(stored, wanted, "p", "r")
    except StorageError as error:
        return error.row.code
    return "gone" if found is None else found.decode()


@dataclass(frozen=True)
class Row:
    """The results of a write of B=2: without an entity, on A=1, and on A=1 with another tag."""

    nothing: str
    same: str
    other: str


UNMET = "UpdateConditionNotSatisfied"
WRITES = {
    EntityChange.INSERT: Row('"B":"2"', *["EntityAlreadyExists"] * 2),
    EntityChange.UPDATE: Row("ResourceNotFound", '"B":"2"', UNMET),
    EntityChange.MERGE: Row("ResourceNotFound", '"A":"1","B":"2"', UNMET),
    EntityChange.DELETE: Row("ResourceNotFound", "gone", UNMET),
    EntityChange.INSERT_OR_REPLACE: Row('"B":"2"', '"B":"2"', '"B":"2"'),
    EntityChange.INSERT_OR_MERGE: Row('"B":"2"', *['"A":"1","B":"2"'] * 2),
}


@pytest.mark.parametrize("change", list(EntityChange))
def test_each_write_in_each_state(change: EntityChange) -> None:
    stored = StoredEntity(7, b'"A":"1"')
    properties = {} if change is EntityChange.DELETE else {"B": "2"}
    row = WRITES[change]
    asked = [EntityWrite(change, properties, match) for match in (7, 8, None)]
    assert decided(None, asked[0]) == row.nothing
    assert decided(stored, asked[0]) == row.same
    assert decided(stored, asked[1]) == row.other
    # If-Match: *
    assert decided(stored, asked[2]) == row.same


@pytest.mark.parametrize("change", [one for one in EntityChange if one is not EntityChange.DELETE])
def test_a_write_may_have_no_properties(change: EntityChange) -> None:
    is_merge = change in (EntityChange.MERGE, EntityChange.INSERT_OR_MERGE)
    for wanted in (EntityWrite(change), EntityWrite(change, {})):
        if change is EntityChange.INSERT:
            assert decided(None, wanted) == ""
        else:
            assert decided(StoredEntity(7, b'"A":"1"'), wanted) == ('"A":"1"' if is_merge else "")


MERGES: list[tuple[str, Properties, str]] = [
    # stored, given, merged
    ('"A":1,"B":2', {"A": "x"}, '"A":"x","B":2'),
    ('"A":1', {}, '"A":1'),
    ("", {"A": "x"}, '"A":"x"'),
    ('"L@odata.type":"Edm.Int64","L":"7","A":1', {"A": "x"},
     '"L@odata.type":"Edm.Int64","L":"7","A":"x"'),
    ('"L@odata.type":"Edm.Int64","L":"7"', {"L": "x"}, '"L":"x"'),
    ('"L@odata.type":"Edm.Int64","L":"7"', {"L": 7}, '"L":7'),
    ('"L":"x"', {"L": Typed(EdmType.INT64, 7)}, '"L@odata.type":"Edm.Int64","L":"7"'),
    ('"A":1', {"B": True, "A": 1.0}, '"A":1.0,"B":true'),
    ('"a":1', {"A": "x"}, '"a":1,"A":"x"'),
    ('"A":"\\u0001\\"}"', {"B": "x"}, '"A":"\\u0001\\"}","B":"x"'),
]  # fmt: skip


@pytest.mark.parametrize(("stored", "given_", "merged"), MERGES)
def test_a_merge_puts_properties_in_their_places(
    stored: str, given_: Properties, merged: str
) -> None:
    wanted = EntityWrite(EntityChange.MERGE, given_)
    assert decided(StoredEntity(1, stored.encode()), wanted) == merged


def test_a_merge_makes_no_more_properties_than_there_may_be() -> None:
    full = edm.fragment(texts(*(f"P{n}" for n in range(252))))
    assert (
        decided(StoredEntity(1, full), EntityWrite(EntityChange.MERGE, {"P7": "y"})).count(":")
        == 252
    )
    more = EntityWrite(EntityChange.MERGE, {"Q": "x"})
    assert decided(StoredEntity(1, full), more) == "TooManyProperties"
    assert decided(
        StoredEntity(1, full), EntityWrite(EntityChange.INSERT_OR_MERGE, more.properties)
    ) == ("TooManyProperties")


def sized(size_bytes: int, key_chars: int = 1) -> Properties:
    """Return properties of an entity whose size is `size_bytes`, with keys of `key_chars` each."""
    left = size_bytes - 4 - 2 * 2 * key_chars
    found: dict[str, Value] = {}
    while left:
        name = f"P{len(found):03}"
        overhead = 8 + 2 * len(name) + 4
        value_bytes = min(60_000, left - overhead)
        if 0 < left - overhead - value_bytes <= 2 * overhead:
            value_bytes -= 4 * overhead
        found[name] = Typed(EdmType.BINARY, bytes(value_bytes))
        left -= overhead + value_bytes
    return found


def test_an_entity_counts_up_to_a_mebibyte() -> None:
    most = entities.ENTITY_BYTES_MAX
    for change in (
        EntityChange.INSERT,
        EntityChange.INSERT_OR_REPLACE,
        EntityChange.INSERT_OR_MERGE,
    ):
        assert decided(None, EntityWrite(change, sized(most))).startswith('"P000@')
        assert decided(None, EntityWrite(change, sized(most + 1))) == "EntityTooLarge"
    fragment = edm.fragment(sized(most - 100))
    assert '"Q":"' in decided(
        StoredEntity(1, fragment), EntityWrite(EntityChange.MERGE, {"Q": "x" * 43})
    )
    over = EntityWrite(EntityChange.MERGE, {"Q": "x" * 44})
    assert decided(StoredEntity(1, fragment), over) == "EntityTooLarge"


NAME = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True)
VALUE: st.SearchStrategy[Value] = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.builds(Typed, st.just(EdmType.INT64), st.integers(-(2**63), 2**63 - 1)),
    st.builds(Typed, st.just(EdmType.GUID), st.uuids()),
    st.booleans(),
    st.integers(0, 1),
    st.sampled_from([0.0, -0.0, 1.0]),
)
SOME = st.dictionaries(NAME, VALUE, max_size=6)


@given(SOME, SOME)
def test_a_merge_is_the_merge_of_dictionaries(
    before: dict[str, Value], given_: dict[str, Value]
) -> None:
    stored = StoredEntity(1, edm.fragment(before))
    asked = EntityWrite(EntityChange.MERGE, given_)
    after = entities.decide(stored, asked, "p", "r")
    assert after is not None
    # The properties keep their places and types: 1 == True == 1.0.
    assert repr(entities.properties_of(after)) == repr(before | given_)
    assert after == edm.fragment(before | given_)
    msgspec.json.decode(b"{" + after + b"}")


@pytest.mark.parametrize("change", [EntityChange.INSERT, EntityChange.INSERT_OR_REPLACE])
def test_a_large_entity_is_measured_without_being_decoded_again(
    change: EntityChange, monkeypatch: pytest.MonkeyPatch
) -> None:
    def decoded(fragment: bytes) -> Properties:
        raise AssertionError("the fragment was decoded again")

    monkeypatch.setattr(entities, "properties_of", decoded)
    given: Properties = {f"P{number}": "x" * 15_000 for number in range(30)}
    assert entities.decide(None, EntityWrite(change, given, None), "p", "r")
    given = {f"P{number}": "x" * 32_000 for number in range(30)}
    wanted = EntityWrite(change, given, None)
    assert outcome(lambda: entities.decide(None, wanted, "p", "r")) == "400 EntityTooLarge"
