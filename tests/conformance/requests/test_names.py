"""Names of containers and blobs: rules B-NAM-*."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from tests.conformance.answer import expect, texts
from tests.conformance.client import PUT_BLOB, Client
from tests.conformance.copying import copy, source_url
from tests.conformance.rows import SERVED, request_of
from tests.conformance.sas import service_sas
from tests.operations.transcript import Row

LENGTH = "The specified resource name length is not within the permissible limits."
IN_CONTAINERS = [
    row for row in SERVED if "{container}" in row.path and "get_account_info" not in row.id
]


@pytest.mark.parametrize("row", IN_CONTAINERS, ids=lambda row: row.id)
def test_a_container_name_of_another_length(client: Client, row: Row) -> None:
    """B-NAM-01: on every operation."""
    for name in ("ab", "a" * 64):
        sample = request_of(row, name)
        answer = client.send(sample.method, sample.target, sample.headers, sample.body)
        reason = f"{LENGTH} It has {len(name)} characters, and 3 to 63 are permitted."
        assert expect(answer, 400, "OutOfRangeInput").reason == reason


@pytest.mark.parametrize("length", [3, 63])
def test_lengths_that_are_taken(account: Client, length: int) -> None:
    """B-NAM-01."""
    expect(account.put(f"/{'a' * length}?restype=container"), 201)
    expect(account.head(f"/{'a' * length}?restype=container"), 200)


@pytest.mark.parametrize(
    "name",
    [
        "Abc",
        "abC",
        "a_bc",
        "a.bc",
        "a bc",
        "\u00e4bc",
        "-abc",
        "abc-",
        "a--b",
        "$other",
        "$ROOT",
        "ab$",
        "a%00c",
        "a,bc",
    ],
)
def test_names_that_no_container_has(client: Client, name: str) -> None:
    """B-NAM-02."""
    encoded = name if "%" in name else quote(name, safe="$,")
    for method in ("PUT", "GET", "DELETE"):
        answer = client.send(method, f"/{encoded}?restype=container")
        expect(answer, 400, "InvalidResourceName")


@pytest.mark.parametrize(
    "name", ["$root", "$web", "$logs", "$blobchangefeed", "a-b-c", "0ab", "123"]
)
def test_names_that_containers_have(account: Client, name: str) -> None:
    """B-NAM-02."""
    expect(account.put(f"/{name}?restype=container"), 201)
    assert texts(account.get("/?comp=list").xml, ".//Name") == [name]


def test_the_length_of_a_blob_name(client: Client, container: str) -> None:
    """B-NAM-03: counted in characters, not in bytes of the URL."""
    for letter in ("b", "%C3%A9"):
        longest = f"/{container}/{letter * 1024}"
        expect(client.put(longest, PUT_BLOB, b"x"), 201)
        assert expect(client.get(longest), 200).body == b"x"
        longer = f"/{container}/{letter * 1025}"
        refused = client.put(longer, PUT_BLOB, b"x")
        reason = f"{LENGTH} It has 1025 characters, and 1 to 1024 are permitted."
        assert expect(refused, 400, "OutOfRangeInput").reason == reason
        expect(client.get(longer), 400, "OutOfRangeInput")
    expect(client.put(f"/{container}/b", PUT_BLOB, b"x"), 201)


def test_blob_names_are_case_sensitive(client: Client, container: str) -> None:
    """B-NAM-03."""
    for name in ("name", "Name", "NAME"):
        expect(client.put(f"/{container}/{name}", PUT_BLOB, name.encode()), 201)
    for name in ("name", "Name", "NAME"):
        assert expect(client.get(f"/{container}/{name}"), 200).body == name.encode()
    expect(client.get(f"/{container}/nAME"), 404, "BlobNotFound")


def test_path_segments(client: Client, container: str) -> None:
    """B-NAM-04."""
    most = "/".join("s" for _ in range(254))
    expect(client.put(f"/{container}/{most}", PUT_BLOB, b"x"), 201)
    expect(client.put(f"/{container}/{most}/s", PUT_BLOB, b"x"), 400, "InvalidResourceName")


@pytest.mark.parametrize("name", ["a%00b", "a%01b", "a%0Ab", "a%1Fb", "a%7Fb", "a%C2%85b"])
def test_control_characters(client: Client, container: str, name: str) -> None:
    """B-NAM-04."""
    expect(client.put(f"/{container}/{name}", PUT_BLOB, b"x"), 400, "InvalidResourceName")


NAMES = [
    "a b",
    " lead and trail ",
    "a+b",
    "a%b",
    "a%20b",
    "100%",
    "what?",
    "a#b",
    "a&b=c",
    "<tag>&amp;'\"",
    "\u00e9\u4e2d\u6587\u0416",
    "\U0001f600",
    "e\u0301",
    "dot.",
    "slash/",
    "a;b,c:d@e!f~g",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_comes_back_as_it_was_put(client: Client, container: str, name: str) -> None:
    """B-NAM-05."""
    encoded = quote(name, safe="/")
    expect(client.put(f"/{container}/{encoded}", PUT_BLOB, name.encode()), 201)
    assert expect(client.get(f"/{container}/{encoded}"), 200).body == name.encode()
    listed = expect(client.get(f"/{container}?restype=container&comp=list"), 200)
    assert texts(listed.xml, ".//Blob/Name") == [name]
    prefixed = client.get(f"/{container}?restype=container&comp=list&prefix={quote(name)}")
    assert texts(expect(prefixed, 200).xml, ".//Blob/Name") == [name]
    expect(client.delete(f"/{container}/{encoded}"), 202)


@pytest.mark.parametrize("sent", ["dir%5Cx", "dir%5cx", "dir\\x"])
def test_a_backslash_is_a_slash(client: Client, container: str, sent: str) -> None:
    """B-NAM-06."""
    expect(client.put(f"/{container}/{sent}", PUT_BLOB, b"text"), 201)
    for name in ("dir/x", "dir%2Fx", "dir%5Cx"):
        assert expect(client.get(f"/{container}/{name}"), 200).body == b"text"
    target = f"/{container}?restype=container&comp=list"
    assert texts(client.get(target).xml, ".//Blob/Name") == ["dir/x"]
    folded = client.get(f"{target}&prefix=d&delimiter=/").xml
    assert texts(folded, ".//BlobPrefix/Name") == ["dir/"]
    for asked in ("prefix=dir%5C", "prefix=d&delimiter=%5C"):
        assert not texts(client.get(f"{target}&{asked}").xml, ".//BlobPrefix/Name")
    assert not texts(client.get(f"{target}&prefix=dir%5C").xml, ".//Blob/Name")
    expect(copy(client, source_url(client, f"/{container}/{sent}"), f"/{container}/to%5C"), 202)
    assert expect(client.get(f"/{container}/to/"), 200).body == b"text"
    expect(client.delete(f"/{container}/{sent}"), 202)
    expect(client.get(f"/{container}/dir/x"), 404, "BlobNotFound")


def test_backslashes_count_as_segments(client: Client, container: str) -> None:
    """B-NAM-06."""
    deep = "%5C".join("s" for _ in range(254))
    expect(client.put(f"/{container}/{deep}", PUT_BLOB, b"x"), 201)
    expect(client.put(f"/{container}/{deep}%5Cs", PUT_BLOB, b"x"), 400, "InvalidResourceName")


def test_a_token_signs_slashes(client: Client, container: str) -> None:
    """B-NAM-06: whichever the URL has."""
    expect(client.put(f"/{container}/dir%5Cx", PUT_BLOB, b"text"), 201)
    right = service_sas(client.credential, container, "dir/x")
    wrong = service_sas(client.credential, container, "dir\\x")
    for name in ("dir/x", "dir%5Cx"):
        read = client.anonymous.get(f"/{container}/{name}?{right}")
        assert expect(read, 200).body == b"text"
        refused = client.anonymous.get(f"/{container}/{name}?{wrong}")
        expect(refused, 403, "AuthenticationFailed")


def test_a_plus_is_a_plus(client: Client, container: str) -> None:
    """B-NAM-05: an unencoded plus is not a space."""
    expect(client.put(f"/{container}/a+b", PUT_BLOB, b"plus"), 201)
    expect(client.get(f"/{container}/a%20b"), 404, "BlobNotFound")
    assert expect(client.get(f"/{container}/a%2Bb"), 200).body == b"plus"
