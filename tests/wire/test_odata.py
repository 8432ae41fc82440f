"""OData for tables: formats, entity tags, refusals, documents of requests, URLs of entities."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.values import Scalar, iso7
from strongroom.wire.core import path
from strongroom.wire.table import odata, odata_documents, odata_entities, table_path
from strongroom.wire.table.odata import Metadata
from strongroom.wire.table.table_path import TableResource
from tests.refusals import OK, outcome, refusal

MOMENT = 635_000_000_000_000_000

FORMATS: list[tuple[str | None, str | None, object]] = [
    # Accept, $format, level or refusal
    (None, None, Metadata.MINIMAL),
    ("  ", None, Metadata.MINIMAL),
    ("*/*", None, Metadata.MINIMAL),
    ("application/json", None, Metadata.MINIMAL),
    ("application/json;odata=nometadata", None, Metadata.NONE),
    ("application/json ; ODATA=FULLMETADATA ; q=1", None, Metadata.FULL),
    ('application/json;odata="minimalmetadata"', None, Metadata.MINIMAL),
    ("text/html, application/json;odata=nometadata", None, Metadata.NONE),
    ("application/json;odata=nometadata, application/json;odata=fullmetadata", None, Metadata.NONE),
    ("application/atom+xml", "json", Metadata.MINIMAL),
    ("application/json", "atom", "415 AtomFormatNotSupported"),
    ("application/atom+xml;type=feed", None, "415 AtomFormatNotSupported"),
    ("text/xml,text/html", None, "415 AtomFormatNotSupported"),
    ("application/json;odata=verbose", None, "415 JsonVerboseFormatNotSupported"),
    ("application/json;odata=", None, "415 MediaTypeNotSupported"),
    ("text/html", None, "415 MediaTypeNotSupported"),
    (",", None, "415 MediaTypeNotSupported"),
    ("application/json;odata=fullmetadata", "", Metadata.FULL),
    ("application/atom+xml", " ", "415 AtomFormatNotSupported"),
    ("application/json;odata=fullmetadata;q=0, */*", None, Metadata.MINIMAL),
    (
        "application/json;odata=nometadata;q=0.5, application/json;odata=fullmetadata;q=0.501",
        None,
        Metadata.FULL,
    ),
    ("application/json;odata=nometadata; Q=0.1, text/html", None, Metadata.NONE),
    ("application/json;q=0", None, "415 MediaTypeNotSupported"),
    ("application/json;odata=nometadata;q=0.000", None, "415 MediaTypeNotSupported"),
    ("application/json;odata=nometadata;q=nan", None, Metadata.NONE),
    ("application/json;odata=nometadata;q=", None, Metadata.NONE),
]


@pytest.mark.parametrize(("accept", "asked_format", "expected"), FORMATS)
def test_formats(accept: str | None, asked_format: str | None, expected: object) -> None:
    if isinstance(expected, Metadata):
        assert odata.negotiate(accept, asked_format) is expected
    else:
        assert outcome(lambda: odata.negotiate(accept, asked_format)) == expected


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [
        (None, OK),
        ("", OK),
        ("application/json;odata=fullmetadata;charset=utf-8", OK),
        ("application/atom+xml", "415 AtomFormatNotSupported"),
        ("application/json;odata=verbose", "415 JsonVerboseFormatNotSupported"),
        ("text/plain", "415 MediaTypeNotSupported"),
    ],
)
def test_content_types(content_type: str | None, expected: str) -> None:
    assert outcome(lambda: odata.check_content_type(content_type)) == expected


def test_an_entity_tag_is_its_timestamp() -> None:
    text = odata.etag_text(MOMENT)
    assert text == f"W/\"datetime'{iso7(MOMENT).replace(':', '%3A')}'\""
    assert odata.read_match(text) == odata.read_match(f" {text.replace('%3A', ':')} ") == MOMENT
    assert odata.read_match("*") == odata.read_match(" * ") is None


@pytest.mark.parametrize(
    "text", ["", "x", '"0x8D"', "W/\"datetime'2013'\"*", "datetime'2013-08-09T18%3A55%3A48Z'",
             'W/"a"b"', 'W/"a", W/"b"', 'w/"a"'],
)  # fmt: skip
def test_tags_that_no_entity_has(text: str) -> None:
    assert outcome(lambda: odata.read_match(text)) == "400 InvalidInput"


@pytest.mark.parametrize(
    "text", ['W/"wrong"', ' W/"" ', "W/\"datetime''\"", "W/\"datetime'x'\"",
             "W/\"datetime'\u0662\u0660\u0661\u0663-08-09'\"", "W/\"datetime'" + "9" * 70 + "'\""],
)  # fmt: skip
def test_weak_tags_of_another_form_match_no_entity(text: str) -> None:
    """T-WRI-06."""
    assert odata.read_match(text) == odata.NO_TIMESTAMP


def test_a_refusal_is_json() -> None:
    error = StorageError(errors.RESOURCE_NOT_FOUND, 'It says "no": \ud800\n\u00e9')
    found = json.loads(odata.error_body(error, "id", MOMENT))
    assert found == {
        "odata.error": {
            "code": "ResourceNotFound",
            "message": {
                "lang": "en-US",
                "value": f'It says "no": ?\n\u00e9\nRequestId:id\nTime:{iso7(MOMENT)}',
            },
        }
    }


DOCUMENTS: list[tuple[bytes, dict[str, Scalar | None], dict[str, str]]] = [
    # body, values, types that stand beside them
    (b"{}", {}, {}),
    (b'\xef\xbb\xbf{"A":1}', {"A": 1}, {}),
    (b'{"A":"x","B":null,"C":1.0,"D":true}', {"A": "x", "B": None, "C": 1.0, "D": True}, {}),
    (b'{"D":0,"C":false,"B":"12:00","A":-0.0}', {"D": 0, "C": False, "B": "12:00", "A": -0.0}, {}),
    (b'{"A@odata.type":"Edm.Int64","A":"7"}', {"A": "7"}, {"A": "Edm.Int64"}),
    (b'{"A":"7","A@odata.type":"Edm.Int64"}', {"A": "7"}, {"A": "Edm.Int64"}),
    (b'{"B":1,"A":"7","A@odata.type":"Edm.Int64"}', {"B": 1, "A": "7"}, {"A": "Edm.Int64"}),
    (b'{"A@odata.type":"Edm.Guid","A":null}', {"A": None}, {"A": "Edm.Guid"}),
    (b'{"B@odata.type":"Edm.Int64","A":1}', {"A": 1}, {}),
    (b'{"odata.etag":{"x":[]},"odata.type":"x","A@x":[1],"A":1}', {"A": 1}, {}),
    (b'{"a":1,"A":2}', {"a": 1, "A": 2}, {}),
    (b'{"Timestamp":{"x":[]},"A":1,"Timestamp":2}', {"A": 1}, {}),
    (b'{"Timestamp":1,"A":1}', {"A": 1}, {}),
    (b'{"Timestamp@odata.type":"Edm.DateTime","Timestamp":"x"}', {}, {}),
    (b'{"A":9007199254740993}', {"A": 9007199254740993}, {}),
]


@pytest.mark.parametrize(("body", "values", "types"), DOCUMENTS)
def test_documents_of_entities(
    body: bytes, values: dict[str, Scalar | None], types: dict[str, str]
) -> None:
    found = odata_entities.read_entity(body)
    assert repr(found.values) == repr(values)  # 1 == True == 1.0
    assert dict(found.types) == types


PLAIN: list[tuple[bytes, bool]] = [
    # members of a document, whether it is plain
    (b"", True),
    (b'"A":"","B":"x\\n","C":"12:00"', True),
    (b'"A":"a : b"', False),
    (b'"A":"\\":"', False),
    (b'"A":true,"B":0,"C":1.5,"D":-0.0,"E":1e300', True),
    (b'"A":-2147483648,"B":2147483647', True),
    (b'"A":-2147483649', False),
    (b'"A":1,"B":2147483648', False),
    (b'"A":1,"B":null', False),
    (b'"A":"\\ud83d\\ude00"', False),
    (b'"A":"7","A@odata.type":"Edm.Int64"', False),
    (b'"A":"x","B":"%b"' % (b"x" * 16_384), False),
]


@pytest.mark.parametrize(("members", "plain"), PLAIN, ids=range(len(PLAIN)))
def test_plain_documents(members: bytes, plain: bool) -> None:
    found = odata_entities.read_entity(b"{%b}" % members)
    assert found.is_plain is plain


BAD = [
    b"", b"[]", b"1", b'"x"', b"null", b"{", b'{"A":1}x', b'{"A":}', b"{'A':1}", b'{"A":NaN}',
    b'{"A":Infinity}', b'{"A":-Infinity}', b'{"A":\xff}', b'\xff\xfe{\x00}\x00', b'{"A":[]}',
    b'{"A":{}}', b'{"A":{"B":1}}', b'{"A@odata.type":1,"A":1}', b'{"A":' + b"[" * 100_000,
    b'{"A":' + b"7" * 5_000 + b"}", b'{"A":"\n"}',
]  # fmt: skip


@pytest.mark.parametrize("body", BAD, ids=range(len(BAD)))
def test_bodies_that_are_no_entity(body: bytes) -> None:
    assert outcome(lambda: odata_entities.read_entity(body)) == "400 InvalidInput"


@pytest.mark.parametrize(
    "body",
    [
        b'{"A":1,"A":1}',
        b'{"A":null,"A":1}',
        b'{"RowKey":"a","RowKey":"b"}',
        b'{"A@odata.type":"Edm.Int64","A":"1","A@odata.type":"Edm.String"}',
        *(b'{"Z":"a:b","A":1,"A"%b:2}' % space for space in (b"", b" ", b"\t", b"\n", b"\r")),
        b'{"Z":"\\":","A":1,"A" :2}',
    ],
)
def test_a_property_twice(body: bytes) -> None:
    """T-FMT-08."""
    expected = "400 DuplicatePropertiesSpecified"
    assert outcome(lambda: odata_entities.read_entity(body)) == expected


def test_a_name_of_a_table_twice() -> None:
    body = b'{"TableName":"abc","TableName":"xyz"}'
    expected = "400 DuplicatePropertiesSpecified"
    assert outcome(lambda: odata_entities.read_table_name(body)) == expected


URLS: list[tuple[str, TableResource | None]] = [
    ("Tables", TableResource("Tables")),
    ("Tables()", TableResource("Tables")),
    ("Tables('a')", TableResource("Tables", "a")),
    ("Tables( 'a''b' )", TableResource("Tables", "a'b")),
    ("abc", TableResource("abc")),
    ("abc( )", TableResource("abc")),
    ("$batch", TableResource("$batch")),
    ("abc(PartitionKey='p',RowKey='r')", TableResource("abc", ("p", "r"))),
    ("abc(RowKey='r', PartitionKey='p')", TableResource("abc", ("p", "r"))),
    ("abc(PartitionKey='',RowKey='')", TableResource("abc", ("", ""))),
    ("abc(PartitionKey='a'',RowKey=''b',RowKey='\n)')",
     TableResource("abc", ("a',RowKey='b", "\n)"))),
    ("abc('p')", None),
    ("abc(PartitionKey='p')", None),
    ("abc(PartitionKey='p',PartitionKey='p')", None),
    ("abc(PartitionKey='p',RowKey='r',RowKey='r')", None),
    ("abc(PartitionKey='p',RowKey='r',)", None),
    ("abc(PartitionKey='p' RowKey='r')", None),
    ("abc(PartitionKey='p',RowKey='r'x)", None),
    ("abc(PartitionKey='p',RowKey=r)", None),
    ("abc(PartitionKey='p,RowKey='r')", None),
    ("abc(PartitionKey='p',RowKey='r')x", None),
    ("abc(", None),
    ("abc)", None),
    ("(PartitionKey='p',RowKey='r')", None),
    ("Tables(a)", None),
    ("Tables('a)", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "found"), URLS)
def test_segments_of_urls(text: str, found: TableResource | None) -> None:
    if found is None:
        assert outcome(lambda: table_path.parse_resource(text)) == "400 InvalidUri"
    else:
        assert table_path.parse_resource(text) == found


@given(st.text(), st.text())
def test_every_segment_is_read_or_refused(name: str, inside: str) -> None:
    refused = refusal(lambda: table_path.parse_resource(f"{name}({inside})"))
    assert refused is None or refused.row is errors.INVALID_URI


WELL_FORMED = st.text(st.characters(exclude_categories=["Cs"]))


@given(WELL_FORMED, WELL_FORMED)
def test_the_link_of_an_entity_leads_to_it(partition_key: str, row_key: str) -> None:
    link = odata_documents.entity_link("abc", partition_key, row_key)
    assert link.isascii()
    target = path.parse(f"/account/{link}", None)
    text = target.container if target.blob is None else f"{target.container}/{target.blob}"
    assert text is not None
    found = table_path.parse_resource(text)
    assert found == TableResource("abc", (partition_key, row_key))


NAMES = [
    (b'{"TableName":"abc"}', "abc"),
    (b'{"odata.type":"x","TableName":"abc","Other":[1]}', "abc"),
]


@pytest.mark.parametrize("body", [b"{}", b'{"TableName":""}', b'{"TableName":1}',
                                  b'{"TableName":null}', b'{"Name":"abc"}'])  # fmt: skip
def test_documents_that_name_no_table(body: bytes) -> None:
    assert outcome(lambda: odata_entities.read_table_name(body)) == "400 PropertiesNeedValue"


@pytest.mark.parametrize(("body", "name"), NAMES)
def test_documents_that_name_a_table(body: bytes, name: str) -> None:
    assert odata_entities.read_table_name(body) == name
