"""The address in a URL, and the operation of a request: rules B-ADR-*."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import unquote

import pytest

from tests.conformance.answer import expect, expect_names, texts
from tests.conformance.client import PUT_BLOB, Client
from tests.conformance.copying import readable
from tests.conformance.rows import NEEDS_HIERARCHY, NOT_YET, request_of
from tests.conformance.running import Running
from tests.conformance.sas import service_sas
from tests.operations.transcript import Row


@pytest.mark.parametrize(
    ("put", "got"),
    [
        ("a%2Fb", "a/b"),
        ("a/b", "a%2fb"),
        ("%C3%A9", "%c3%a9"),
        ("a//b", "a%2F%2Fb"),
        ("x%2525", "x%2525"),
    ],
)
def test_two_spellings_of_one_blob(client: Client, container: str, put: str, got: str) -> None:
    """B-ADR-01: the name is percent-decoded once."""
    expect(client.put(f"/{container}/{put}", PUT_BLOB, b"one"), 201)
    assert expect(client.get(f"/{container}/{got}"), 200).body == b"one"
    assert len(texts(client.get(f"/{container}?restype=container&comp=list").xml, ".//Name")) == 1


def test_dot_and_empty_segments_are_kept(client: Client, container: str) -> None:
    """B-ADR-01: `/c/a/../b` is another blob than `/c/b`."""
    names = ["b", "a/../b", "a/./b", "a//b", "./b", "../b"]
    for name in names:
        expect(client.put(f"/{container}/{name}", PUT_BLOB, name.encode()), 201)
    for name in names:
        assert expect(client.get(f"/{container}/{name}"), 200).body == name.encode()
    listed = client.get(f"/{container}?restype=container&comp=list").xml
    assert texts(listed, ".//Name") == sorted(names)


def test_host_style_and_path_style_name_the_same_blob(
    server: Running, client: Client, container: str
) -> None:
    """B-ADR-02."""
    hosted = client.another(prefix="")
    host = {"Host": f"{client.account}.blob.localhost:{server.port}"}
    expect(hosted.put(f"/{container}/b", {**PUT_BLOB, **host}, b"host"), 201)
    assert expect(client.get(f"/{container}/b"), 200).body == b"host"
    for other in ("storage.example", "127.0.0.1", "localhost:80", "[::1]:10000"):
        assert expect(client.get(f"/{container}/b", {"Host": other}), 200).body == b"host"
    hosted.close()


def test_the_secondary_reads_as_the_primary_and_writes_nothing(
    server: Running, client: Client, container: str
) -> None:
    """B-ADR-03, in the path and in the host."""
    expect(client.put(f"/{container}/b", PUT_BLOB, b"text"), 201)
    secondary = client.another(prefix=f"/{client.account}-secondary")
    hosted = client.another(prefix="")
    host = {"Host": f"{client.account}-secondary.blob.localhost:{server.port}"}
    # SharedKey signs the primary's path, so only the host form distinguishes the two.
    assert expect(hosted.get(f"/{container}/b", host), 200).body == b"text"
    expect(hosted.put(f"/{container}/b", {**PUT_BLOB, **host}, b"x"), 403, SECONDARY)
    expect(hosted.delete(f"/{container}/b", host), 403, SECONDARY)
    expect(hosted.put(f"/{container}2?restype=container", host), 403, SECONDARY)
    assert expect(secondary.get(f"/{container}/b"), 200).body == b"text"
    expect(secondary.put(f"/{container}/b", PUT_BLOB, b"x"), 403, SECONDARY)
    assert expect(client.get(f"/{container}/b"), 200).body == b"text"
    expect(client.head(f"/{container}2?restype=container"), 404, "ContainerNotFound")
    secondary.close()
    hosted.close()


SECONDARY = "InsufficientAccountPermissions"


def test_a_lone_segment_is_a_blob_of_the_root_container(account: Client) -> None:
    """B-ADR-04."""
    expect(account.put("/b.txt", PUT_BLOB, b"root"), 404, "ContainerNotFound")
    expect(account.get("/b.txt"), 404, "ContainerNotFound")
    expect(account.put("/$root?restype=container"), 201)
    expect(account.put("/b.txt", PUT_BLOB, b"root"), 201)
    assert expect(account.get("/$root/b.txt"), 200).body == b"root"
    assert expect(account.get("/b.txt"), 200).body == b"root"
    expect(account.delete("/b.txt"), 202)
    expect(account.get("/$root/b.txt"), 404, "BlobNotFound")


def test_a_put_without_type_or_source(client: Client, container: str) -> None:
    """B-ADR-05."""
    target = f"/{container}/b"
    expect_names(client.put(target), 400, "MissingRequiredHeader", "x-ms-blob-type")
    for word in ("Block", "", "blob", "BlockBlob2"):
        answer = client.put(target, {"x-ms-blob-type": word})
        expect_names(answer, 400, "InvalidHeaderValue", "x-ms-blob-type")
        assert answer.error["HeaderValue"] == word
    expect(client.head(target), 404, "BlobNotFound")


def test_a_copy_source_decides_which_copy_it_is(client: Client, container: str) -> None:
    """B-ADR-06: the answers distinguish the operations."""
    expect(client.put(f"/{container}/source", PUT_BLOB, b"source"), 201)
    source = {"x-ms-copy-source": readable(client, f"{client.url}/{container}/source")}
    target = f"/{container}/b"
    sync = {**source, "x-ms-requires-sync": "true"}
    expect(client.put(target, sync), 202)
    # Only Copy Blob From URL takes the source's MD5, and judges it.
    wrong = {**sync, "x-ms-source-content-md5": "AAAAAAAAAAAAAAAAAAAAAA=="}
    expect(client.put(target, wrong), 400, "Md5Mismatch")
    expect(client.put(target, {**wrong, **PUT_BLOB}), 400, "Md5Mismatch")
    expect(client.put(target, {**source, **PUT_BLOB}), 201)
    expect(client.put(target, source), 202)
    block = expect(client.put(f"{target}?comp=block&blockid=QQ==", source), 201)
    assert block.get("ETag") is None


@pytest.mark.parametrize(
    ("method", "target", "name"),
    [
        ("GET", "/", "restype"),
        ("GET", "/{c}?comp=nothing&restype=container", "comp"),
        ("GET", "/{c}?restype=nothing", "restype"),
        ("GET", "/{c}/b?comp=nothing", "comp"),
        ("PUT", "/{c}/b?comp=acl", "comp"),
        ("GET", "/?comp=nothing", "comp"),
        ("GET", "/?restype=service", "restype"),
        ("GET", "/{c}/b?restype=container", "restype"),
        ("PUT", "/{c}/b?restype=service&comp=properties", "restype"),
        ("GET", "/{c}/b?comp=metadata&comp=properties", "comp"),
        ("GET", "/{c}/b?comp=metadata&comp=metadata", "comp"),
        ("GET", "/{c}?restype=container&restype=account", "restype"),
        ("GET", "/{c}/b?snapshot=2026-01-02T03:04:05.1234567Z&snapshot=x", "snapshot"),
    ],
)
def test_a_query_that_no_operation_has(
    client: Client, container: str, method: str, target: str, name: str
) -> None:
    """B-ADR-07."""
    answer = client.send(method, target.replace("{c}", container))
    expect_names(answer, 400, "InvalidQueryParameterValue", name)


@pytest.mark.parametrize(
    ("method", "target", "allow"),
    [
        ("POST", "/{c}?restype=container", {"DELETE", "GET", "HEAD", "PUT"}),
        ("DELETE", "/{c}?restype=container&comp=metadata", {"GET", "HEAD", "PUT"}),
        ("DELETE", "/{c}?restype=container&comp=lease", {"PUT"}),
        ("PUT", "/{c}?restype=container&comp=list", {"GET"}),
        ("POST", "/{c}/b", {"DELETE", "GET", "HEAD", "PUT"}),
        ("GET", "/{c}/b?comp=lease", {"PUT"}),
        ("PATCH", "/?comp=list", {"GET"}),
        ("DELETE", "/?restype=service&comp=properties", {"GET", "PUT"}),
        ("MERGE", "/{c}/b?comp=metadata", {"GET", "HEAD", "PUT"}),
    ],
)
def test_a_method_that_the_resource_does_not_have(
    client: Client, container: str, method: str, target: str, allow: set[str]
) -> None:
    """B-ADR-08."""
    answer = client.send(method, target.replace("{c}", container))
    expect(answer, 405, "UnsupportedHttpVerb")
    assert set(answer["Allow"].split(", ")) == allow


@pytest.mark.parametrize("method", ["FETCH", "get", "PROPFIND"])
def test_a_word_that_is_no_method(client: Client, container: str, method: str) -> None:
    """B-ADR-08."""
    expect(client.send(method, f"/{container}/b"), 400, "InvalidHttpVerb")


@pytest.mark.parametrize("row", NOT_YET, ids=lambda row: row.id)
def test_what_is_not_served_says_so(
    client: Client, container: str, new_name: Callable[[], str], row: Row
) -> None:
    """B-ADR-09."""
    made = expect(client.put(f"/{container}/b", PUT_BLOB, b"as it was"), 201)
    for place in (container, new_name()):
        sample = request_of(row, place)
        answer = client.send(sample.method, sample.target, sample.headers, sample.body)
        assert expect(answer, 501, "NotImplemented").get("Retry-After") is None
        assert f" {row.operation} " in answer.error["Message"]
    assert client.head(f"/{container}/b").etag == made.etag
    refused = client.anonymous.send(sample.method, sample.target, sample.headers, sample.body)
    expect(refused, 401, "NoAuthenticationInformation")


@pytest.mark.parametrize(
    ("method", "query", "headers"),
    [
        ("PUT", "?resource=file", {}),
        ("PUT", "?Resource=Directory", {"x-ms-blob-type": "BlockBlob"}),
        ("PATCH", "?action=append&position=0", {}),
        ("HEAD", "?action=getStatus", {}),
        ("PUT", "?mode=legacy", {"x-ms-rename-source": "/c/old"}),
    ],
)
def test_data_lake_requests_say_so(
    client: Client, container: str, method: str, query: str, headers: dict[str, str]
) -> None:
    """B-ADR-14."""
    made = expect(client.put(f"/{container}/b", PUT_BLOB, b"as it was"), 201)
    answer = client.send(method, f"/{container}/b{query}", headers)
    expect(answer, 501, "NotImplemented")
    if method != "HEAD":
        assert "Data Lake (dfs)" in answer.error["Message"]
    assert client.head(f"/{container}/b").etag == made.etag
    token = service_sas(client.credential, container)
    answer = client.send(method, f"/{container}/b{query}&{token}", headers, auth=None)
    expect(answer, 501, "NotImplemented")


@pytest.mark.parametrize("row", NEEDS_HIERARCHY, ids=lambda row: row.id)
def test_what_needs_a_hierarchical_namespace_is_refused_so(
    client: Client, container: str, new_name: Callable[[], str], row: Row
) -> None:
    """B-ADR-18: whether the blob exists or not, by a token too; nothing changes."""
    made = expect(client.put(f"/{container}/b", PUT_BLOB, b"as it was"), 201)
    token = service_sas(client.credential, container, sp="rw")
    code = "HierarchicalNamespaceNotEnabled"
    for blob in ("b", "none", "dir/none"):
        sample = request_of(row, container, blob)
        expect(client.send(sample.method, sample.target, sample.headers), 400, code)
        target = sample.with_query(token)
        expect(client.send(sample.method, target, sample.headers, auth=None), 400, code)
    assert client.head(f"/{container}/b").etag == made.etag
    refused = client.anonymous.send(sample.method, sample.target, sample.headers)
    expect(refused, 401, "NoAuthenticationInformation")
    sample = request_of(row, new_name())
    missing = client.send(sample.method, sample.target, sample.headers)
    expect(missing, 404, "ContainerNotFound")


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("path", ["", "/", "//", "/%2F"])
def test_a_client_asks_a_container_for_its_hierarchical_namespace(
    client: Client, container: str, new_name: Callable[[], str], method: str, path: str
) -> None:
    """B-ADR-18."""
    query = "?action=getAccessControl&upn=false"
    answer = client.send(method, f"/{container}{path}{query}")
    expect(answer, 400, "HierarchicalNamespaceNotEnabled")
    answer = client.send(method, f"/{new_name()}{path}{query}")
    expect(answer, 404, "ContainerNotFound")


def test_a_parameter_of_data_lake_with_another_value_has_no_effect(
    client: Client, container: str
) -> None:
    """B-ADR-11 B-ADR-14."""
    expect(client.put(f"/{container}/b", PUT_BLOB, b"x"), 201)
    assert expect(client.get(f"/{container}/b?action=view&resource=mine"), 200).body == b"x"


UNSERVED_HEADERS = {
    "x-ms-encryption-key": "AAAA",
    "x-ms-encryption-key-sha256": "AAAA",
    "x-ms-encryption-algorithm": "AES256",
    "x-ms-source-encryption-key": "AAAA",
    "x-ms-source-encryption-key-sha256": "AAAA",
    "x-ms-source-encryption-algorithm": "AES256",
}


@pytest.mark.parametrize("name", UNSERVED_HEADERS)
def test_a_header_that_asks_for_more(client: Client, container: str, name: str) -> None:
    """B-ADR-10."""
    headers = {**PUT_BLOB, name: UNSERVED_HEADERS[name]}
    answer = expect(client.put(f"/{container}/b", headers, b"x"), 501, "NotImplemented")
    assert name in answer.error["Message"]
    expect(client.head(f"/{container}/b"), 404, "BlobNotFound")


@pytest.mark.parametrize(
    ("name", "value"),
    [("x-ms-copy-source-authorization", "Bearer x")],
)
def test_what_copy_blob_does_not_take_from_its_source(
    client: Client, container: str, name: str, value: str
) -> None:
    """B-ADR-10."""
    expect(client.put(f"/{container}/source", PUT_BLOB, b"x"), 201)
    source = {"x-ms-copy-source": f"{client.url}/{container}/source"}
    answer = expect(client.put(f"/{container}/b", {**source, name: value}), 501, "NotImplemented")
    assert name in answer.error["Message"]
    expect(client.head(f"/{container}/b"), 404, "BlobNotFound")


@pytest.mark.parametrize("query", ["showOnly=files", "show%4Fnly=files"])
def test_a_list_parameter_that_asks_for_more(client: Client, container: str, query: str) -> None:
    """B-ADR-10."""
    listed = client.get(f"/{container}?restype=container&comp=list&{query}")
    message = expect(listed, 501, "NotImplemented").error["Message"]
    assert f" {unquote(query.partition('=')[0])} " in message
    assert listed.get("Retry-After") is None


def test_parameter_names_in_any_case_and_unknown_ones(client: Client, container: str) -> None:
    """B-ADR-11."""
    expect(client.put(f"/{container}/b", PUT_BLOB, b"x"), 201)
    listed = client.get(f"/{container}?RESTYPE=container&Comp=LIST&MaxResults=5&surprise=1&other")
    assert texts(expect(listed, 200).xml, ".//Name") == ["b"]
    expect(client.get(f"/{container}/b?surprise=1&comp2=acl"), 200)


@pytest.mark.parametrize("path", ["%", "%4", "%zz", "a%2", "%ff", "a%C3", "%ED%A0%80", "%c0%af"])
def test_a_path_that_cannot_be_decoded(client: Client, container: str, path: str) -> None:
    """B-ADR-12."""
    expect(client.get(f"/{container}/{path}"), 400, "InvalidUri")
    expect(client.get(f"/{container}{path}?restype=container"), 400, "InvalidUri")
    expect(client.put(f"/{container}/{path}", PUT_BLOB, b"x"), 400, "InvalidUri")
    # A URL that cannot be decoded cannot be signed either, so it is checked before the credentials.
    listed = client.anonymous.get(f"/{container}?restype=container&comp=list&prefix={path}")
    expect(listed, 400, "InvalidUri")


@pytest.mark.parametrize(
    "name",
    [
        "If-Match",
        "If-None-Match",
        "If-Modified-Since",
        "Range",
        "Content-MD5",
        "x-ms-range",
        "x-ms-lease-id",
        "x-ms-copy-source",
        "x-ms-if-tags",
        "x-strongroom-wait",
    ],
)
def test_a_header_of_one_value_twice(client: Client, container: str, name: str) -> None:
    """B-ADR-13: which one is meant cannot be known; nothing is done."""
    target = f"/{container}/b"
    made = expect(client.put(target, PUT_BLOB, b"text"), 201)
    token = service_sas(client.credential, container, sp="rw")
    twice = [*PUT_BLOB.items(), (name, made.etag), (name.upper(), made.etag)]
    answer = client.anonymous.put(f"{target}?{token}", twice, b"other")
    expect_names(answer, 400, "InvalidHeaderValue", name)
    expect_names(client.put(target, twice, b"other"), 400, "InvalidHeaderValue", name)
    assert expect(client.get(target), 200).body == b"text"


@pytest.mark.parametrize("name", ["Accept", "Via", "X-Forwarded-For", "Prefer", "Cookie"])
def test_a_list_over_two_lines(client: Client, container: str, name: str) -> None:
    """B-ADR-13."""
    expect(client.put(f"/{container}/b", PUT_BLOB, b"text"), 201)
    twice = [(name, "one"), (name, "two")]
    token = service_sas(client.credential, container)
    expect(client.anonymous.get(f"/{container}/b?{token}", twice), 200)
    expect(client.get(f"/{container}/b", twice), 200)
