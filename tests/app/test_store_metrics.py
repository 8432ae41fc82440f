"""Metrics of the disk, the reserve, the data, commits, damage and backups."""

from __future__ import annotations

import asyncio
import http.client
import time
from pathlib import Path

from azure.storage.blob import BlobServiceClient

from strongroom.engines.base import DataDamaged
from strongroom.engines.embedded.upkeep.backup import backup
from strongroom.servers.telemetry import StoreMetrics, Telemetry
from strongroom.testing import InProcessServer
from strongroom.testing.contract.subject import hidden, put, put_until_full
from strongroom.values import StoreFacts
from tests.engines.disks.disk import Disk
from tests.engines.embedded_stores import BALLAST_BYTES, store_on


def _metrics(server: InProcessServer) -> dict[str, float]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    try:
        connection.request("GET", "/.strongroom/metrics")
        text = connection.getresponse().read().decode()
    finally:
        connection.close()
    return _values(text)


def _values(text: str) -> dict[str, float]:
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_a_server_shows_its_disk_its_commits_and_its_last_backup(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with InProcessServer.start(data=data, test_clock=False) as server:
        client = BlobServiceClient.from_connection_string(server.connection_string)
        before = _metrics(server)
        assert "strongroom_last_backup_timestamp_seconds" not in before
        box = client.create_container("box")
        box.upload_blob("large", bytes(100_000))
        found = _metrics(server)
        box.delete_blob("large")
        begun = time.time()
        backup(data, tmp_path / "backup")
        after = _metrics(server)
    assert found["strongroom_disk_free_bytes"] > 0
    assert found["strongroom_disk_full"] == 0
    assert found["strongroom_ballast_bytes"] == found["strongroom_ballast_whole_bytes"] == 2**25
    assert found['strongroom_data_bytes{part="records"}'] >= 8192
    assert found['strongroom_data_bytes{part="log"}'] > 0
    assert found['strongroom_data_bytes{part="segments"}'] == 100_000
    assert found["strongroom_live_bytes"] == 100_000
    assert after["strongroom_live_bytes"] == 0
    count = "strongroom_commit_seconds_count"
    assert found[count] > before[count]
    assert found['strongroom_commit_seconds_bucket{le="+Inf"}'] == found[count]
    assert found["strongroom_commit_seconds_sum"] > before["strongroom_commit_seconds_sum"]
    assert found["strongroom_segment_sync_seconds_count"] >= 1
    assert found["strongroom_segment_sync_seconds_sum"] > 0
    assert begun - 5 <= after["strongroom_last_backup_timestamp_seconds"] <= time.time() + 5


def test_a_store_in_memory_has_none_of_them() -> None:
    with InProcessServer.start() as server:
        assert not [name for name in _metrics(server) if "disk" in name or "ballast" in name]


def test_a_full_disk_and_damage_are_seen(tmp_path: Path) -> None:
    async def prove() -> None:
        disk = Disk(tmp_path)
        async with store_on(disk, log_ahead=False) as store:
            for number in range(10):
                await put(store, (hidden(b"%d" % number), bytes(5_000)))
            facts = store.facts()
            assert (facts.is_full, facts.ballast_bytes) == (False, BALLAST_BYTES)
            disk.capacity_bytes = disk.used_bytes()
            await put_until_full(store)
            assert (store.facts().is_full, store.facts().free_bytes) == (True, 0)
            damaged = facts.damaged_reads
            DataDamaged("a page")
            assert store.facts().damaged_reads == damaged + 1

    asyncio.run(prove())


def test_a_disk_that_cannot_be_asked_leaves_the_other_metrics() -> None:
    def broken() -> StoreFacts:
        raise OSError("gone")

    telemetry = Telemetry(lambda: 0, lambda: 0)
    telemetry.add(StoreMetrics(broken))
    found = _values(telemetry.exposition()[0].decode())
    assert "strongroom_connections" in found
    assert "strongroom_disk_free_bytes" not in found
