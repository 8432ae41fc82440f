"""Documents of entities in requests: keys, properties with their types, refusals."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.errors.core import StorageError
from strongroom.operations.table import entity_fields
from strongroom.semantics.table.edm import EdmType, Typed
from strongroom.semantics.table.entities import Properties
from strongroom.services.table.entities import EntityDocument
from strongroom.slices import run_to_completion
from strongroom.wire.table import odata_entities
from tests.refusals import outcome

LONG = Typed(EdmType.INT64, 7)


def read_document(body: bytes) -> EntityDocument:
    """Return the entity of a document, read without a pause."""
    found = entity_fields.read_document(body)
    return found if isinstance(found, EntityDocument) else run_to_completion(found)


DOCUMENTS: list[tuple[bytes, str | None, str | None, Properties]] = [
    # body, PartitionKey, RowKey, properties
    (b"{}", None, None, {}),
    (b'{"PartitionKey":"p","RowKey":"r"}', "p", "r", {}),
    (b'{"A":1,"RowKey":"","B":true}', None, "", {"A": 1, "B": True}),
    (b'{"A":1,"B":1.0,"C":"1","D":false}', None, None, {"A": 1, "B": 1.0, "C": "1", "D": False}),
    (b'{"A":-2147483648,"B":2147483647}', None, None, {"A": -(2**31), "B": 2**31 - 1}),
    (b'{"PartitionKey@odata.type":"Edm.String","PartitionKey":"p","A":1}', "p", None, {"A": 1}),
    (b'{"RowKey":"r","A":1,"L":"7","L@odata.type":"Edm.Int64"}', None, "r", {"A": 1, "L": LONG}),
    (b'{"A@odata.type":"Edm.Double","A":1,"B":1}', None, None, {"A": 1.0, "B": 1}),
    (b'{"A@odata.type":"Edm.Int32","A":"1","B":"1"}', None, None, {"A": 1, "B": "1"}),
    (b'{"A":1,"B":null,"C":2}', None, None, {"A": 1, "C": 2}),
    (b'{"A":null,"Timestamp":"x"}', None, None, {}),
    (b'{"L@odata.type":"Edm.Int64","L":"7","B":null}', None, None, {"L": LONG}),
    (b'{"A":1,"L@odata.type":"Edm.Int64","L":null}', None, None, {"A": 1}),
    (b'{"A@odata.type":"Edm.Nothing","A":null}', None, None, {}),
    (b'{"a":1,"A":true}', None, None, {"a": 1, "A": True}),
    (b'{"PartitionKEY":"p","rowKey":1}', None, None, {"PartitionKEY": "p", "rowKey": 1}),
]


@pytest.mark.parametrize(("body", "partition_key", "row_key", "properties"), DOCUMENTS)
def test_a_document_is_an_entity(
    body: bytes, partition_key: str | None, row_key: str | None, properties: Properties
) -> None:
    found = read_document(body)
    assert (found.partition_key, found.row_key) == (partition_key, row_key)
    assert repr(found.properties) == repr(properties)  # 1 == True == 1.0


# Each stands in a document by itself and beside a property with an annotation.
ANNOTATED = b'"Z@odata.type":"Edm.Int64","Z":"7"'
REFUSED = [
    # members, refusal, what its message says
    (b'"Much":2147483648', "400 InvalidInput", "The property Much: "),
    (b'"A":1,"Less":-2147483649,"B":"x"', "400 InvalidInput", "The property Less: "),
    (b'"A":null,"Much":2147483648', "400 InvalidInput", "The property Much: "),
    (b'"Much":1e999', "400 InvalidInput", "The property Much: "),
    (b'"Much":2147483648,"More":2147483649', "400 InvalidInput", "The property Much: "),
    (b'"RowKey":null', "400 PropertiesNeedValue", ""),
    (b'"PartitionKey":1', "400 InvalidInput", "The PartitionKey must be a string."),
    (b'"RowKey":true', "400 InvalidInput", "The RowKey must be a string."),
    (b'"1a":1', "400 PropertyNameInvalid", ""),
    (b'"A":1,"A":1', "400 DuplicatePropertiesSpecified", ""),
    (b'"A":null,"A":null', "400 DuplicatePropertiesSpecified", ""),
    (b'"RowKey":"a","RowKey":"a"', "400 DuplicatePropertiesSpecified", ""),
    (b'"A":{}', "400 InvalidInput", "The value of A is an object or array."),
    (b'"A":"\\udfff"', "400 InvalidInput", "The value of A is not well-formed text."),
    (b'"A":"%b"' % (b"x" * 32_769), "400 PropertyValueTooLarge", ""),
    (b",".join(b'"P%d":1' % n for n in range(253)), "400 TooManyProperties", ""),
    (b'"A@odata.type":"Edm.Int32","A":2147483648', "400 InvalidInput", "The property A: "),
    (b'"A@odata.type":"Edm.Nothing","A":1', "400 InvalidInput", "The property A: "),
    (b'"A@odata.type":"Edm.DateTime","A":"1600-01-01"', "400 OutOfRangeInput", "The 'A' parameter"),
    # Keys are checked first, and in this order.
    (b'"Much":2147483648,"RowKey":null', "400 PropertiesNeedValue", ""),
    (
        b'"A@odata.type":"Edm.DateTime","A":"1600-01-01","RowKey":1',
        "400 InvalidInput",
        "The RowKey",
    ),
    (b'"RowKey":null,"PartitionKey":5', "400 InvalidInput", "The PartitionKey"),
    # Names before the sizes and the form of values.
    (b'"A":"\\udfff","1a":1', "400 PropertyNameInvalid", ""),
    (b'"RowKey@odata.type":"Edm.Guid","RowKey":"r"', "400 InvalidInput", "The RowKey must be"),
]


@pytest.mark.parametrize(("members", "expected", "message"), REFUSED, ids=range(len(REFUSED)))
def test_what_cannot_be_an_entity_is_refused_alike_with_and_without_annotations(
    members: bytes, expected: str, message: str
) -> None:
    for body in (b"{%b}" % members, b"{%b,%b}" % (members, ANNOTATED),
                 b"{%b,%b}" % (ANNOTATED, members)):  # fmt: skip
        with pytest.raises(StorageError) as refused:
            read_document(body)
        assert f"{refused.value.row.status} {refused.value.row.code}" == expected
        assert message in refused.value.message


def test_what_is_null_counts_as_no_property() -> None:
    nulls = b",".join(b'"N%d":null' % n for n in range(1000))
    some = b",".join(b'"P%d":1' % n for n in range(252))
    assert len(read_document(b"{%b,%b}" % (nulls, some)).properties) == 252
    more = b'{%b,%b,"Q":1}' % (nulls, some)
    assert outcome(lambda: read_document(more)) == "400 TooManyProperties"


RAW = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**63]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=3),
)


def _read(members: dict[str, object]) -> str:
    """The entity but for Z, or the refusal with its message."""
    try:
        found = read_document(json.dumps(members).encode())
    except StorageError as error:
        return f"{error.row.code} {error.message}"
    properties = {name: value for name, value in found.properties.items() if name != "Z"}
    return repr((found.partition_key, found.row_key, properties))


@given(st.dictionaries(st.sampled_from(["A", "B", "C", "PartitionKey", "RowKey"]), RAW))
def test_an_annotation_changes_nothing_but_its_property(members: dict[str, object]) -> None:
    annotation = {"Z@odata.type": "Edm.Int64", "Z": "7"}
    assert _read(members) == _read({**members, **annotation}) == _read({**annotation, **members})


@pytest.mark.parametrize("shift", range(3))
def test_an_escape_is_no_member_wherever_a_long_document_is_cut(
    shift: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A document of 600 KB that consists of escaped quotation marks."""
    monkeypatch.setattr(odata_entities, "_QUOTES_MAX", 10 * 4)
    properties = {f"Text{number}": "a" * shift + '"' * 30_000 for number in range(10)}
    assert read_document(json.dumps(properties).encode()).properties == properties


LONG_DOCUMENTS: list[tuple[bytes, int]] = [
    # body, the least number of steps
    (json.dumps({f"Text{number}": "x" * 15_000 for number in range(30)}).encode(), 6),
    (json.dumps({f"Name{number}": number for number in range(190_000)}).encode(), 16),
    (b'{"A":' + b"[" * 4_000_000, 4),
]


@pytest.mark.parametrize(("body", "steps_least"), LONG_DOCUMENTS, ids=["texts", "many", "depth"])
def test_a_long_document_is_read_in_steps(body: bytes, steps_least: int) -> None:
    steps = entity_fields.read_document(body)
    assert not isinstance(steps, EntityDocument)
    count = 0
    with contextlib.suppress(StorageError):
        for _ in steps:
            count += 1
    assert count >= steps_least


@pytest.mark.parametrize("shift", [0, 1, 4, 9, 40])
def test_a_nested_value_is_found_wherever_the_search_is_cut(shift: int) -> None:
    """A document of names, too many for an entity, of which one has an array."""
    cut = odata_entities.LONG_BYTES // 2
    names = ",".join(f'"P{number:06}":1' for number in range(300_000)).encode()
    before = names[: names.rfind(b",", 0, cut)]
    before += b',"' + b"x" * (cut - len(before) - 8 + shift)
    body = b"{" + before + b'" : [1],' + names + b"}"
    assert outcome(lambda: read_document(body)) == "400 InvalidInput"
