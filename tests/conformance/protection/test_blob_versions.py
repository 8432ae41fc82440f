"""Versions of blobs: rules B-VER-01 to B-VER-26."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from tests.conformance.answer import Answer, expect, expect_names, metadata
from tests.conformance.blob_batches import delete as part
from tests.conformance.blob_batches import send
from tests.conformance.client import PUT_BLOB, Client
from tests.conformance.concurrent_clients import ConcurrentClients
from tests.conformance.copying import copy
from tests.conformance.rows import ROWS, request_of
from tests.conformance.running import Running
from tests.conformance.sas import account_sas, service_sas
from tests.operations.transcript import Row

DAY_S = 24 * 60 * 60
NEVER = "2001-02-03T04:05:06.1234567Z"
RETAIN = (
    b"<StorageServiceProperties><DeleteRetentionPolicy><Enabled>true</Enabled><Days>7</Days>"
    b"</DeleteRetentionPolicy></StorageServiceProperties>"
)
TAGS = b"<Tags><TagSet><Tag><Key>k</Key><Value>%s</Value></Tag></TagSet></Tags>"
APPEND = {"x-ms-blob-type": "AppendBlob"}
PAGES = {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "1024"}
LIST = b"<BlockList><Latest>QQ==</Latest></BlockList>"


@pytest.fixture
def versioned(server: Running, account: Client) -> Client:
    """An account of a test's own that makes versions, with the container `box`."""
    server.switch(account.account, versioning=True)
    expect(account.put("/box?restype=container"), 201)
    return account


def put(client: Client, target: str, body: bytes = b"", headers: Any = PUT_BLOB) -> str:
    """Put a blob; its version's id."""
    return expect(client.put(target, headers, body), 201)["x-ms-version-id"]


def at(target: str, version: str) -> str:
    return f"{target}{'&' if '?' in target else '?'}versionid={version}"


def rows(client: Client, include: str, more: str = "") -> list[ET.Element]:
    answer = client.get(f"/box?restype=container&comp=list&include={include}{more}")
    return expect(answer, 200).xml.findall("Blobs/Blob")


def ids(client: Client, name: str, include: str = "versions") -> list[str | None]:
    """The versions' ids of a name as they are listed."""
    found = [row for row in rows(client, include) if row.findtext("Name") == name]
    return [row.findtext("VersionId") for row in found]


def permanent(answer: Answer) -> str:
    return expect(answer, 202)["x-ms-delete-type-permanent"]


def copied(client: Client, source: str, target: str, headers: Any) -> Answer:
    made = copy(client, f"{client.url}{source}", target, headers)
    return expect(made, 202 if "x-ms-blob-type" not in headers else 201)


def test_writes_that_make_a_version(versioned: Client) -> None:
    """B-VER-01, B-VER-03: of every type of blob."""
    source = "/box/source"
    put(versioned, source, b"source")
    sync = {"x-ms-requires-sync": "true"}
    expect(versioned.put("/box/b?comp=block&blockid=QQ==", {}, b"block"), 201)
    made = [
        expect(versioned.put("/box/b?comp=blocklist", {}, LIST), 201)["x-ms-version-id"],
        put(versioned, "/box/b", b"2"),
        copied(versioned, source, "/box/b", {})["x-ms-version-id"],
        copied(versioned, source, "/box/b", sync)["x-ms-version-id"],
        copied(versioned, source, "/box/b", PUT_BLOB)["x-ms-version-id"],
        expect(versioned.put("/box/b?comp=metadata", {"x-ms-meta-a": "1"}), 200)["x-ms-version-id"],
        put(versioned, "/box/b", b"", APPEND),
        put(versioned, "/box/b", b"", PAGES),
    ]
    assert made == sorted(set(made))
    assert ids(versioned, "b") == made
    bodies = [expect(versioned.get(at("/box/b", one)), 200) for one in made]
    assert [one.body for one in bodies] == [
        *(b"block", b"2", b"source", b"source", b"source", b"source", b"", bytes(1024)),
    ]
    assert [one["x-ms-version-id"] for one in bodies] == made
    assert [one.get("x-ms-is-current-version") for one in bodies] == [None] * 7 + ["true"]
    assert metadata(bodies[5]) == {"a": "1"}
    current = expect(versioned.head("/box/b"), 200)
    assert current["x-ms-version-id"] == made[-1]
    assert current["x-ms-is-current-version"] == "true"


def test_writes_that_make_none(versioned: Client) -> None:
    """B-VER-02."""
    of_pages = put(versioned, "/box/p", b"", PAGES)
    of_appends = put(versioned, "/box/a", b"", APPEND)
    of_blocks = put(versioned, "/box/b", b"1")
    update = {"x-ms-page-write": "update", "x-ms-range": "bytes=0-511"}
    lease = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1"}
    answers = [
        versioned.put("/box/p?comp=page", update, b"p" * 512),
        versioned.put("/box/p?comp=properties", {"x-ms-blob-content-length": "512"}),
        versioned.put("/box/a?comp=appendblock", {}, b"a"),
        versioned.put("/box/a?comp=seal"),
        versioned.put("/box/b?comp=properties", {"x-ms-blob-content-type": "text/plain"}),
        versioned.put("/box/b?comp=tags", {}, TAGS % b"1"),
        versioned.put("/box/b?comp=tier", {"x-ms-access-tier": "Cool"}),
        versioned.put("/box/b?comp=block&blockid=QQ==", {}, b"block"),
        versioned.put("/box/b?comp=lease", lease),
    ]
    assert [one.status for one in answers] == [201, 200, 201, 200, 200, 204, 200, 201, 201]
    assert [one.get("x-ms-version-id") for one in answers] == [None] * len(answers)
    for name, version in (("p", of_pages), ("a", of_appends), ("b", of_blocks)):
        assert ids(versioned, name) == [version]
    assert expect(versioned.get(at("/box/p", of_pages)), 200).body == b"p" * 512


def test_a_version_is_read_by_its_id(versioned: Client) -> None:
    """B-VER-04."""
    tagged = PUT_BLOB | {"x-ms-tags": "k=1", "x-ms-meta-a": "1"}
    first = expect(versioned.put("/box/b", tagged, b"first"), 201)
    old = at("/box/b", first["x-ms-version-id"])
    put(versioned, "/box/b", b"second")
    lease = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1"}
    expect(versioned.put("/box/b?comp=lease", lease), 201)
    head = expect(versioned.head(old), 200)
    assert head.etag == first.etag
    assert not [name for name, _ in head.headers if name.lower().startswith("x-ms-lease")]
    assert head["x-ms-tag-count"] == "1"
    assert expect(versioned.get(old, {"x-ms-range": "bytes=1-2"}), 206).body == b"ir"
    expect(versioned.get(old, {"If-None-Match": first.etag}), 304, "ConditionNotMet")
    expect(versioned.get(old, {"If-Match": '"0x1"'}), 412, "ConditionNotMet")
    assert metadata(expect(versioned.get(f"{old}&comp=metadata"), 200)) == {"a": "1"}
    document = expect(versioned.get(f"{old}&comp=tags"), 200).xml
    assert document.findtext("TagSet/Tag/Value") == "1"
    expect(versioned.get(f"{old}&comp=blocklist"), 200)
    expect(versioned.get(f"{old}&comp=pagelist"), 409, "InvalidBlobType")
    waits = {"x-strongroom-wait": "30", "If-None-Match": first.etag}
    expect(versioned.get(old, waits), 304, "ConditionNotMet")
    expect(versioned.get(at("/box/b", NEVER)), 404, "BlobNotFound")
    expect(versioned.get(at("/box/never", first["x-ms-version-id"])), 404, "BlobNotFound")


def test_each_version_has_a_tier_and_tags(versioned: Client) -> None:
    """B-VER-05, B-VER-17."""
    first = put(versioned, "/box/b", b"1", PUT_BLOB | {"x-ms-tags": "k=1"})
    second = put(versioned, "/box/b", b"2", PUT_BLOB | {"x-ms-tags": "k=2"})
    old = at("/box/b", first)
    expect(versioned.put(f"{old}&comp=tier", {"x-ms-access-tier": "Cold"}), 200)
    expect(versioned.put(f"{old}&comp=tags", {}, TAGS % b"7"), 204)
    assert expect(versioned.head(old), 200)["x-ms-access-tier"] == "Cold"
    assert expect(versioned.head("/box/b"), 200)["x-ms-access-tier"] == "Hot"

    def found(include: str) -> list[tuple[str | None, ...]]:
        answer = versioned.get(f"/?comp=blobs&where=k%3E%3D'0'{include}")
        blobs = expect(answer, 200).xml.findall("Blobs/Blob")
        wanted = ("VersionId", "IsCurrentVersion", "Tags/TagSet/Tag/Value")
        return sorted((tuple(one.findtext(tag) for tag in wanted) for one in blobs), key=str)

    assert found("") == [(None, None, "2")]
    assert found("&include=versions") == [(first, None, "7"), (second, "true", "2")]


@pytest.mark.parametrize("sync", [{}, {"x-ms-requires-sync": "true"}, PUT_BLOB])
def test_a_copy_promotes_a_version(versioned: Client, sync: dict[str, str]) -> None:
    """B-VER-06: also where there is no current one."""
    first = put(versioned, "/box/b", b"first", PUT_BLOB | {"x-ms-meta-a": "1"})
    second = put(versioned, "/box/b", b"second")
    third = copied(versioned, at("/box/b", first), "/box/b", sync)["x-ms-version-id"]
    now = expect(versioned.get("/box/b"), 200)
    assert (now.body, metadata(now)) == (b"first", {"a": "1"})
    assert ids(versioned, "b") == [first, second, third]
    expect(versioned.delete("/box/b"), 202)
    copied(versioned, at("/box/b", second), "/box/b", sync)
    assert expect(versioned.get("/box/b"), 200).body == b"second"
    copied(versioned, at("/box/b", third), "/box/other", sync)
    assert expect(versioned.get("/box/other"), 200).body == b"first"


def test_a_deleted_blob_leaves_its_versions(versioned: Client) -> None:
    """B-VER-07, B-VER-16, B-VER-20."""
    first = put(versioned, "/box/b", b"1")
    taken = expect(versioned.put("/box/b?comp=snapshot"), 201)
    second = taken["x-ms-version-id"]
    assert first < second
    assert expect(versioned.head("/box/b"), 200).etag == taken.etag
    expect(versioned.delete("/box/b"), 409, "SnapshotsPresent")
    both = {"x-ms-delete-snapshots": "include"}
    assert permanent(versioned.delete("/box/b", both)) == "false"
    for answer in (
        versioned.get("/box/b"),
        versioned.delete("/box/b"),
        versioned.put("/box/b?comp=metadata"),
        versioned.get(f"/box/b?snapshot={taken['x-ms-snapshot']}"),
    ):
        expect(answer, 404, "BlobNotFound")
    assert rows(versioned, "") == rows(versioned, "deleted,snapshots") == []
    (alone,) = rows(versioned, "deletedwithversions")
    assert [child.tag for child in alone] == [
        *("Name", "VersionId", "Properties", "HasVersionsOnly", "OrMetadata")
    ]
    assert alone.findtext("HasVersionsOnly") == "true"
    assert alone.findtext("VersionId") == second
    assert ids(versioned, "b") == [first, second]
    for one in (first, second):
        assert expect(versioned.get(at("/box/b", one)), 200).body == b"1"
    third = put(versioned, "/box/b", b"3")
    assert ids(versioned, "b") == [first, second, third]
    assert rows(versioned, "deletedwithversions")[0].find("HasVersionsOnly") is None


def test_a_version_is_deleted_by_its_id(versioned: Client) -> None:
    """B-VER-08, B-VER-09, B-VER-18."""
    first = put(versioned, "/box/b", b"1")
    second = put(versioned, "/box/b", b"2")
    lease = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1"}
    lease_id = expect(versioned.put("/box/b?comp=lease", lease), 201)["x-ms-lease-id"]
    held = {"x-ms-lease-id": lease_id}
    refused = versioned.delete(at("/box/b", second), held)
    expect(refused, 403, "OperationNotAllowedOnRootBlob")
    expect(versioned.delete("/box/b"), 412, "LeaseIdMissing")
    stale = {"If-Match": '"0x1"'}
    expect(versioned.delete(at("/box/b", first), stale), 412, "ConditionNotMet")
    assert permanent(versioned.delete(at("/box/b", first))) == "true"
    expect(versioned.delete(at("/box/b", first)), 404, "BlobNotFound")
    assert expect(versioned.get("/box/b"), 200).body == b"2"
    expect(versioned.delete("/box/b", held), 202)
    assert permanent(versioned.delete(at("/box/b", second))) == "true"
    assert rows(versioned, "versions,deletedwithversions") == []


def test_deleted_versions_are_kept_for_a_while(server: Running, versioned: Client) -> None:
    """B-VER-10, B-VER-11, B-VER-12, B-VER-13, B-VER-19."""
    expect(versioned.put("/?restype=service&comp=properties", {}, RETAIN), 202)
    first, second = (put(versioned, "/box/b", text) for text in (b"1", b"2"))
    old = at("/box/b", first)
    assert rows(versioned, "deleted,snapshots")[0].find("Deleted") is None
    assert permanent(versioned.delete(old)) == "false"
    expect(versioned.get(old), 404, "BlobNotFound")
    assert ids(versioned, "b") == [second]
    deleted, current = rows(versioned, "versions,deleted")
    assert [child.tag for child in deleted] == [
        *("Name", "VersionId", "Deleted", "Properties", "OrMetadata")
    ]
    assert [child.tag for child in current] == [
        *("Name", "VersionId", "IsCurrentVersion", "Properties", "OrMetadata")
    ]
    tags = [child.tag for child in deleted.findall("Properties/*")]
    assert tags[-2:] == ["DeletedTime", "RemainingRetentionDays"]
    assert not [tag for tag in tags if tag.startswith("Lease")]
    expect(versioned.delete("/box/b"), 202)
    expect(versioned.put("/box/b?comp=undelete"), 200)
    expect(versioned.get("/box/b"), 404, "BlobNotFound")
    assert expect(versioned.get(old), 200).body == b"1"
    assert ids(versioned, "b") == [first, second]
    expect(versioned.delete(old), 202)
    server.advance(7 * DAY_S)
    expect(versioned.put("/box/b?comp=undelete"), 200)
    expect(versioned.get(old), 404, "BlobNotFound")
    assert ids(versioned, "b", "versions,deleted") == [second]
    expect(versioned.put("/box/never?comp=undelete"), 404, "BlobNotFound")


def test_versioning_is_switched_while_serving(server: Running, account: Client) -> None:
    """B-VER-14, B-VER-15."""
    expect(account.put("/box?restype=container"), 201)
    before = expect(account.put("/box/b", PUT_BLOB, b"0"), 201)
    assert before.get("x-ms-version-id") is None
    assert expect(account.head("/box/b"), 200).get("x-ms-is-current-version") is None
    server.switch(account.account, versioning=True)
    first = put(account, "/box/b", b"1")
    oldest = ids(account, "b")[0]
    assert oldest is not None and oldest < first
    assert expect(account.get(at("/box/b", oldest)), 200).body == b"0"
    server.switch(account.account, versioning=False)
    for text in (b"2", b"3"):
        answer = expect(account.put("/box/b", PUT_BLOB, text), 201)
        assert answer.get("x-ms-version-id") is None
    assert ids(account, "b") == [oldest, first, None]
    assert expect(account.get(at("/box/b", first)), 200).body == b"1"
    copied(account, at("/box/b", first), "/box/b", {})
    assert permanent(account.delete(at("/box/b", oldest))) == "true"
    assert permanent(account.delete("/box/b")) == "true"
    assert ids(account, "b") == [first]


TAKES = {
    "blob_download": 404,
    "blob_get_properties": 404,
    "blob_get_metadata": 404,
    "blob_get_tags": 404,
    "blob_set_tags": 404,
    "blob_set_tier": 404,
    "blob_delete": 404,
    "blob_delete_version": 404,
    "blob_set_immutability_policy": 404,
    "blob_delete_immutability_policy": 404,
    "blob_set_legal_hold": 404,
    "blockblob_get_block_list": 404,
    "pageblob_get_page_ranges": 404,
    "pageblob_get_page_ranges_diff": 404,
}
REFUSE = [row for row in ROWS if row.served and row.id not in TAKES and "{" in row.path]


@pytest.mark.parametrize("row", REFUSE, ids=lambda row: row.id)
def test_operations_that_take_no_version(client: Client, container: str, row: Row) -> None:
    """B-VER-21."""
    sample = request_of(row, container)
    target = sample.with_query(f"versionid={NEVER}")
    answer = client.send(sample.method, target, sample.headers, sample.body)
    if sample.method == "HEAD":
        expect(answer, 400)
        return
    expect_names(answer, 400, "InvalidQueryParameterValue", "versionid")


@pytest.mark.parametrize("row", [row for row in ROWS if row.id in TAKES], ids=lambda row: row.id)
def test_operations_that_take_one(client: Client, container: str, row: Row) -> None:
    """B-VER-04, B-VER-21: of the blob that is there, but not of this version."""
    put_now = PUT_BLOB
    if row.id.startswith("pageblob"):
        put_now = PAGES
    expect(client.put(f"/{container}/b", put_now), 201)
    sample = request_of(row, container)
    target = sample.target
    if "versionid" not in target:
        target = sample.with_query(f"versionid={NEVER}")
    answer = client.send(sample.method, target, sample.headers, sample.body)
    expect(answer, 404, "BlobNotFound")
    for wrong in ("", "1", "2020-01-01", NEVER[:-1]):
        answer = client.send(
            sample.method,
            target.replace(f"versionid={NEVER}", f"versionid={wrong}").replace(
                "versionid=2026-01-02T03:04:05.1234567Z", f"versionid={wrong}"
            ),
            sample.headers,
            sample.body,
        )
        assert answer.status == 400, wrong
    if row.id not in ("blob_set_tags",):
        both = f"{target}&snapshot={NEVER}"
        assert client.send(sample.method, both, sample.headers, sample.body).status == 400


def test_a_deletion_of_one_version_says_nothing_of_snapshots(versioned: Client) -> None:
    """B-VER-21."""
    first = put(versioned, "/box/b", b"1")
    put(versioned, "/box/b", b"2")
    both = {"x-ms-delete-snapshots": "include"}
    answer = versioned.delete(at("/box/b", first), both)
    expect_names(answer, 400, "InvalidQueryParameterValue", "versionid")
    expect(versioned.get(at("/box/b", first)), 200)


def test_tokens_for_versions(versioned: Client) -> None:
    """B-VER-08, B-VER-22."""
    first, second, third = (put(versioned, "/box/b", text) for text in (b"1", b"2", b"3"))
    anonymous, credential = versioned.anonymous, versioned.credential

    def sent(method: str, target: str, token: str) -> Answer:
        joined = "&" if "?" in target else "?"
        return anonymous.send(method, f"{target}{joined}{token}")

    old = at("/box/b", first)
    one = service_sas(credential, "box", "b", version=first, sp="rdx")
    base = service_sas(credential, "box", "b", sp="rdx")
    assert expect(sent("GET", old, one), 200).body == b"1"
    for target, token in ((at("/box/b", second), one), ("/box/b", one), (old, base)):
        expect(sent("GET", target, token), 403, "AuthenticationFailed")
    assert expect(sent("GET", "/box/b", base), 200).body == b"3"
    # A copy source is authorized by the token in its URL.
    named = {"x-ms-copy-source": f"{versioned.url}{old}&{one}"}
    expect(versioned.put("/box/copied", named), 202)
    for token in (
        service_sas(credential, "box", sp="rd"),
        service_sas(credential, "box", "b", version=first, sp="d"),
        account_sas(credential, sp="rd"),
    ):
        expect(sent("DELETE", old, token), 403, "AuthorizationPermissionMismatch")
    wrong = sent("DELETE", "/box/b", service_sas(credential, "box", sp="x"))
    expect(wrong, 403, "AuthorizationPermissionMismatch")
    expect(sent("DELETE", old, one), 202)
    expect(sent("DELETE", at("/box/b", second), account_sas(credential, sp="x")), 202)
    expect(sent("DELETE", "/box/b", service_sas(credential, "box", sp="d")), 202)
    expect(sent("DELETE", at("/box/b", third), service_sas(credential, "box", sp="x")), 202)


def test_a_batch_that_deletes_versions(versioned: Client) -> None:
    """B-VER-23."""
    first, second = (put(versioned, "/box/b", text) for text in (b"1", b"2"))
    answers = send(
        versioned,
        part("/box/b"),
        part(at("/box/b", first)),
        part(at("/box/b", NEVER)),
    )
    assert [one.status for one in answers] == [202, 202, 404]
    assert ids(versioned, "b") == [second]


def test_listings_of_versions(versioned: Client) -> None:
    """B-VER-19, B-VER-20."""
    made = [put(versioned, "/box/b", b"%d" % number) for number in range(4)]
    put(versioned, "/box/dir/x")
    put(versioned, "/box/dir/y")
    expect(versioned.delete("/box/dir/x"), 202)
    (plain, _) = rows(versioned, "")
    assert plain.findtext("VersionId") == made[-1]
    assert plain.findtext("IsCurrentVersion") == "true"
    listed = rows(versioned, "versions")
    assert [row.findtext("IsCurrentVersion") for row in listed[:4]] == [None] * 3 + ["true"]
    assert listed[0].find("Properties/LeaseState") is None
    assert listed[3].find("Properties/LeaseState") is not None
    for size in (1, 2, 3):
        found, marker = [], ""
        for _ in itertools.repeat(None, 10):
            answer = versioned.get(
                "/box?restype=container&comp=list&include=versions"
                f"&maxresults={size}&marker={marker}"
            )
            page = expect(answer, 200).xml
            found += [row.findtext("VersionId") for row in page.findall("Blobs/Blob")]
            marker = page.findtext("NextMarker") or ""
            if not marker:
                break
        assert found == [row.findtext("VersionId") for row in listed]
    folded = versioned.get("/box?restype=container&comp=list&include=versions&delimiter=/")
    assert expect(folded, 200).xml.findtext("Blobs/BlobPrefix/Name") == "dir/"


def test_thirty_two_writers_make_a_version_each(versioned: Client) -> None:
    """B-VER-24: no version is lost, none is doubled, each has the content of its write."""
    rounds = 6

    def write(client: Client, number: int) -> list[tuple[str, bytes]]:
        found = []
        for count in range(rounds):
            body = b"%d/%d" % (number, count) * (1 + 700 * (number % 3))
            if number % 4 == 3 and count % 2:
                named = {"x-ms-meta-writer": f"{number}x{count}"}
                answer = expect(client.put("/box/b?comp=metadata", named), 200)
                found.append((answer["x-ms-version-id"], f"{number}x{count}".encode()))
            else:
                found.append((put(client, "/box/b", body), body))
        return found

    put(versioned, "/box/b", b"first")
    with ConcurrentClients(versioned) as clients:
        written = dict(pair for pairs in clients.run(write) for pair in pairs)
    assert len(written) == 32 * rounds
    listed = ids(versioned, "b")
    assert listed[1:] == sorted(written)
    for version, body in written.items():
        answer = expect(versioned.get(at("/box/b", version)), 200)
        assert body in (answer.body, metadata(answer).get("writer", "").encode())
    last = expect(versioned.get("/box/b"), 200)
    assert last["x-ms-version-id"] == listed[-1]


def test_a_container_comes_back_with_its_versions(server: Running, versioned: Client) -> None:
    """B-VER-25."""
    server.switch(versioned.account, container_retention_days=7)
    first, second = (put(versioned, "/box/b", text) for text in (b"1", b"2"))
    expect(versioned.delete("/box?restype=container"), 202)
    listed = expect(versioned.get("/?comp=list&include=deleted"), 200).xml
    named = {
        "x-ms-deleted-container-name": "box",
        "x-ms-deleted-container-version": listed.findtext("Containers/Container/Version"),
    }
    expect(versioned.put("/box?restype=container&comp=undelete", named), 201)
    assert ids(versioned, "b") == [first, second]
    assert expect(versioned.get(at("/box/b", first)), 200).body == b"1"
