"""Documents as XML: block lists, stored policies, service properties, errors."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom import service_properties
from strongroom.errors import blob as blob_errors
from strongroom.errors.core import StorageError
from strongroom.service_properties import CorsRule, ServiceProperties
from strongroom.slices import run_to_completion
from strongroom.values import UNIX_EPOCH_TICKS, AccessPolicy
from strongroom.wire.blob.block_list import read_block_list, write_block_list
from strongroom.wire.core import service_properties_xml as properties_xml
from strongroom.wire.core.errors_xml import error_body
from strongroom.wire.core.signed_identifiers import (
    read_queue_identifiers,
    read_signed_identifiers,
    write_signed_identifiers,
)
from tests.refusals import outcome

DOCUMENT, NODE = "400 InvalidXmlDocument", "400 InvalidXmlNodeValue"
MISSING, UNSUPPORTED = "400 MissingRequiredXmlNode", "400 UnsupportedXmlNode"
HEAD = '<?xml version="1.0" encoding="utf-8"?>'


def test_block_lists_keep_kind_and_order() -> None:
    body = f"""{HEAD}
    <BlockList>
      <Latest>YQ==</Latest><Committed> Yg== </Committed>
      <Uncommitted>YQ&#x3D;=</Uncommitted><Latest></Latest>
    </BlockList>"""
    assert run_to_completion(read_block_list(body.encode())) == [
        ("Latest", "YQ=="),
        ("Committed", "Yg=="),
        ("Uncommitted", "YQ=="),
        ("Latest", ""),
    ]
    assert run_to_completion(read_block_list(b"<BlockList />")) == []


BLOCK_LISTS = [
    ("<BlockList><Newest>YQ==</Newest></BlockList>", DOCUMENT),
    ("<BlockList><Latest><b/></Latest></BlockList>", DOCUMENT),
    ("<Latest>YQ==</Latest>", DOCUMENT),
    ("", DOCUMENT),
    ("<!DOCTYPE BlockList><BlockList/>", DOCUMENT),
    ("<BlockList>" + "<Latest>YQ==</Latest>" * 50_000 + "</BlockList>", "ok"),
    ("<BlockList>" + "<Latest>YQ==</Latest>" * 50_001 + "</BlockList>", "400 BlockListTooLong"),
    ("<BlockList>" + " " * (16 << 20) + "</BlockList>", "413 RequestBodyTooLarge"),
]


@pytest.mark.parametrize(("body", "expected"), BLOCK_LISTS, ids=lambda value: value[:40])
def test_block_lists(body: str, expected: str) -> None:
    assert outcome(lambda: run_to_completion(read_block_list(body.encode()))) == expected


def test_only_the_sections_that_were_asked_for_are_written() -> None:
    blocks = [("YQ==", 5)]
    rows = "<Block><Name>YQ==</Name><Size>5</Size></Block>"
    both = f"<CommittedBlocks>{rows}</CommittedBlocks><UncommittedBlocks />"
    assert b"".join(write_block_list(blocks, [])).decode() == f"{HEAD}<BlockList>{both}</BlockList>"
    committed = f"<CommittedBlocks>{rows}</CommittedBlocks>"
    assert (
        b"".join(write_block_list(blocks, None)).decode()
        == f"{HEAD}<BlockList>{committed}</BlockList>"
    )
    assert "CommittedBlocks" not in b"".join(write_block_list(None, None)).decode()


def identifiers(*inner: str) -> bytes:
    rows = "".join(f"<SignedIdentifier>{one}</SignedIdentifier>" for one in inner)
    return f"<SignedIdentifiers>{rows}</SignedIdentifiers>".encode()


def policy(inner: str) -> bytes:
    return identifiers(f"<Id>x</Id><AccessPolicy>{inner}</AccessPolicy>")


POLICIES = [
    (b"", "ok"),
    (identifiers(), "ok"),
    (identifiers("<Id>x</Id>"), "ok"),
    (policy("<Start>2020-01-01</Start><Expiry>2021-01-01T00:00Z</Expiry>"), "ok"),
    (policy("<Permission>racwdl</Permission>"), "ok"),
    (policy("<Start /><Expiry></Expiry><Permission />"), "ok"),
    (identifiers(f"<Id>{'x' * 64}</Id>"), "ok"),
    (identifiers(f"<Id>{'x' * 65}</Id>"), NODE),
    (identifiers("<Id></Id>"), NODE),
    (identifiers("<AccessPolicy/>"), MISSING),
    (policy("<Start>yesterday</Start>"), NODE),
    (policy("<Permission>R!</Permission>"), NODE),
    (policy(f"<Permission>{'r' * 33}</Permission>"), NODE),
    (policy("<End>2020-01-01</End>"), UNSUPPORTED),
    (policy("<Start>2020-01-01</Start><Start>2020-01-01</Start>"), DOCUMENT),
    (identifiers(*[f"<Id>{number}</Id>" for number in range(5)]), "ok"),
    (identifiers(*[f"<Id>{number}</Id>" for number in range(6)]), DOCUMENT),
    (identifiers("<Id>a</Id>", "<Id>a</Id>"), DOCUMENT),
    (b"<SignedIdentifiers><Id>x</Id></SignedIdentifiers>", DOCUMENT),
    (b"<Other/>", DOCUMENT),
]


@pytest.mark.parametrize(("body", "expected"), POLICIES)
def test_policies(body: bytes, expected: str) -> None:
    assert outcome(lambda: read_signed_identifiers(body)) == expected


@pytest.mark.parametrize(
    ("letters", "expected"),
    [
        *((letters, "ok") for letters in (None, "r", "raup", "puar")),
        *((letters, DOCUMENT) for letters in ("rwdl", "d", "zz")),
    ],
)
def test_queues_have_fewer_letters(letters: str | None, expected: str) -> None:
    """Q-QUE-07."""
    body = write_signed_identifiers([AccessPolicy("id", permission=letters)])
    assert outcome(lambda: read_queue_identifiers(body)) == expected


def test_other_mistakes_in_the_policies_of_queues() -> None:
    """Q-QUE-07."""
    late = write_signed_identifiers([AccessPolicy("id", "yesterday")])
    assert outcome(lambda: read_queue_identifiers(late)) == NODE


MIDNIGHT = "2020-01-01T00:00:00.0000000Z"
TIMES = st.sampled_from([None, MIDNIGHT, "2020-01-01T00:00:00.1234567Z"])
IDS = st.text("ab<&\u00e9 ", min_size=1, max_size=64).filter(
    lambda text: text == text.strip() != ""
)
PERMISSIONS = st.sampled_from([None, "r", "racwdl"])
POLICY = st.builds(AccessPolicy, IDS, TIMES, TIMES, PERMISSIONS)


@given(st.lists(POLICY, max_size=5, unique_by=lambda policy: policy.id).map(tuple))
def test_policies_come_back(policies: tuple[AccessPolicy, ...]) -> None:
    assert read_signed_identifiers(write_signed_identifiers(policies)) == policies


@pytest.mark.parametrize("text", ["2020-01-01", "2020-01-01T00:00Z", "2020-01-01T00:00:00.0Z"])
def test_times_of_policies_have_seven_digits(text: str) -> None:
    """B-CON-07."""
    written = write_signed_identifiers([AccessPolicy("id", text, text)]).decode()
    assert f"<Start>{MIDNIGHT}</Start><Expiry>{MIDNIGHT}</Expiry>" in written


def test_an_identifier_without_a_policy_has_no_element_for_it() -> None:
    """B-CON-07."""
    written = write_signed_identifiers([AccessPolicy("id")])
    assert b"<SignedIdentifier><Id>id</Id></SignedIdentifier>" in written
    assert read_signed_identifiers(written) == (AccessPolicy("id"),)


RETENTION = "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>"
LOGGING = "<Version>1.0</Version><Delete>true</Delete><Read>false</Read><Write>true</Write>"
METRICS = "<Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs>"
RULE = (
    "<CorsRule><AllowedOrigins>http://a, http://b</AllowedOrigins>"
    "<AllowedMethods>GET,PUT</AllowedMethods><AllowedHeaders>*</AllowedHeaders>"
    "<ExposedHeaders /><MaxAgeInSeconds>5</MaxAgeInSeconds></CorsRule>"
)


def kept(days: str) -> str:
    inner = f"<Enabled>true</Enabled><Days>{days}</Days>"
    return f"<DeleteRetentionPolicy>{inner}</DeleteRetentionPolicy>"


PROPERTIES = [
    ("", "ok"),
    (f"<Logging>{LOGGING}{RETENTION}</Logging>", "ok"),
    (f"<HourMetrics>{METRICS}{RETENTION}</HourMetrics>", "ok"),
    ("<MinuteMetrics><Version>1.0</Version><Enabled>false</Enabled></MinuteMetrics>", "ok"),
    (f"<Cors>{RULE * 2}</Cors>", "ok"),
    ("<Cors />", "ok"),
    ("<DefaultServiceVersion>2021-12-02</DefaultServiceVersion>", "ok"),
    ("<DefaultServiceVersion />", "ok"),
    (kept("1"), "ok"),
    (kept("365"), "ok"),
    (
        "<StaticWebsite><Enabled>true</Enabled><IndexDocument>i</IndexDocument></StaticWebsite>",
        "ok",
    ),
    (f"<Logging>{LOGGING}</Logging>", MISSING),
    (f"<Logging>{RETENTION}</Logging>", MISSING),
    ("<HourMetrics><Enabled>true</Enabled></HourMetrics>", MISSING),
    ("<HourMetrics><Enabled>yes</Enabled></HourMetrics>", NODE),
    ("<DeleteRetentionPolicy><Enabled>true</Enabled></DeleteRetentionPolicy>", MISSING),
    *[(kept(days), NODE) for days in ("0", "366", "-1", "", "x", "9" * 5000)],
    ("<Cors><Rule/></Cors>", DOCUMENT),
    ("<Cors><CorsRule/></Cors>", MISSING),
    (f"<Cors>{RULE.replace('>5<', '>-5<')}</Cors>", NODE),
    (f"<Cors>{RULE.replace('>5<', '>99999999999<')}</Cors>", NODE),
    ("<DefaultServiceVersion>newest</DefaultServiceVersion>", NODE),
    ("<Unknown/>", UNSUPPORTED),
    ("<Cors /><Cors />", DOCUMENT),
    ("<StaticWebsite />", MISSING),
]


@pytest.mark.parametrize(("inner", "expected"), PROPERTIES, ids=lambda value: value[:60])
def test_properties(inner: str, expected: str) -> None:
    body = f"<StorageServiceProperties>{inner}</StorageServiceProperties>".encode()
    assert outcome(lambda: properties_xml.read_service_properties(body)) == expected


def test_properties_come_back() -> None:
    written = properties_xml.write_service_properties(service_properties.DEFAULTS["blob"])
    assert properties_xml.read_service_properties(written) == service_properties.DEFAULTS["blob"]
    rule = CorsRule(("http://a",), ("GET", "PUT"), ("x-*",), ("*",), 7)
    other = ServiceProperties(cors=(rule,), default_service_version="2021-12-02")
    written = properties_xml.write_service_properties(other)
    assert properties_xml.read_service_properties(written) == other


def test_sections_that_are_left_out_stay_as_they_are() -> None:
    rule = CorsRule(("*",), ("GET",))
    updated = service_properties.DEFAULTS["blob"].updated(ServiceProperties(cors=(rule,)))
    assert updated.cors == (rule,)
    assert updated.logging == service_properties.DEFAULTS["blob"].logging
    assert updated.updated(ServiceProperties(cors=())).cors == ()


def test_statistics() -> None:
    body = properties_xml.write_service_stats("live", UNIX_EPOCH_TICKS).decode()
    assert "<Status>live</Status><LastSyncTime>Thu, 01 Jan 1970 00:00:00 GMT</LastSyncTime>" in body
    assert "<LastSyncTime />" in properties_xml.write_service_stats("unavailable", None).decode()


def test_an_error() -> None:
    error = StorageError(blob_errors.BLOB_NOT_FOUND, extras=(("HeaderValue", "a<b\x00"),))
    assert error_body(error, "id-1", UNIX_EPOCH_TICKS).decode() == (
        f"{HEAD}<Error><Code>BlobNotFound</Code><Message>The specified blob does not exist.\n"
        "RequestId:id-1\nTime:1970-01-01T00:00:00.0000000Z</Message>"
        "<HeaderValue>a&lt;b\ufffd</HeaderValue></Error>"
    )


@given(st.lists(st.binary(min_size=1, max_size=64), max_size=5))
def test_written_ids_are_base64(ids: list[bytes]) -> None:
    texts = [base64.b64encode(one).decode() for one in ids]
    body = b"".join(write_block_list(None, [(text, 1) for text in texts])).decode()
    for text in texts:
        assert f"<Name>{text}</Name>" in body
