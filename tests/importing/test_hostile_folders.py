"""Folders that are damaged, or made to harm: each record that cannot be imported is reported."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from azure.storage.blob import BlobServiceClient

from strongroom.importing import (
    FolderChanged,
    ImportReport,
    NotAnAzuriteFolder,
    documents,
    folder,
    import_folder,
)
from strongroom.testing import InProcessServer
from tests.importing.folders import (
    ACCOUNT,
    EXTENT,
    MODIFIED,
    PeerFolder,
    blob,
    container,
    database,
    entity,
    message,
    properties,
)


@pytest.fixture
def peer(tmp_path: Path) -> PeerFolder:
    return PeerFolder(tmp_path / "azurite")


def imported(peer: PeerFolder) -> ImportReport:
    return import_folder(peer.write(), peer.path.parent / "data")


def lost(report: ImportReport) -> list[tuple[str, str]]:
    return sorted((one.kind, one.place.rpartition("/")[2]) for one in report.lost)


def extent(**changes: Any) -> dict[str, Any]:
    return {"persistency": {"id": EXTENT, "offset": 0, "count": 10} | changes}


BAD_BLOBS: dict[str, dict[str, Any]] = {
    "no UUID": extent(id="../../../etc/passwd"),
    "upper case": extent(id=EXTENT.upper()),
    "an absolute path": extent(id="/etc/hostname"),
    "no such file": extent(id=EXTENT.replace("0", "f")),
    "beyond the file": extent(offset=9_995),
    "far beyond": extent(offset=2**52),
    "negative": extent(offset=-10),
    "negative length": extent(count=-10),
    "another length": {"properties": properties(11)},
    "unknown type": {"properties": properties(10, blobType="QuantumBlob")},
    "no time": {"properties": properties(10, lastModified="yesterday")},
    "no dates": {"properties": properties(10) | {"lastModified": None}},
    "a header injected": {"properties": properties(10, contentType="a\r\nX-Evil: 1")},
    "a wrong type": {"properties": properties(10) | {"contentLength": "ten"}},
    "bad metadata": {"metadata": {"a b": "c"}},
    "bad tags": {"blobTags": {"blobTagSet": [{"key": "", "value": "x"}]}},
    "an unknown tier": {"properties": properties(10, accessTier="Z", accessTierInferred=False)},
    "half a surrogate \ud800": {},
    "a control character \x07": {},
    "x" * 2000: {},
    "half a page": {
        "properties": properties(100, blobType="PageBlob"),
        "pageRangesInOrder": [],
    },
    "pages overlap": {
        "properties": properties(1024, blobType="PageBlob"),
        "pageRangesInOrder": [
            {"start": 0, "end": 1023, **extent(count=1024)},
            {"start": 512, "end": 1023, **extent(count=512)},
        ],
    },
    "a block too long": {
        "committedBlocksInOrder": [{"name": "AAAA", "size": 10, **extent(count=9)}],
    },
    "no block id": {
        "committedBlocksInOrder": [{"name": "?", "size": 10, **extent()}],
    },
}


@pytest.mark.parametrize("name", [name for name in BAD_BLOBS if len(name) < 40])
def test_a_bad_blob_is_reported_and_the_others_are_imported(name: str, peer: PeerFolder) -> None:
    peer.blobs = [blob("before"), blob(name, **BAD_BLOBS[name]), blob("after")]
    report = imported(peer)
    assert (report.lost_count, report.counts.blobs) == (1, 2), report.lost
    assert not report.is_complete
    assert report.lost[0].kind == "blob"


@pytest.mark.parametrize("where", ["relative", "absolute", "beside", "upper case"])
def test_an_id_that_is_no_uuid_leads_to_no_file(
    where: str, peer: PeerFolder, tmp_path: Path
) -> None:
    folder_path = peer.write()
    beside = folder_path / documents.BLOB_EXTENTS
    (tmp_path / "secret").write_bytes(b"secret" * 10)
    (beside / "secret").write_bytes(b"secret" * 10)
    (beside / EXTENT.upper()).write_bytes(b"secret" * 10)
    names = {
        "relative": "../../secret",
        "absolute": str(tmp_path / "secret"),
        "beside": "secret",
        "upper case": EXTENT.upper(),
    }
    peer.blobs = [blob("stolen", **extent(id=names[where]))]
    report = imported(peer)
    assert "is not the UUID" in report.lost[0].reason
    assert report.counts.blobs == 0


@pytest.mark.parametrize("name", ["beyond the file", "far beyond"])
def test_a_range_beyond_its_file_is_refused_before_it_is_read(name: str, peer: PeerFolder) -> None:
    peer.blobs = [blob("beyond", **BAD_BLOBS[name])]
    assert "its bytes reach to" in imported(peer).lost[0].reason


def test_a_name_that_is_too_long_is_not_shortened(peer: PeerFolder) -> None:
    peer.blobs = [blob("x" * 2000), blob("x" * 1024)]
    report = imported(peer)
    assert (report.lost_count, report.counts.blobs) == (1, 1)


def test_the_first_of_two_with_one_name_is_imported(peer: PeerFolder) -> None:
    peer.blobs = [blob("twice", 0), blob("twice", 1)]
    peer.containers.append(container())
    peer.queues.append(peer.queues[0])
    peer.tables.append({"account": ACCOUNT, "table": "pEOPLE"})
    peer.entities = [entity("1"), entity("1", {"a": 1})]
    report = imported(peer)
    assert lost(report) == [
        ("blob", "twice"),
        ("container", "box"),
        ("entity", "People(PartitionKey='p',RowKey='1')"),
        ("queue", "work"),
        ("table", "pEOPLE"),
    ]


@pytest.mark.parametrize(
    "record",
    [
        "a text",
        12,
        None,
        [],
        {},
        {"name": 5},
        {"accountName": ACCOUNT, "containerName": "box", "name": "x"},
        blob("x", properties=[]),
        blob("x", persistency="y"),
    ],
    ids=range(9),
)
def test_a_record_of_wrong_types_is_reported_with_its_number(
    record: object, peer: PeerFolder
) -> None:
    peer.blobs = [blob("good"), record]
    report = imported(peer)
    assert report.counts.blobs == 1
    (one,) = report.lost
    assert one.place == f"{documents.BLOB_DATABASE} {documents.BLOBS} record 1"


def test_a_record_that_is_nested_deeply_hides_no_other(peer: PeerFolder) -> None:
    peer.blobs = [blob("good"), "DEEP", blob("last")]
    folder_path = peer.write()
    path = folder_path / documents.BLOB_DATABASE
    path.write_text(path.read_text().replace('"DEEP"', "[" * 100_000 + "]" * 100_000))
    report = import_folder(folder_path, folder_path.parent / "data")
    assert (report.counts.blobs, report.lost_count) == (2, 1)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8, 0.99])
def test_what_is_before_the_end_of_a_truncated_database_is_imported(
    share: float, peer: PeerFolder
) -> None:
    peer.blobs = [blob(f"blob {number}") for number in range(100)]
    folder_path = peer.write()
    path = folder_path / documents.BLOB_DATABASE
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    report = import_folder(folder_path, folder_path.parent / "data")
    assert report.lost[0].kind == "database"
    assert "the file ends too early" in report.lost[0].reason
    assert abs(report.counts.blobs - 100 * share) < 12


@pytest.mark.parametrize("text", ["", "null", "[]", "{", '{"collections": 5}', "{} {}", "\x00" * 9])
def test_a_file_that_is_no_database_is_reported(text: str, peer: PeerFolder) -> None:
    folder_path = peer.write()
    (folder_path / documents.BLOB_DATABASE).write_text(text)
    report = import_folder(folder_path, folder_path.parent / "data")
    assert {one.kind for one in report.lost} == {"database"}
    assert report.counts.queues == 1


def test_a_record_of_ten_megabytes_is_imported(peer: PeerFolder) -> None:
    block = {"name": "AAAA", "size": 1, "padding": "x" * 150, **extent(count=1)}
    peer.blobs = [blob("many", count=40_000, committedBlocksInOrder=[block] * 40_000)]
    report = imported(peer)
    assert (peer.path / documents.BLOB_DATABASE).stat().st_size > 9_000_000
    assert (report.lost_count, report.counts.blobs) == (0, 1), report.lost


def test_a_record_beyond_the_limit_is_reported_and_the_next_one_read(
    peer: PeerFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strongroom.importing.scanning.RECORD_BYTES_MAX", 4_000_000)
    peer.blobs = [blob("long", padding='x"\\' * 3_000_000), blob("good")]
    report = imported(peer)
    assert (report.counts.blobs, report.lost_count) == (1, 1)
    assert "longer than" in report.lost[0].reason


@pytest.mark.parametrize("place", [documents.BLOB_EXTENTS, documents.BLOB_DATABASE, EXTENT])
def test_links_are_not_followed(place: str, peer: PeerFolder, tmp_path: Path) -> None:
    peer.blobs = [blob("linked")]
    folder_path = peer.write()
    path = folder_path / (f"{documents.BLOB_EXTENTS}/{EXTENT}" if place == EXTENT else place)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    data = tmp_path / "data"
    if place == EXTENT:
        report = import_folder(folder_path, data)
        assert "links are not followed" in report.lost[0].reason
        return
    with pytest.raises(NotAnAzuriteFolder, match="links are not followed"):
        import_folder(folder_path, data)
    assert not data.exists()


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(peer: PeerFolder) -> None:
    peer.blobs = [blob("piped")]
    folder_path = peer.write()
    path = folder_path / documents.BLOB_EXTENTS / EXTENT
    path.unlink()
    os.mkfifo(path)
    assert stat.S_ISFIFO(path.stat().st_mode)
    report = import_folder(folder_path, folder_path.parent / "data")
    assert lost(report) == [("blob", "piped")]


@pytest.mark.parametrize(
    "change",
    [
        lambda path: (path / documents.BLOB_DATABASE).touch(),
        lambda path: (path / documents.BLOB_EXTENTS / "new").write_bytes(b"x"),
        lambda path: (path / documents.BLOB_EXTENTS / EXTENT).open("ab").write(b"x"),
        lambda path: (path / documents.QUEUE_EXTENTS / EXTENT).unlink(),
        lambda path: (path / documents.TABLE_DATABASE).replace(path / "moved"),
    ],
    ids=range(5),
)
def test_a_folder_that_changes_meanwhile_is_refused(
    change: Callable[[Path], object], peer: PeerFolder, tmp_path: Path
) -> None:
    peer.blobs = [blob("one")]
    folder_path, data, calls = peer.write(), tmp_path / "data", list[int]()

    def progress(done: int, total: int) -> None:
        if not calls:
            change(folder_path)
        calls.append(done)

    with pytest.raises(FolderChanged, match="Stop Azurite"):
        import_folder(folder_path, data, progress=progress)
    assert calls
    assert not data.exists()


@pytest.mark.parametrize(
    ("kind", "record"),
    [
        ("containers", container("Box")),
        ("containers", container("box2", accountName="../x")),
        ("containers", container("box2", properties={"etag": "x"})),
        ("queues", {"accountName": ACCOUNT, "name": "a--b"}),
        ("queues", {"accountName": ACCOUNT, "name": "q" * 64}),
        ("queues", {"accountName": ACCOUNT, "name": "q1q", "queueAcl": [{"id": "x" * 65}]}),
        ("tables", {"account": ACCOUNT, "table": "1st"}),
        ("tables", {"account": ACCOUNT, "table": "tables"}),
        ("messages", message(1, messageId="no guid")),
        ("messages", message(1, timeNextVisible=-5)),
        ("messages", message(1, dequeueCount=-1)),
        ("messages", message(1, count=70_000)),
        ("entities", entity("a/b")),
        ("entities", entity("x", {"n": 2**40})),
        ("entities", entity("x", {"n": "no number", "n@odata.type": "Edm.Int64"})),
        ("entities", entity("x", {"n": 1, "n@odata.type": "Edm.Evil"})),
        ("entities", entity("x", {f"p{n}": 1 for n in range(300)})),
        ("entities", entity("x", {"a-b": 1})),
        ("entities", entity("x", lastModifiedTime="never")),
        ("services", {"accountName": ACCOUNT, "cors": [{"allowedOrigins": 1}]}),
        (
            "services",
            {"accountName": ACCOUNT, "deleteRetentionPolicy": {"enabled": True, "days": 999}},
        ),
    ],
    ids=range(21),
)
def test_what_this_server_refuses_is_reported(
    kind: str, record: dict[str, Any], peer: PeerFolder
) -> None:
    getattr(peer, kind).append(record)
    report = imported(peer)
    assert report.lost_count == 1, report.lost
    assert (report.counts.containers, report.counts.queues, report.counts.tables) == (1, 1, 1)


def test_a_queue_gets_no_section_that_only_blobs_have(peer: PeerFolder) -> None:
    folder_path = peer.write()
    services = {"accountName": ACCOUNT, "staticWebsite": {"enabled": True}}
    text = database({documents.SERVICES: [services]})
    (folder_path / documents.QUEUE_DATABASE).write_text(text)
    report = import_folder(folder_path, folder_path.parent / "data")
    assert lost(report) == [("properties", "queue")]


def test_the_contents_of_a_refused_place_are_counted_in_one_remark(peer: PeerFolder) -> None:
    peer.blobs = [blob(f"b{n}", containerName="Gone") for n in range(3)]
    peer.messages = [message(n, queueName="gone") for n in range(2)]
    report = imported(peer)
    assert lost(report) == [("blob", "Gone"), ("message", "gone")]
    assert report.lost[0].reason.startswith("3 blobs")


def test_a_snapshot_needs_its_blob_and_a_time_that_has_passed(peer: PeerFolder) -> None:
    peer.blobs = [
        blob("kept"),
        blob("kept", snapshot="2024-05-06T07:08:09.1234567Z"),
        blob("kept", snapshot="9000-01-01T00:00:00.0000000Z"),
        blob("kept", snapshot="2024-05-06T07:08:09.1234567Z"),
        blob("lost", snapshot="2024-05-06T07:08:09.1234567Z"),
    ]
    report = imported(peer)
    assert (report.counts.blobs, report.counts.snapshots, report.lost_count) == (1, 1, 3)


def test_a_lease_that_cannot_be_kept_is_reported_and_its_blob_imported(peer: PeerFolder) -> None:
    leased = properties(10, leaseState="leased", leaseDuration="infinite")
    peer.blobs = [blob("leased", properties=leased, leaseId="no guid")]
    report = imported(peer)
    assert (report.counts.blobs, lost(report)) == (1, [("lease", "leased")])


def test_an_etag_that_cannot_be_kept_is_reported_and_replaced(peer: PeerFolder) -> None:
    peer.blobs = [blob("odd", properties=properties(10, etag='"<&>"'))]
    peer.entities = [entity("1", eTag="W/\"datetime'2020'\"")]
    report = imported(peer)
    assert (report.counts.blobs, report.counts.entities) == (1, 1)
    assert [one.kind for one in report.lost] == ["etag", "etag"]


def test_an_expired_message_is_left_out_and_no_loss(peer: PeerFolder) -> None:
    peer.messages = [message(1, expirationTime=MODIFIED), message(2)]
    report = imported(peer)
    assert report.is_complete
    assert (report.counts.messages, report.skipped_count) == (1, 1)


def test_zeros_and_pages_beyond_a_shrunken_blob(peer: PeerFolder, tmp_path: Path) -> None:
    ranges = [
        {"start": 0, "end": 511, **extent(id=documents.ZEROS, count=512)},
        {"start": 512, "end": 2047, **extent(count=1536)},
    ]
    pages = properties(1024, blobType="PageBlob", blobSequenceNumber=3)
    peer.blobs = [blob("disk", properties=pages, pageRangesInOrder=ranges)]
    assert imported(peer).is_complete
    with InProcessServer.start(data=tmp_path / "data", test_clock=False) as server:
        client = BlobServiceClient.from_connection_string(server.connection_string)
        body = client.get_blob_client("box", "disk").download_blob().readall()
    assert body == bytes(512) + peer.bytes[:512]


def test_a_folder_without_databases_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text(json.dumps({}))
    with pytest.raises(NotAnAzuriteFolder):
        import_folder(tmp_path, tmp_path / "data")
    assert not folder.is_azurite_folder(tmp_path)
