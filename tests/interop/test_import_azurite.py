"""A folder that Azurite itself wrote, imported: the official SDKs read the same from both."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobBlock

from benchmarks import servers
from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_NAME
from strongroom.importing import ImportReport, import_folder
from tests.cli.command import in_process
from tests.interop import azurite_data, sdk_views
from tests.interop.azurite_data import Clients
from tests.interop.sdk_views import View

_MESSAGES_WAIT_S = 30


class Imported(NamedTuple):
    """A folder, and the server of what was imported from it."""

    before: View
    other_before: View
    messages: list[tuple[object, ...]]
    report: ImportReport
    folder: Path
    digest: str
    data: Path
    clients: Clients
    other: Clients


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imported]:
    servers.install_azurite()
    base = tmp_path_factory.mktemp("import")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AZURITE_ACCOUNTS", azurite_data.accounts_setting())
        peer = servers.Server(servers.AZURITE, servers.azurite_command, base / "azurite")
        peer.start()
        try:
            own, other = _clients(peer)
            azurite_data.fill(own)
            other.blobs.create_container("box").upload_blob("mine", b"of the other account")
            before, other_before = sdk_views.view(own), sdk_views.view(other)
            messages = [one[:4] for one in _peeked(own)]
        finally:
            peer.stop()
        digest = _digest(base / "azurite")
        report = import_folder(base / "azurite", base / "data")
        server = servers.Server(servers.STRONGROOM, servers.strongroom_command, base / "data")
        server.start()
        try:
            yield Imported(
                *(before, other_before, messages, report, base / "azurite", digest),
                *(base / "data", *_clients(server)),
            )
        finally:
            server.stop()
    assert in_process("doctor", base / "data").code == 0


def _clients(server: servers.Server) -> tuple[Clients, Clients]:
    blob, queue, table = server.ports
    names = DEVELOPMENT_ACCOUNT_NAME, azurite_data.OTHER_ACCOUNT
    own, other = (Clients.of(name, (blob, queue, table)) for name in names)
    return own, other


def _peeked(clients: Clients) -> list[tuple[object, ...]]:
    """Return the visible messages without changing them."""
    found = clients.queues.get_queue_client("work").peek_messages(32)
    return [(one.id, one.content, one.inserted_on, one.expires_on) for one in found]


def _digest(folder: Path) -> str:
    """Return a digest of the bytes and the times of change of all files."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        stat = path.stat()
        body = path.read_bytes() if path.is_file() else b""
        found.update(f"{path} {stat.st_mtime_ns} {len(body)}".encode() + body)
    return found.hexdigest()


def test_both_servers_show_the_same(imported: Imported) -> None:
    found = sdk_views.differences(imported.before, sdk_views.view(imported.clients))
    assert not found, "\n".join(found)
    # The other account has set no properties, and the servers have different defaults.
    other, part = sdk_views.view(imported.other), "containers"
    found = sdk_views.differences(imported.other_before[part], other[part])
    assert not found, "\n".join(found)


def test_the_report_counts_all_and_names_what_was_not_committed(imported: Imported) -> None:
    report = imported.report
    assert report.is_complete, report.lost
    assert report.accounts == (DEVELOPMENT_ACCOUNT_NAME, azurite_data.OTHER_ACCOUNT)
    skipped = {(one.kind, one.place.rpartition("/")[2]) for one in report.skipped}
    assert skipped == {("blocks", "blocks"), ("blocks", "staged"), ("blob", "staged")}
    assert (report.counts.containers, report.counts.queues, report.counts.tables) == (6, 3, 2)


def test_the_folder_stays_as_it_was(imported: Imported) -> None:
    assert _digest(imported.folder) == imported.digest


def test_messages_come_in_order_and_the_hidden_one_comes_back(imported: Imported) -> None:
    peeked = _peeked(imported.clients)
    assert peeked[: len(imported.messages)] == imported.messages
    ends_s = time.monotonic() + _MESSAGES_WAIT_S
    found: list[tuple[object, ...]] = []
    while len(found) < 43 and time.monotonic() < ends_s:
        found += sdk_views.messages(imported.clients, "work")
        time.sleep(0.2)
    assert len(found) == 43
    (hidden,) = [one for one in found if one[1] == "hidden for a while"]
    assert hidden[4] == 2, "it was retrieved once before, and once now"
    assert {one[4] for one in found if one is not hidden} == {1}
    assert "x" * 60_000 in {one[1] for one in found}
    later = imported.clients.queues.get_queue_client("later")
    assert later.receive_message() is None
    assert later.get_queue_properties().approximate_message_count == 1


def test_leases_that_ran_still_run(imported: Imported) -> None:
    leased = imported.clients.blobs.get_container_client("leased")
    for name in ("infinite", "breaking"):
        with pytest.raises(HttpResponseError) as refused:
            leased.upload_blob(name, b"without the lease", overwrite=True)
        assert refused.value.status_code == 412, name
    lease = azurite_data.INFINITE_LEASE
    leased.upload_blob("infinite", b"with the lease", overwrite=True, lease=lease)
    leased.upload_blob("broken", b"nobody holds it", overwrite=True)
    with pytest.raises(HttpResponseError) as kept:
        leased.delete_container()
    assert kept.value.status_code == 412


def test_an_old_etag_holds_until_the_first_change(imported: Imported) -> None:
    blob = imported.clients.blobs.get_blob_client("box", "large")
    old = blob.get_blob_properties().etag
    unmodified = MatchConditions.IfNotModified
    blob.set_blob_metadata({"a": "b"}, etag=old, match_condition=unmodified)
    new = blob.get_blob_properties().etag
    assert new != old
    with pytest.raises(HttpResponseError) as stale:
        blob.set_blob_metadata({"a": "c"}, etag=old, match_condition=unmodified)
    assert stale.value.status_code == 412
    blob.set_blob_metadata({"a": "c"}, etag=new, match_condition=unmodified)


def test_an_old_etag_of_an_entity_holds_until_the_first_change(imported: Imported) -> None:
    people = imported.clients.tables.get_table_client("People")
    entity = people.get_entity("many", "001")
    etag, unmodified = entity.metadata["etag"], MatchConditions.IfNotModified
    changed = {"PartitionKey": "many", "RowKey": "001", "n": 100}
    people.update_entity(changed, etag=etag, match_condition=unmodified)
    with pytest.raises(HttpResponseError) as stale:
        people.update_entity(changed, etag=etag, match_condition=unmodified)
    assert stale.value.status_code == 412


def test_imported_blobs_can_be_changed_snapshotted_and_deleted(imported: Imported) -> None:
    box = imported.clients.blobs.get_container_client("box")
    disk, log, blocks = (box.get_blob_client(name) for name in ("disk", "log", "blocks"))
    old = disk.get_blob_properties().etag
    snapshot = disk.create_snapshot()
    assert snapshot["etag"] == old
    disk.upload_page(b"n" * 512, offset=0, length=512)
    log.append_block(b"more\n")
    assert log.download_blob().readall().endswith(b"after the snapshot\nmore\n")
    committed = [one.id for one in blocks.get_block_list("committed")[0]]
    blocks.commit_block_list([BlobBlock(committed[0])])
    assert blocks.download_blob().readall() == azurite_data.LARGE
    for name in ("disk", "log", "blocks"):
        kept = [one for one in box.list_blobs(name, include=["snapshots"]) if one.snapshot]
        assert kept, name
        box.delete_blob(name, delete_snapshots="include")
    found = imported.clients.blobs.find_blobs_by_tags("\"colour\" = 'blue'")
    assert [one.name for one in found] == ["folder/täxt one.txt"]
