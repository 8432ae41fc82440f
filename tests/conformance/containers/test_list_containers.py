"""List Containers: rules B-CLS-*."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from tests.conformance.answer import Answer, expect, expect_names, texts
from tests.conformance.client import HOST, Client
from tests.conformance.leasing import Leased
from tests.conformance.running import Running

NAMES = ("alpha", "beta-1", "beta-2", "beta2", "gamma")
PROPERTIES = (
    "Last-Modified",
    "Etag",
    "LeaseStatus",
    "LeaseState",
    "DefaultEncryptionScope",
    "DenyEncryptionScopeOverride",
    "HasImmutabilityPolicy",
    "HasLegalHold",
)


@pytest.fixture
def filled(account: Client) -> Client:
    """A client of an account that has these containers."""
    for name in reversed(NAMES):
        expect(account.put(f"/{name}?restype=container"), 201)
    return account


def names(answer: Answer) -> list[str]:
    """The names in a listing."""
    return texts(expect(answer, 200).xml, "Containers/Container/Name")


def one(answer: Answer, name: str) -> ET.Element:
    """The element of one container."""
    found = expect(answer, 200).xml.findall("Containers/Container")
    return next(element for element in found if element.findtext("Name") == name)


def test_an_empty_account(account: Client) -> None:
    """B-CLS-01."""
    answer = expect(account.get("/?comp=list"), 200)
    root = answer.xml
    assert answer["Content-Type"] == "application/xml"
    assert root.tag == "EnumerationResults"
    assert root.attrib == {"ServiceEndpoint": f"http://{HOST}:{account.port}/{account.account}/"}
    assert [child.tag for child in root] == ["Containers", "NextMarker"]
    assert root.findtext("NextMarker") == ""


def test_all_by_name(filled: Client) -> None:
    """B-CLS-01."""
    answer = filled.get("/?comp=list")
    assert names(answer) == sorted(NAMES)
    read = expect(filled.head("/alpha?restype=container"), 200)
    properties = one(answer, "alpha").find("Properties")
    assert properties is not None
    found = {child.tag: child.text for child in properties}
    assert set(PROPERTIES) <= set(found)
    assert (found["Etag"], found["Last-Modified"]) == (read.etag, read["Last-Modified"])
    assert (found["LeaseStatus"], found["LeaseState"]) == ("unlocked", "available")
    assert found["DefaultEncryptionScope"] == "$account-encryption-key"
    for name in PROPERTIES[5:]:
        assert found[name] == "false"
    assert {"PublicAccess", "LeaseDuration"}.isdisjoint(found)
    assert one(answer, "alpha").find("Metadata") is None


def test_lease_and_access_are_shown(server: Running, filled: Client) -> None:
    """B-CLS-01."""
    public = {"x-ms-blob-public-access": "blob"}
    expect(filled.put("/gamma?restype=container&comp=acl", public), 200)
    Leased(server, filled, "/beta2?restype=container").acquire(duration_s=-1)
    Leased(server, filled, "/beta-1?restype=container").into("expired(A)")
    answer = filled.get("/?comp=list")
    assert one(answer, "gamma").findtext("Properties/PublicAccess") == "blob"
    leased = one(answer, "beta2")
    assert leased.findtext("Properties/LeaseStatus") == "locked"
    assert leased.findtext("Properties/LeaseState") == "leased"
    assert leased.findtext("Properties/LeaseDuration") == "infinite"
    expired = one(answer, "beta-1")
    assert expired.findtext("Properties/LeaseStatus") == "unlocked"
    assert expired.findtext("Properties/LeaseState") == "expired"
    assert expired.find("Properties/LeaseDuration") is None


def test_what_was_sent_is_said(filled: Client) -> None:
    """B-CLS-01: Prefix, Marker, MaxResults only if sent."""
    root = filled.get("/?comp=list&prefix=b&maxresults=1").xml
    assert [child.tag for child in root] == ["Prefix", "MaxResults", "Containers", "NextMarker"]
    assert (root.findtext("Prefix"), root.findtext("MaxResults")) == ("b", "1")
    marker = root.findtext("NextMarker")
    assert marker
    root = filled.get(f"/?comp=list&prefix=b&marker={marker}").xml
    assert root.findtext("Marker") == marker


def test_prefix(filled: Client) -> None:
    """B-CLS-02."""
    assert names(filled.get("/?comp=list&prefix=beta")) == ["beta-1", "beta-2", "beta2"]
    assert names(filled.get("/?comp=list&prefix=beta-")) == ["beta-1", "beta-2"]
    assert names(filled.get("/?comp=list&prefix=delta")) == []
    assert names(filled.get("/?comp=list&prefix=")) == sorted(NAMES)


def test_include(filled: Client) -> None:
    """B-CLS-02."""
    pairs = {"x-ms-meta-Owner": "a<&>b", "x-ms-meta-x": ""}
    expect(filled.put("/alpha?restype=container&comp=metadata", pairs), 200)
    found = one(filled.get("/?comp=list&include=metadata"), "alpha").find("Metadata")
    assert found is not None
    assert {child.tag: child.text or "" for child in found} == {"Owner": "a<&>b", "x": ""}
    plain = filled.get("/?comp=list")
    for word in ("deleted", "system", "deleted,system", "Deleted"):
        answer = expect(filled.get(f"/?comp=list&include={word}"), 200)
        assert answer.body == plain.body
    assert b"<Owner>" in filled.get("/?comp=list&include=system,metadata").body
    answer = filled.get("/?comp=list&include=metadata,snapshots")
    expect_names(answer, 400, "InvalidQueryParameterValue", "include")


@pytest.mark.parametrize("size", [1, 2, 3, 5, 6])
def test_pages(filled: Client, size: int) -> None:
    """B-CLS-03."""
    found: list[str] = []
    marker = ""
    for _ in range(len(NAMES) + 1):
        root = expect(filled.get(f"/?comp=list&maxresults={size}&marker={marker}"), 200).xml
        page = texts(root, "Containers/Container/Name")
        assert len(page) <= size
        found += page
        marker = root.findtext("NextMarker") or ""
        if not marker:
            break
    assert marker == ""
    assert found == sorted(NAMES)


LISTS = ("/?comp=list", "/alpha?restype=container&comp=list")


@pytest.mark.parametrize("target", LISTS)
def test_maxresults(filled: Client, target: str) -> None:
    """B-CLS-04: List Blobs the same."""
    for number in ("0", "-1", "-5000"):
        answer = filled.get(f"{target}&maxresults={number}")
        expect_names(answer, 400, "OutOfRangeQueryParameterValue", "maxresults")
        assert answer.error["QueryParameterValue"] == number
        assert (answer.error["MinimumAllowed"], answer.error["MaximumAllowed"]) == ("1", "5000")
    for word in ("many", "1.5", "0x10", "1,000"):
        answer = filled.get(f"{target}&maxresults={word}")
        expect_names(answer, 400, "InvalidQueryParameterValue", "maxresults")
    for number in ("5000", "5001", "1000000000000"):
        expect(filled.get(f"{target}&maxresults={number}"), 200)


@pytest.mark.parametrize("target", LISTS)
@pytest.mark.parametrize("marker", ["nonsense", "AAAA", "!!", "alpha", "%00"])
def test_a_marker_from_elsewhere(filled: Client, target: str, marker: str) -> None:
    """B-CLS-04."""
    answer = filled.get(f"{target}&marker={marker}")
    expect_names(answer, 400, "InvalidQueryParameterValue", "marker")
