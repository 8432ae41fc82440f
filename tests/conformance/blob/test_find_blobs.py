"""Find Blobs by Tags, at the account and in a container: rules B-FND-*."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from itertools import chain

import pytest

from tests.conformance.answer import expect, expect_names, texts
from tests.conformance.blobs import commit, put, snapshot, stage
from tests.conformance.client import Client
from tests.conformance.concurrent_clients import ConcurrentClients
from tests.conformance.copying import copy, source_url
from tests.conformance.running import Running
from tests.conformance.sas import account_sas, service_sas
from tests.conformance.tagging import find, found, names, pairs_of, set_tags, tags


def tagged(client: Client, container: str, **blobs: str) -> None:
    """Put blobs, each with its x-ms-tags."""
    for name, text in blobs.items():
        put(client, f"/{container}/{name}", headers={"x-ms-tags": text})


def create(client: Client, *containers: str) -> None:
    for container in containers:
        expect(client.put(f"/{container}?restype=container"), 201)


def test_the_answer_of_a_search(account: Client) -> None:
    """B-FND-01."""
    create(account, "one", "two")
    tagged(account, "one", x="a=1&b=2", y="a=2")
    tagged(account, "two", z="a=1")
    where = "\"a\" = '1'"
    answer = expect(find(account, where), 200)
    assert answer["Content-Type"] == "application/xml"
    root = answer.xml
    assert root.tag == "EnumerationResults"
    assert root.get("ServiceEndpoint") == account.url + "/"
    assert [child.tag for child in root] == ["Where", "Blobs", "NextMarker"]
    assert (root.findtext("Where"), root.findtext("NextMarker")) == (where, "")
    rows = root.findall("Blobs/Blob")
    assert [[child.tag for child in row] for row in rows] == [["Name", "ContainerName", "Tags"]] * 2
    shown = [(row.findtext("ContainerName"), row.findtext("Name"), pairs_of(row)) for row in rows]
    assert shown == [("one", "x", {"a": "1"}), ("two", "z", {"a": "1"})]
    assert found(account, where, "two") == ["z"]
    both = find(account, "b > '1' AND a < '2'").xml
    assert pairs_of(both) == {"a": "1", "b": "2"}


WHERE = [
    ("a = '2'", "2"),
    ("\"a\"='2'", "2"),
    ("a > '2'", "3 B b"),
    ("a >= '2'", "2 3 B b"),
    ("a < '2'", "1 10"),
    ("a <= '2'", "1 10 2"),
    ("a > '1' AND a < '3'", "10 2"),
    ("a >= '1' and a <= '2'", "1 10 2"),
    ("a >= 'B' AND a < 'b'", "B"),
    ("a > '9' AND a < '1'", ""),
    ("A = '2'", ""),
    ("a = '4'", ""),
    ("a >= ''", "1 10 2 3 B b"),
    ("a > '' AND same = 'yes'", "1 10 2 3 B b"),
    ("same = 'yes' AND a = '3'", "3"),
    ("same > 'z' AND a = '3'", ""),
    ("\"with space\" = 'v w'", "1"),
    ("time = '12:30'", "2"),
]


@pytest.fixture(scope="module")
def values(server: Running) -> Iterator[tuple[Client, str]]:
    """A container with a blob for each value of the tag `a`."""
    client = server.account()
    create(client, "values")
    more = {"1": "&with+space=v+w", "2": "&time=12%3A30"}
    for value in ("1", "10", "2", "3", "B", "b"):
        tagged(client, "values", **{value: f"same=yes&a={value}{more.get(value, '')}"})
    put(client, "/values/untagged")
    yield client, "values"
    client.close()


@pytest.mark.parametrize(("where", "expected"), WHERE)
def test_what_a_query_finds(values: tuple[Client, str], where: str, expected: str) -> None:
    """B-FND-02."""
    client, container = values
    assert found(client, where, container) == expected.split()
    assert found(client, f"@container = '{container}' AND {where}") == expected.split()


REFUSED = [
    "a = '1' OR a = '2'",
    "a <> '1'",
    "(a = '1')",
    "a = 1",
    "a = '1' AND",
    "a = '1' b = '2'",
    "AND a = '1'",
    "a",
    "",
    " ",
    "a = '1",
    "@box = 'x' AND a = '1'",
    "@container > 'x' AND a = '1'",
    "@container = 'A_B' AND a = '1'",
    "@container = 'abc' AND @container = 'abc' AND a = '1'",
    "a = 'x;y'",
    "\"a;b\" = 'x'",
    f"{'k' * 129} = 'x'",
    f"a = '{'v' * 257}'",
    "a = '1' AND a = '1'",
    "a = '1' AND a > '0'",
    "a > '1' AND a >= '2'",
    "a < '1' AND a < '2'",
    "a = '1' AND b\0 = '2'",
    "a = '" + "1" * 9000 + "'",
    "(" * 2000,
]


@pytest.mark.parametrize("where", REFUSED)
def test_what_is_no_query(client: Client, container: str, where: str) -> None:
    """B-FND-03."""
    for place in ("", container):
        refused = find(client, where, place)
        expect_names(refused, 400, "InvalidQueryParameterValue", "where")


def test_a_query_without_tags(client: Client, container: str) -> None:
    """B-FND-04."""
    refused = find(client, f"@container = '{container}'")
    expect_names(refused, 400, "InvalidQueryParameterValue", "where")
    for target in ("/?comp=blobs", f"/{container}?restype=container&comp=blobs"):
        expect_names(client.get(target), 400, "MissingRequiredQueryParameter", "where")


def test_a_query_that_names_its_container(client: Client, container: str) -> None:
    """B-FND-05."""
    tagged(client, container, x="only=here")
    assert found(client, f"@container='{container}' AND only = 'here'") == ["x"]
    assert found(client, "only = 'here' AND @Container='elsewhere'") == []
    refused = find(client, f"@container='{container}' AND only = 'here'", container)
    expect_names(refused, 400, "InvalidQueryParameterValue", "where")


def test_a_search_sees_every_write_at_once(
    each_engine: Running, new_name: Callable[[], str]
) -> None:
    """B-FND-06."""
    client, container = each_engine.client(), new_name()
    create(client, container)
    target, where = f"/{container}/b", "state >= '0'"

    def seen() -> dict[str, str]:
        return pairs_of(expect(find(client, where, container), 200).xml)

    put(client, target, headers={"x-ms-tags": "state=0"})
    assert seen() == {"state": "0"}
    set_tags(client, target, {"state": "1", "other": "x"})
    assert (seen(), found(client, "state = '0'", container)) == ({"state": "1"}, [])
    set_tags(client, target, {"other": "x"})
    assert (seen(), found(client, "other = 'x'", container)) == ({}, ["b"])
    set_tags(client, target, {"state": "1"})
    put(client, target)
    assert seen() == {}
    stage(client, target, "1", b"x")
    commit(client, target, ["1"], {"x-ms-tags": "state=2"})
    client.put(f"{target}?comp=metadata", {"x-ms-meta-a": "1"})
    assert seen() == {"state": "2"}
    copied = f"/{container}/copied"
    expect(copy(client, source_url(client, target), copied, {"x-ms-tags": "state=3"}), 202)
    assert found(client, where, container) == ["b", "copied"]
    expect(client.delete(target), 202)
    assert found(client, where, container) == ["copied"]
    put(client, target)
    assert found(client, where, container) == ["copied"]
    expect(client.delete(f"/{container}?restype=container"), 202)
    expect(find(client, where, container), 404, "ContainerNotFound")
    assert found(client, f"@container='{container}' AND {where}") == []
    create(client, container)
    assert found(client, where, container) == []
    put(client, copied, headers={"x-ms-tags": "state=4"})
    assert seen() == {"state": "4"}
    client.close()


def test_snapshots_are_not_found(client: Client, container: str) -> None:
    """B-FND-07."""
    target = f"/{container}/b"
    tagged(client, container, b="a=1")
    taken = snapshot(client, target)
    assert found(client, "a = '1'", container) == ["b"]
    set_tags(client, target, {"a": "2"})
    assert found(client, "a = '1'", container) == []
    assert tags(client, f"{target}?snapshot={taken}") == {"a": "1"}
    for word in ("none", "versions"):
        assert names(find(client, "a = '2'", container, include=word)) == ["b"]
    refused = find(client, "a = '2'", container, include="snapshots")
    expect_names(refused, 400, "InvalidQueryParameterValue", "include")


def all_pages(client: Client, where: str, container: str, results: int) -> list[list[str]]:
    """The names on each page, by the markers that the server gives."""
    lists: list[list[str]] = []
    marker: dict[str, str] = {}
    while True:
        answer = expect(find(client, where, container, maxresults=results, **marker), 200)
        lists.append(texts(answer.xml, "Blobs/Blob/Name"))
        text = answer.xml.findtext("NextMarker")
        if not text:
            return lists
        marker = {"marker": text}


@pytest.mark.parametrize("results", [1, 2, 3, 7, 100])
def test_pages_of_a_search(account: Client, results: int) -> None:
    """B-FND-08."""
    expected = []
    create(account, "one", "three", "two")
    for container in ("one", "two"):
        for number in range(7):
            name = f"{container}-{number}"
            tagged(account, container, **{name: f"odd={number % 2}&a={number}"})
            expected += [name] if number % 2 else []
    for where in ("odd = '1'", "a >= '0' AND odd = '1'", "a >= '0' AND odd > '0'"):
        lists = all_pages(account, where, "", results)
        assert list(chain.from_iterable(lists)) == expected
        assert [len(one) for one in lists[:-1]] == [results] * (len(lists) - 1)
        assert lists[-1]
        here = all_pages(account, where, "two", results)
        assert list(chain.from_iterable(here)) == expected[3:]


@pytest.mark.parametrize("text", ["0", "-1"])
def test_how_many_are_asked_for(client: Client, container: str, text: str) -> None:
    """B-FND-08."""
    refused = find(client, "a = '1'", container, maxresults=text)
    expect_names(refused, 400, "OutOfRangeQueryParameterValue", "maxresults")


def test_markers_of_other_searches(client: Client, container: str) -> None:
    """B-FND-09."""
    tagged(client, container, x="a=1&b=1", y="a=1&b=1")
    answer = expect(find(client, "a = '1'", container, maxresults=1), 200)
    marker = answer.xml.findtext("NextMarker")
    assert marker
    listed = client.get(f"/{container}?restype=container&comp=list&maxresults=1")
    foreign = expect(listed, 200).xml.findtext("NextMarker")
    for where, text in (
        ("b = '1'", marker),
        ("a = '1'", foreign),
        ("a = '1'", "x"),
        ("a = '1'", marker[:-4]),
        ("a = '1'", "A" * 9000),
    ):
        refused = find(client, where, container, marker=str(text))
        expect_names(refused, 400, "InvalidQueryParameterValue", "marker")
    assert names(find(client, "a = '1' AND b = '1'", container, marker=marker)) == ["y"]


def test_which_permission_a_search_needs(client: Client, container: str) -> None:
    """B-FND-10."""
    tagged(client, container, x="a=1")
    here = f"/{container}?restype=container&comp=blobs&where=a%3D%271%27"
    account = "/?comp=blobs&where=a%3D%271%27%20AND%20%40container%3D%27" + container + "%27"
    code = "AuthorizationPermissionMismatch"
    kinds: list[tuple[str, Callable[[str], str]]] = [
        (here, lambda sp: service_sas(client.credential, container, sp=sp)),
        (here, lambda sp: account_sas(client.credential, sp=sp, srt="c")),
        (account, lambda sp: account_sas(client.credential, sp=sp, srt="s")),
    ]
    anyone = client.anonymous
    for target, token in kinds:
        expect(anyone.get(f"{target}&{token('rwdlact')}"), 403, code)
        assert names(anyone.get(f"{target}&{token('f')}")) == ["x"]
    wrong = account_sas(client.credential, sp="f", srt="co")
    expect(anyone.get(f"{account}&{wrong}"), 403, "AuthorizationResourceTypeMismatch")
    of_container = service_sas(client.credential, container, sp="f")
    expect(anyone.get(f"{account}&{of_container}"), 403, "AuthenticationFailed")
    expect(find(client, "a = '1'", f"{container}x"), 404, "ContainerNotFound")


def test_a_search_amid_churn(each_engine: Running, new_name: Callable[[], str]) -> None:
    """B-FND-06, B-FND-08: what stands still is found once, what never matched is not."""
    client, container = each_engine.client(), new_name()
    create(client, container)
    still = {f"still-{number:02}" for number in range(30)}
    for name in still:
        tagged(client, container, **{name: f"a=5&b=1&n={name[-2:]}"})
    for number in range(8):
        tagged(client, container, **{f"busy-{number}": "a=1", f"never-{number}": "a=5&b=0"})
    done = threading.Event()

    def act(one: Client, number: int) -> int:
        if number < 8:
            for turn in range(60):
                if done.is_set():
                    break
                set_tags(one, f"/{container}/busy-{number}", {"a": str(turn % 10), "b": "1"})
                never = {"a": str(5 + turn % 2), "b": "0"}
                set_tags(one, f"/{container}/never-{number}", never)
            return 0
        for _ in range(12):
            for where in ("a >= '5' AND b = '1'", "b = '1' AND n >= '00'", "a > '4' AND b > '0'"):
                seen = list(chain.from_iterable(all_pages(one, where, container, 7)))
                assert still == {name for name in seen if name.startswith("still")}
                assert len([name for name in seen if name.startswith("still")]) == len(still)
                assert not [name for name in seen if name.startswith("never")]
        return 1

    with ConcurrentClients(client, 12) as clients:
        try:
            assert sum(clients.run(act)) == 4
        finally:
            done.set()
    client.close()
