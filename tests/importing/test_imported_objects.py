"""Imported objects on a server: their ETags and dates, and the first change of each."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobServiceClient, ContainerClient, RetentionPolicy
from azure.storage.queue import QueueServiceClient

from strongroom.cli.exits import Exit
from strongroom.importing import import_folder
from strongroom.testing import InProcessServer
from tests.cli.command import in_process
from tests.importing.folders import (
    ETAG,
    PeerFolder,
    blob,
    container,
    entity,
    message,
    properties,
)

SNAPSHOT = "2024-05-06T07:08:09.1234567Z"
GUID = "00000000-0000-0000-0000-000000000005"
WHEN = datetime(2024, 3, 4, 5, 6, 7, tzinfo=UTC)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    peer = PeerFolder(tmp_path / "azurite")
    tagged = {"blobTagSet": [{"key": "colour", "value": "red"}]}
    peer.blobs = [
        blob("one", blobTags=tagged, metadata={"a": "b"}),
        blob("one", 5, snapshot=SNAPSHOT),
        blob("large", 0, 9_000),
        blob("large", 0, 9_000, snapshot=SNAPSHOT),
        blob("medium", 0, 600),
        blob("medium", 0, 700, snapshot=SNAPSHOT),
        blob("sealed", properties=properties(0, blobType="AppendBlob", isSealed=True)),
    ]
    peer.messages = [message(number) for number in range(100)]
    peer.messages.append(message(200, timeNextVisible=32_000_000_000_000))
    # Two that expire in the same millisecond.
    peer.messages += [
        message(number, expirationTime="9000-01-01T00:00:00.000Z") for number in (300, 301)
    ]
    peer.entities = [
        entity("1", {"whole": 2, "whole@odata.type": "Edm.Double", "none": None}),
        entity("old guid", {"g": GUID, "g@odata.type": "Edm.Guid"}),
    ]
    peer.containers.append(container("second"))
    report = import_folder(peer.write(), tmp_path / "data")
    assert report.is_complete, report.lost
    return tmp_path / "data"


@pytest.fixture
def server(data: Path) -> Iterator[InProcessServer]:
    with InProcessServer.start(data=data, test_clock=False) as running:
        yield running
    assert in_process("doctor", data).code == Exit.DONE


@pytest.fixture
def box(server: InProcessServer) -> ContainerClient:
    service = BlobServiceClient.from_connection_string(server.connection_string)
    return service.get_container_client("box")


def test_dates_and_etags_are_those_of_the_folder(box: ContainerClient) -> None:
    found = box.get_blob_client("one").get_blob_properties()
    assert (found.etag, found.last_modified, found.creation_time) == (ETAG, WHEN, WHEN)
    listed = {(one.name, one.snapshot): one for one in box.list_blobs(include=["snapshots"])}
    assert {one.etag for one in listed.values()} == {ETAG.strip('"')}
    assert {one.last_modified for one in listed.values()} == {WHEN}
    assert len(listed) == 7
    own = box.get_container_properties()
    assert (own.etag, own.last_modified) == (ETAG, WHEN)
    snapshot = box.get_blob_client("one", snapshot=SNAPSHOT).download_blob()
    assert (snapshot.readall(), snapshot.properties.etag) == (b"5678901234", ETAG)
    for name, size in (("large", 9_000), ("medium", 700)):
        body = box.get_blob_client(name, snapshot=SNAPSHOT).download_blob().readall()
        assert body == (b"0123456789" * 900)[:size]


def test_a_lease_and_a_snapshot_keep_the_old_etag_and_a_change_ends_it(
    box: ContainerClient,
) -> None:
    one = box.get_blob_client("one")
    lease = one.acquire_lease(15)
    assert lease.etag == ETAG
    assert one.create_snapshot()["etag"] == ETAG
    lease.release()
    assert (lease.etag, one.get_blob_properties().etag) == (ETAG, ETAG)
    unless = MatchConditions.IfModified
    with pytest.raises(HttpResponseError) as same:
        one.download_blob(etag=ETAG, match_condition=unless)
    assert same.value.status_code == 304
    other = box.get_blob_client("large")
    changed = other.set_blob_metadata(
        {"n": "1"}, etag=ETAG, match_condition=MatchConditions.IfNotModified
    )
    assert changed["etag"] != ETAG
    assert other.get_blob_properties().etag == changed["etag"]
    past = box.get_blob_client("large", snapshot=SNAPSHOT).get_blob_properties()
    assert past.etag == ETAG


def test_a_container_gets_an_etag_of_this_server_with_its_first_change(
    box: ContainerClient,
) -> None:
    assert box.acquire_lease(-1).etag == ETAG
    changed = box.set_container_metadata({"a": "b"})
    assert changed["etag"] != ETAG
    assert box.get_container_properties().etag == changed["etag"]


def test_a_copy_has_an_etag_of_its_own_and_may_require_the_old_one(box: ContainerClient) -> None:
    source, target = box.get_blob_client("one"), box.get_blob_client("copy")
    target.start_copy_from_url(
        source.url, source_etag=ETAG, source_match_condition=MatchConditions.IfNotModified
    )
    assert target.get_blob_properties().etag != ETAG
    with pytest.raises(HttpResponseError):
        target.start_copy_from_url(
            source.url, source_etag='"0x1"', source_match_condition=MatchConditions.IfNotModified
        )


def test_tags_are_found_and_a_seal_is_kept(box: ContainerClient) -> None:
    assert [one.name for one in box.find_blobs_by_tags("\"colour\" = 'red'")] == ["one"]
    box.get_blob_client("one").set_blob_tags({"colour": "blue"})
    assert not list(box.find_blobs_by_tags("\"colour\" = 'red'"))
    with pytest.raises(HttpResponseError) as sealed:
        box.get_blob_client("sealed").append_block(b"more")
    assert "BlobIsSealed" in str(sealed.value)


def test_a_deleted_blob_that_is_restored_has_an_etag_of_this_server(
    server: InProcessServer, box: ContainerClient
) -> None:
    service = BlobServiceClient.from_connection_string(server.connection_string)
    service.set_service_properties(delete_retention_policy=RetentionPolicy(enabled=True, days=1))
    one = box.get_blob_client("one")
    one.delete_blob(delete_snapshots="include")
    one.undelete_blob()
    assert one.get_blob_properties().etag != ETAG
    assert one.download_blob().readall() == b"0123456789"
    restored = box.get_blob_client("one", snapshot=SNAPSHOT)
    assert restored.download_blob().readall() == b"5678901234"


def test_a_new_snapshot_comes_after_the_old_ones(box: ContainerClient) -> None:
    one = box.get_blob_client("one")
    newer = one.create_snapshot()["snapshot"]
    times = [found.snapshot for found in box.list_blobs("one", include=["snapshots"])]
    assert times == [SNAPSHOT, newer, None]


def test_messages_are_retrieved_in_the_order_of_the_folder(server: InProcessServer) -> None:
    service = QueueServiceClient.from_connection_string(server.connection_string)
    work = service.get_queue_client("work")
    assert work.get_queue_properties().approximate_message_count == 103
    found = [one.id for one in work.receive_messages(messages_per_page=32)]
    assert found == [message(number)["messageId"] for number in (*range(100), 300, 301)]


def test_entities_keep_their_types_and_etags(server: InProcessServer) -> None:
    service = TableServiceClient.from_connection_string(server.connection_string)
    people = service.get_table_client("People")
    found = people.get_entity("p", "1")
    assert (found["whole"], type(found["whole"]), "none" in found) == (2.0, float, False)
    assert found.metadata["etag"] == entity("1")["eTag"]
    assert str(people.get_entity("p", "old guid")["g"]).endswith("5")
