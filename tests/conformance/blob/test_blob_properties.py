"""Set Blob Properties: rules B-PRP-01 to B-PRP-05."""

from __future__ import annotations

import pytest

from tests.conformance.answer import expect, expect_names, metadata
from tests.conformance.blobs import body, md5, put, snapshot, stage
from tests.conformance.client import Client
from tests.conformance.copying import copy, source_url
from tests.conformance.running import Running
from tests.conformance.sas import service_sas

# The header that sets a property -> the one that shows it, and a value.
SIX = {
    "x-ms-blob-cache-control": ("Cache-Control", "no-cache"),
    "x-ms-blob-content-type": ("Content-Type", "text/plain"),
    "x-ms-blob-content-md5": ("Content-MD5", md5(b"anything")),
    "x-ms-blob-content-encoding": ("Content-Encoding", "gzip"),
    "x-ms-blob-content-language": ("Content-Language", "de"),
    "x-ms-blob-content-disposition": ("Content-Disposition", "inline"),
}
ALL = {name: value for name, (_, value) in SIX.items()}


@pytest.mark.parametrize("given", SIX)
def test_one_of_the_six_clears_the_others(
    server: Running, client: Client, container: str, given: str
) -> None:
    """B-PRP-01."""
    target = f"/{container}/b"
    put(client, target)
    first = expect(client.put(f"{target}?comp=properties", ALL), 200)
    found = client.head(target)
    assert {found[shown] for shown, _ in SIX.values()} == set(ALL.values())
    server.advance(2)
    second = expect(client.put(f"{target}?comp=properties", {given: ALL[given]}), 200)
    assert second.body == b""
    assert second.etag > first.etag
    assert second["Last-Modified"] != first["Last-Modified"]
    found = client.head(target)
    assert (found.etag, found["Last-Modified"]) == (second.etag, second["Last-Modified"])
    for name, (shown, value) in SIX.items():
        assert found.get(shown) == (value if name == given else None)


STANDARD = {"Content-Type": "text/other", "Cache-Control": "other", "Content-Language": "fr"}


@pytest.mark.parametrize("headers", [{}, STANDARD, dict.fromkeys(SIX, "")])
def test_none_of_the_six_clears_all(
    client: Client, container: str, headers: dict[str, str]
) -> None:
    """B-PRP-02."""
    target = f"/{container}/b"
    put(client, target)
    first = expect(client.put(f"{target}?comp=properties", ALL), 200)
    second = expect(client.put(f"{target}?comp=properties", headers), 200)
    assert second.etag > first.etag
    for found in (client.head(target), client.get(target)):
        assert not found.names() & {shown.lower() for shown, _ in SIX.values()}
    assert client.get(target).body == b"content"


def test_a_request_about_the_sequence_number_alone_leaves_the_six(
    client: Client, container: str
) -> None:
    """B-PRP-02."""
    target = f"/{container}/b"
    put(client, target)
    expect(client.put(f"{target}?comp=properties", ALL), 200)
    number = {"x-ms-blob-sequence-number": "1"}
    expect(client.put(f"{target}?comp=properties", number), 200)
    found = client.head(target)
    assert {found[shown] for shown, _ in SIX.values()} == set(ALL.values())
    language = {"x-ms-blob-content-language": "fr"}
    expect(client.put(f"{target}?comp=properties", number | language), 200)
    found = client.head(target)
    assert (found["Content-Language"], found.get("Content-Type")) == ("fr", None)


@pytest.mark.parametrize("text", [md5(b"something else"), "AQIDBA==", "no base64!", "A<&>B"])
def test_the_md5_is_stored_as_it_was_sent(client: Client, container: str, text: str) -> None:
    """B-PRP-03."""
    target = f"/{container}/b"
    put(client, target, b"content")
    expect(client.put(f"{target}?comp=properties", {"x-ms-blob-content-md5": text}), 200)
    assert client.head(target)["Content-MD5"] == text
    assert client.get(target)["Content-MD5"] == text
    part = expect(client.get(target, {"Range": "bytes=0-1"}), 206)
    assert (part["x-ms-blob-content-md5"], part.get("Content-MD5")) == (text, None)
    listed = expect(client.get(f"/{container}?restype=container&comp=list"), 200).xml
    assert [node.text for node in listed.iter("Content-MD5")] == [text]


def test_a_value_that_is_too_long_is_refused(client: Client, container: str) -> None:
    """B-PRP-03."""
    target = f"/{container}/b"
    put(client, target)
    for name in SIX:
        expect(client.put(f"{target}?comp=properties", {name: "a" * 4096}), 200)
        answer = client.put(f"{target}?comp=properties", {name: "a" * 4097})
        expect_names(answer, 400, "InvalidHeaderValue", name)


def test_a_cleared_type_everywhere(client: Client, container: str) -> None:
    """B-PRP-05."""
    target = f"/{container}/b"
    put(client, target)
    expect(client.put(f"{target}?comp=properties"), 200)
    taken = snapshot(client, target)
    expect(copy(client, source_url(client, target), f"/{container}/copy"), 202)
    for one in (target, f"{target}?snapshot={taken}", f"/{container}/copy"):
        found = expect(client.head(one), 200)
        assert not found.names() & {"content-type", "content-md5"}
    listed = expect(client.get(f"/{container}?restype=container&comp=list"), 200).xml
    assert {node.text for node in listed.iter("Content-Type")} == {None}
    token = service_sas(client.credential, container, "b", sp="r", rsct="text/over")
    assert client.anonymous.get(f"{target}?{token}")["Content-Type"] == "text/over"


def test_everything_else_stays(server: Running, client: Client, container: str) -> None:
    """B-PRP-04."""
    target = f"/{container}/b"
    rich = {"x-ms-meta-a": "1", "x-ms-tags": "k=v", "x-ms-access-tier": "Cool"}
    put(client, target, b"content", rich)
    taken = snapshot(client, target)
    before = client.head(target)
    server.advance(2)
    expect(client.put(f"{target}?comp=properties", ALL), 200)
    after = client.head(target)
    assert metadata(after) == {"a": "1"}
    for name in ("x-ms-creation-time", "x-ms-access-tier", "x-ms-tag-count", "Content-Length"):
        assert after[name] == before[name]
    assert body(client, target) == body(client, f"{target}?snapshot={taken}") == b"content"
    assert client.head(f"{target}?snapshot={taken}").get("Cache-Control") is None


def test_a_blob_that_is_not_there(client: Client, container: str) -> None:
    """B-PRP-04."""
    expect(client.put(f"/{container}/none?comp=properties", ALL), 404, "BlobNotFound")
    stage(client, f"/{container}/staged", "1", b"x")
    expect(client.put(f"/{container}/staged?comp=properties", ALL), 404, "BlobNotFound")
