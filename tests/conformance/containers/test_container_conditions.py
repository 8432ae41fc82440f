"""Conditions and ETags of containers: rules B-CWR-11, B-CWR-12, B-CWR-13, B-ETG-04."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from email.utils import format_datetime, parsedate_to_datetime

import pytest

from tests.conformance.answer import expect, metadata
from tests.conformance.client import PUT_BLOB, Client
from tests.conformance.leasing import Leased
from tests.conformance.rows import SERVED_BY_KEY, request_of
from tests.conformance.running import Running
from tests.operations.transcript import Row

CONDITIONS = ("If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since")
DATES = ("If-Modified-Since", "If-Unmodified-Since")
# Which of the four conditions each word of the table's column `conditions` accepts.
TAKEN: dict[str, tuple[str, ...]] = {
    "ims4": CONDITIONS,
    "dates": DATES,
    "modified-since": DATES[:1],
    "unmodified-since": DATES[1:],
}
REFUSED = [
    (row, name)
    for row in SERVED_BY_KEY
    for name in (*CONDITIONS, "x-ms-if-tags")
    if not any(name in TAKEN.get(word, ()) for word in row.conditions)
    and not (name == "x-ms-if-tags" and "tags" in row.conditions)
]


def shifted(date: str, seconds: int) -> str:
    """An RFC 1123 date, moved."""
    return format_datetime(parsedate_to_datetime(date) + timedelta(seconds=seconds), usegmt=True)


@pytest.mark.parametrize(("row", "name"), REFUSED, ids=lambda value: getattr(value, "id", value))
def test_a_condition_that_an_operation_does_not_take(
    client: Client, container: str, new_name: Callable[[], str], row: Row, name: str
) -> None:
    """B-CWR-11 B-CWR-12: refused, not ignored; for containers the ETag conditions too."""
    made = expect(client.put(f"/{container}/b", PUT_BLOB, b"x"), 201)
    values = {
        "If-Match": made.etag,
        "If-None-Match": '"0x8D0000000000000"',
        "If-Modified-Since": "Fri, 26 Jun 2015 23:39:12 GMT",
        "If-Unmodified-Since": "Fri, 26 Jun 2099 23:39:12 GMT",
        "x-ms-if-tags": "\"a\" = '1'",
    }
    place = new_name() if row.id == "container_create" else container
    sample = request_of(row, place)
    headers = {**sample.headers, name: values[name]}
    answer = client.send(sample.method, sample.target, headers, sample.body)
    expect(answer, 400, "ConditionHeadersNotSupported")
    assert client.head(f"/{container}/b").etag == made.etag
    if row.id == "container_create":
        expect(client.head(f"/{place}?restype=container"), 404, "ContainerNotFound")


DATED = [
    ("DELETE", "", {}),
    ("PUT", "&comp=acl", {}),
    ("PUT", "&comp=metadata", {}),
    ("PUT", "&comp=lease", {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "15"}),
    ("PUT", "&comp=lease", {"x-ms-lease-action": "break"}),
]


@pytest.mark.parametrize("past_s", [0, 10])
@pytest.mark.parametrize(("method", "comp", "headers"), DATED)
def test_modified_since(
    server: Running,
    client: Client,
    container: str,
    method: str,
    comp: str,
    headers: dict[str, str],
    past_s: int,
) -> None:
    """B-CWR-13: equal is not later."""
    target = f"/{container}?restype=container"
    if headers.get("x-ms-lease-action") == "break":
        Leased(server, client, target).acquire(duration_s=-1)
    before = expect(client.head(target), 200)
    since = shifted(before["Last-Modified"], past_s)
    refused = client.send(method, target + comp, {**headers, "If-Modified-Since": since})
    expect(refused, 412, "ConditionNotMet")
    after = expect(client.head(target), 200)
    assert (after.etag, after["x-ms-lease-state"]) == (before.etag, before["x-ms-lease-state"])
    earlier = shifted(before["Last-Modified"], -1)
    passed = client.send(method, target + comp, {**headers, "If-Modified-Since": earlier})
    assert passed.status in (200, 201, 202)


@pytest.mark.parametrize(
    ("method", "comp", "headers"), [row for row in DATED if row[1] != "&comp=metadata"]
)
def test_unmodified_since(
    server: Running,
    client: Client,
    container: str,
    method: str,
    comp: str,
    headers: dict[str, str],
) -> None:
    """B-CWR-13."""
    target = f"/{container}?restype=container"
    if headers.get("x-ms-lease-action") == "break":
        Leased(server, client, target).acquire(duration_s=-1)
    before = expect(client.head(target), 200)
    earlier = shifted(before["Last-Modified"], -1)
    refused = client.send(method, target + comp, {**headers, "If-Unmodified-Since": earlier})
    expect(refused, 412, "ConditionNotMet")
    assert expect(client.head(target), 200).etag == before.etag
    equal = {**headers, "If-Unmodified-Since": before["Last-Modified"]}
    assert client.send(method, target + comp, equal).status in (200, 201, 202)


def test_reads_with_waiting_take_an_etag(client: Client, container: str) -> None:
    """B-CWR-12: If-None-Match, only together with x-strongroom-wait."""
    target = f"/{container}?restype=container"
    etag = client.head(target).etag
    other = {"If-None-Match": '"0x8D0000000000000"'}
    for comp in ("", "&comp=metadata", "&comp=acl"):
        refused = client.get(target + comp, {"If-None-Match": etag})
        expect(refused, 400, "ConditionHeadersNotSupported")
        taken = client.get(target + comp, {**other, "x-strongroom-wait": "1"})
        assert expect(taken, 200).etag == etag


def test_what_changes_a_containers_etag(server: Running, client: Client, container: str) -> None:
    """B-ETG-04."""
    target = f"/{container}?restype=container"
    seen = [expect(client.head(target), 200)]

    def same() -> None:
        now = expect(client.head(target), 200)
        assert (now.etag, now["Last-Modified"]) == (seen[-1].etag, seen[-1]["Last-Modified"])

    def changed() -> None:
        now = expect(client.head(target), 200)
        assert now.etag > seen[-1].etag
        assert now["Last-Modified"] != seen[-1]["Last-Modified"]
        seen.append(now)

    server.advance(2)
    leased = Leased(server, client, target)
    leased.acquire()
    same()
    expect(leased.act("break", lease_break_period=0), 202)
    same()
    expect(client.put(f"/{container}/b", PUT_BLOB, b"x"), 201)
    same()
    expect(client.put(f"/{container}/b", PUT_BLOB, b"y"), 201)
    expect(client.delete(f"/{container}/b"), 202)
    same()
    expect(client.put(target + "&comp=metadata", {"x-ms-meta-a": "1"}), 200)
    changed()
    server.advance(2)
    expect(client.put(target + "&comp=acl"), 200)
    changed()
    assert metadata(seen[-1]) == {"a": "1"}
    server.advance(2)
    expect(client.delete(target), 202)
    expect(client.put(target), 201)
    changed()
