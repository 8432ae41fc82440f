"""The scrub of a server: what an operator sees of it in health, metrics, status and the log."""

from __future__ import annotations

import http.client
import json
import logging
import time
from pathlib import Path

import pytest
from azure.storage.blob import BlobServiceClient

from strongroom.cli.exits import Exit
from strongroom.config import Settings
from strongroom.engines.base import DataDamaged
from strongroom.engines.embedded.scrub import kept, scrub
from strongroom.testing import InProcessServer
from tests.cli.command import in_process

_MARKER = b"<the content that is damaged>"
_DEADLINE_S = 60


def _settings(data: Path | None, days: int = 30) -> Settings:
    return Settings(
        data=data, blob_port=0, queue_port=0, table_port=0, file_port=0, scrub_days=days
    )


def _get(server: InProcessServer, name: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    try:
        connection.request("GET", f"/.strongroom/{name}")
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def _metrics(server: InProcessServer) -> dict[str, float]:
    lines = _get(server, "metrics")[1].splitlines()
    pairs = (line.rpartition(" ") for line in lines if line.startswith("strongroom_scrub"))
    return {name: float(value) for name, _, value in pairs if "_created" not in name}


def _damaged_directory(data: Path) -> None:
    """Make a directory with two blobs, of which one is damaged."""
    with InProcessServer(_settings(data, 0)) as server:
        client = BlobServiceClient.from_connection_string(server.connection_string)
        box = client.create_container("box")
        box.upload_blob("whole", bytes(200_000))
        box.upload_blob("damaged", _MARKER + bytes(200_000))
    [segment] = (data / "segments").iterdir()
    with segment.open("r+b") as file:
        file.seek(segment.read_bytes().index(_MARKER) + 5)
        file.write(b"\xff")


def _wait_for_a_pass(server: InProcessServer) -> dict[str, float]:
    until_s = time.monotonic() + _DEADLINE_S
    while "strongroom_scrub_last_completed_timestamp_seconds" not in (found := _metrics(server)):
        assert time.monotonic() < until_s, found
        time.sleep(0.02)
    return found


def test_damage_is_in_health_metrics_status_and_log_and_outlives_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    data = tmp_path / "data"
    _damaged_directory(data)
    with monkeypatch.context() as soon:
        soon.setattr(scrub, "START_AFTER_S", 0.0)
        with InProcessServer(_settings(data)) as server:
            metrics = _wait_for_a_pass(server)
    assert metrics["strongroom_scrub_damaged"] == 1
    assert metrics["strongroom_scrub_progress_ratio"] == 1
    assert metrics["strongroom_scrub_read_bytes_total"] > 400_000
    assert metrics["strongroom_scrub_interval_seconds"] == 30 * 86400
    assert abs(metrics["strongroom_scrub_last_completed_timestamp_seconds"] - time.time()) < 600
    errors = [one.message for one in caplog.records if one.levelno == logging.ERROR]
    assert len(errors) == 1
    assert "its checksum differs" in errors[0]
    with InProcessServer(_settings(data)) as server:
        status, body = _get(server, "health")
        shown = in_process("status", server.url)
        client = BlobServiceClient.from_connection_string(server.connection_string)
        assert client.get_blob_client("box", "whole").download_blob().readall() == bytes(200_000)
        assert _metrics(server)["strongroom_scrub_damaged"] == 1
    assert (status, json.loads(body)["status"], json.loads(body)["damage"]) == (
        200,
        "ready",
        "found",
    )
    assert shown.code == Exit.REFUSED
    assert "the scrub found damage" in shown.out
    assert "1 damaged places" in shown.out
    assert in_process("doctor", data).code == Exit.REFUSED


def test_a_store_without_damage_says_nothing_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scrub, "START_AFTER_S", 0.0)
    monkeypatch.setattr(DataDamaged, "found", 0)  # other tests of this process have found some
    with InProcessServer(_settings(tmp_path / "data", 7)) as server:
        metrics = _wait_for_a_pass(server)
        assert metrics["strongroom_scrub_damaged"] == 0
        assert metrics["strongroom_scrub_interval_seconds"] == 7 * 86400
        assert "damage" not in json.loads(_get(server, "health")[1])
        shown = in_process("status", server.url)
    assert shown.code == 0, shown.out
    assert "100% of its pass" in shown.out
    assert kept.load(str(tmp_path / "data")).ended_s is not None


def test_nothing_is_scrubbed_in_memory_or_with_0_days(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scrub, "START_AFTER_S", 0.0)
    for data, days in ((None, 30), (tmp_path / "data", 0)):
        with InProcessServer(_settings(data, days)) as server:
            assert _metrics(server) == {}
            assert "damage" not in json.loads(_get(server, "health")[1])
            if data is not None:
                assert "scrub          off" in in_process("status", server.url).out
    assert not (tmp_path / "data" / kept.FILE_NAME).exists()
