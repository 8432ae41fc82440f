"""Share snapshots over HTTP and by the SDK: rules F-SNP-01 to F-SNP-11."""

from __future__ import annotations

import pytest
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.storage.fileshare import ShareServiceClient

from tests.conformance.answer import Answer, expect, expect_names, metadata, texts
from tests.conformance.client import Client
from tests.conformance.copying import copy, ended, readable

NO_TIME = "2020-01-01T00:00:00.0000000Z"


def take(files: Client, share: str, **meta: str) -> Answer:
    named = {f"x-ms-meta-{name}": value for name, value in meta.items()}
    return expect(files.put(f"/{share}?restype=share&comp=snapshot", named), 201)


def write(files: Client, path: str, data: bytes) -> None:
    made = {"x-ms-type": "file", "x-ms-content-length": str(len(data))}
    expect(files.put(path, made), 201)
    put = {"x-ms-write": "update", "x-ms-range": f"bytes=0-{len(data) - 1}"}
    expect(files.put(path + "?comp=range", put, data), 201)


def test_reads_of_every_kind(files: Client, share: str) -> None:
    """F-SNP-01, F-SNP-03, F-SNP-06."""
    expect(files.put(f"/{share}/d?restype=directory", {"x-ms-meta-of": "ann"}), 201)
    write(files, f"/{share}/d/f", b"before")
    lease = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1"}
    held = expect(files.put(f"/{share}/d/f?comp=lease", lease), 201)["x-ms-lease-id"]
    before = expect(files.head(f"/{share}/d/f"), 200)
    taken = take(files, share)["x-ms-snapshot"]
    assert len(taken) == len(NO_TIME)
    expect(files.delete(f"/{share}/d/f", {"x-ms-lease-id": held}), 202)
    expect(files.delete(f"/{share}/d?restype=directory"), 202)
    at = f"sharesnapshot={taken}"
    seen = expect(files.head(f"/{share}/d/f?{at}"), 200)
    same = ("ETag", "Last-Modified", "Content-Length", "x-ms-file-id", "x-ms-file-creation-time")
    assert [seen[name] for name in same] == [before[name] for name in same]
    assert seen["x-ms-lease-state"] == "available"
    assert expect(files.get(f"/{share}/d/f?{at}"), 200).body == b"before"
    assert expect(files.get(f"/{share}/d/f?{at}", {"Range": "bytes=1-2"}), 206).body == b"ef"
    expect(files.get(f"/{share}/d/f?comp=metadata&{at}"), 200)
    ranges = expect(files.get(f"/{share}/d/f?comp=rangelist&{at}"), 200)
    assert texts(ranges.xml, "Range/End") == ["5"]
    for target in (f"/{share}/d?restype=directory", f"/{share}/d?restype=directory&comp=metadata"):
        assert metadata(expect(files.get(f"{target}&{at}"), 200)) == {"of": "ann"}
    root = expect(files.get(f"/{share}/d?restype=directory&comp=list&{at}"), 200).xml
    assert root.get("ShareSnapshot") == taken and texts(root, "Entries/File/Name") == ["f"]
    assert expect(files.get(f"/{share}/d?comp=listhandles&{at}"), 200).xml is not None
    assert texts(files.get(f"/{share}?restype=directory&comp=list").xml, "Entries/*/Name") == []


def test_changes_of_a_file_with_another_name(files: Client, share: str) -> None:
    """F-SNP-10."""
    write(files, f"/{share}/old", b"x" * 1024)
    taken = take(files, share)["x-ms-snapshot"]
    renamed = {"x-ms-file-rename-source": f"{files.url}/{share}/old"}
    expect(files.put(f"/{share}/new?comp=rename", renamed), 200)
    clear = {"x-ms-write": "clear", "x-ms-range": "bytes=512-1023"}
    expect(files.put(f"/{share}/new?comp=range", clear), 201)
    write(files, f"/{share}/old", b"another file")
    where, follow = (
        f"comp=rangelist&prevsharesnapshot={taken}",
        {"x-ms-file-support-rename": "true"},
    )
    for headers in ({}, {"x-ms-file-support-rename": "false"}):
        refused = files.get(f"/{share}/new?{where}", headers)
        expect(refused, 409, "FileGenerationMismatch")
    listed = expect(files.get(f"/{share}/new?{where}", follow), 200)
    assert texts(listed.xml, "ClearRange/Start") == ["512"]
    assert texts(listed.xml, "Range/Start") == []
    expect(files.get(f"/{share}/old?{where}", follow), 409, "FileGenerationMismatch")
    unknown = "comp=rangelist&prevsharesnapshot=2020-01-02T03:04:05.0000000Z"
    expect(files.get(f"/{share}/new?{unknown}", follow), 404, "ShareSnapshotNotFound")
    alone = files.get(f"/{share}/new?comp=rangelist", follow)
    expect_names(alone, 400, "InvalidHeaderValue", "x-ms-file-support-rename")


def test_what_no_snapshot_is_and_does(files: Client, share: str) -> None:
    """F-SNP-04, F-SNP-07."""
    write(files, f"/{share}/f", b"x")
    taken = take(files, share)["x-ms-snapshot"]
    for target in (f"/{share}?restype=share", f"/{share}/f", f"/{share}?restype=directory"):
        expect(
            files.get(f"{target}&sharesnapshot={NO_TIME}".replace("f&", "f?")),
            404,
            "ShareSnapshotNotFound",
        )
        wrong = files.get(f"{target}&sharesnapshot=yesterday".replace("f&", "f?"))
        expect(wrong, 400, "InvalidQueryParameterValue")
    at = f"sharesnapshot={taken}"
    made = {"x-ms-type": "file", "x-ms-content-length": "1"}
    for answer in (
        files.put(f"/{share}/g?{at}", made),
        files.put(f"/{share}/d?restype=directory&{at}"),
        files.delete(f"/{share}/f?{at}"),
        files.put(f"/{share}/f?comp=metadata&{at}"),
        files.put(f"/{share}?restype=share&comp=metadata&{at}"),
        files.put(f"/{share}?restype=share&comp=snapshot&{at}"),
        files.delete(f"/{share}?restype=share&{at}", {"x-ms-delete-snapshots": "include"}),
    ):
        expect(answer, 400, "InvalidQueryParameterValue")
    expect(files.delete(f"/{share}?restype=share"), 409, "ShareHasSnapshots")
    expect(files.delete(f"/{share}?restype=share&{at}"), 202)
    expect(files.get(f"/{share}/f?{at}"), 404, "ShareSnapshotNotFound")
    expect(files.delete(f"/{share}?restype=share"), 202)


def test_lists_and_leases(file_account: Client) -> None:
    """F-SNP-01, F-SNP-05, F-SNP-07, F-SNP-08."""
    for name in ("alpha", "beta"):
        expect(file_account.put(f"/{name}?restype=share", {"x-ms-meta-of": name}), 201)
    own = take(file_account, "alpha", of="ann")
    plain = take(file_account, "alpha")
    assert own.etag != plain.etag == file_account.get("/alpha?restype=share").etag
    take(file_account, "beta")
    found, marker = list[tuple[str, str | None, str | None]](), ""
    while True:
        target = f"/?comp=list&maxresults=1&include=snapshots,metadata&marker={marker}"
        page = expect(file_account.get(target), 200).xml
        for row in page.iter("Share"):
            taken = row.findtext("Snapshot")
            found.append((row.findtext("Name") or "", taken, row.findtext("Metadata/of")))
        marker = page.findtext("NextMarker") or ""
        if not marker:
            break
    assert [one[0] for one in found] == ["alpha"] * 3 + ["beta"] * 2
    stamps = [own["x-ms-snapshot"], plain["x-ms-snapshot"]]
    assert [one[1] for one in found[:4]] == [None, *stamps, None]
    assert [one[2] for one in found[:3]] == ["alpha", "ann", "alpha"]
    assert len(texts(file_account.get("/?comp=list").xml, "Shares/Share/Name")) == 2
    lease = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1"}
    at = f"/alpha?restype=share&sharesnapshot={stamps[0]}"
    target = f"/alpha?restype=share&comp=lease&sharesnapshot={stamps[0]}"
    held = expect(file_account.put(target, lease), 201)["x-ms-lease-id"]
    assert file_account.get(at)["x-ms-lease-state"] == "leased"
    assert file_account.get("/alpha?restype=share")["x-ms-lease-state"] == "available"
    include = {"x-ms-delete-snapshots": "include"}
    refused = file_account.delete("/alpha?restype=share", include)
    expect(refused, 409, "DeleteShareWhenSnapshotLeased")
    expect(file_account.delete(at), 412, "LeaseIdMissing")
    expect(file_account.delete(at, {"x-ms-lease-id": held}), 202)
    expect(file_account.delete("/alpha?restype=share", include), 202)


def test_the_sdk_takes_reads_compares_and_deletes_snapshots(file_account: Client) -> None:
    """F-SNP-01, F-SNP-03, F-SNP-05, F-SNP-06, F-SNP-07, F-SNP-10."""
    service = ShareServiceClient(
        file_account.url, credential=file_account.credential.key, retry_total=0
    )
    share = service.create_share("documents")
    file = share.get_file_client("f")
    file.upload_file(b"a" * 4096)
    first = share.create_snapshot()["snapshot"]
    file.upload_range(b"b" * 512, 1024, 512)
    file.clear_range(2048, 512)
    second = share.create_snapshot(metadata={"of": "ann"})["snapshot"]
    file.delete_file()
    old = service.get_share_client("documents", snapshot=first)
    assert old.get_file_client("f").download_file().readall() == b"a" * 4096
    assert [one["name"] for one in old.list_directories_and_files()] == ["f"]
    late = service.get_share_client("documents", snapshot=second)
    assert late.get_share_properties().metadata == {"of": "ann"}
    changed = late.get_file_client("f").list_ranges_diff(first)
    assert {(one.start, one.end, one.cleared) for one in changed} == {
        (1024, 1535, False),
        (2048, 2559, True),
    }
    rows = list(service.list_shares(include_snapshots=True))
    assert [one.snapshot for one in rows] == [None, first, second]
    with pytest.raises(HttpResponseError) as refused:
        share.delete_share()
    assert vars(refused.value)["error_code"] == "ShareHasSnapshots"
    old.delete_share()
    with pytest.raises(ResourceNotFoundError) as gone:
        old.get_share_properties()
    assert gone.value.status_code == 404
    share.delete_share(delete_snapshots=True)
    assert list(service.list_shares(include_snapshots=True)) == []


def test_a_file_of_a_snapshot_is_copied(
    client: Client, container: str, files: Client, share: str
) -> None:
    """F-SNP-11."""
    write(files, f"/{share}/f", b"before")
    taken = take(files, share)["x-ms-snapshot"]
    expect(files.delete(f"/{share}/f"), 202)
    source = f"{files.url}/{share}/f?sharesnapshot={taken}"
    for target in ("g", "f"):
        expect(copy(files, source, f"/{share}/{target}"), 202)
        shown = ended(files, f"/{share}/{target}")
        assert (shown["x-ms-copy-status"], shown["x-ms-copy-source"]) == ("success", source)
        assert files.get(f"/{share}/{target}").body == b"before"
    write(files, f"/{share}/f", b"AFTER!")
    expect(copy(files, source, f"/{share}/f"), 202)
    ended(files, f"/{share}/f")
    assert files.get(f"/{share}/f").body == b"before"
    ranged = {"x-ms-write": "update", "x-ms-range": "bytes=0-2", "Content-Length": "0"}
    ranged |= {"x-ms-copy-source": readable(files, source), "x-ms-source-range": "bytes=3-5"}
    expect(files.put(f"/{share}/f?comp=range", ranged), 201)
    assert files.get(f"/{share}/f").body == b"oreore"
    expect(copy(client, source, f"/{container}/b"), 202)
    ended(client, f"/{container}/b")
    assert client.get(f"/{container}/b").body == b"before"
    staged = {"x-ms-copy-source": readable(client, source), "x-ms-source-range": "bytes=0-1"}
    expect(client.put(f"/{container}/c?comp=block&blockid=MQ==", staged), 201)


def test_what_is_no_file_of_a_snapshot_is_not_copied(files: Client, share: str) -> None:
    """F-SNP-11."""
    taken = take(files, share)["x-ms-snapshot"]
    write(files, f"/{share}/f", b"later")
    source = f"{files.url}/{share}/f?sharesnapshot="
    for time, status, code in (
        (NO_TIME, "404", "ShareSnapshotNotFound"),
        ("yesterday", "400", "InvalidQueryParameterValue"),
        (taken, "404", "ResourceNotFound"),
    ):
        answer = expect(copy(files, source + time, f"/{share}/g"), 404, "CannotVerifyCopySource")
        assert answer["x-ms-copy-source-status-code"] == status
        assert answer["x-ms-copy-source-error-code"] == code
