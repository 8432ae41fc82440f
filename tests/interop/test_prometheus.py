"""Prometheus, as Debian has it: the files of deploy/prometheus, and a scrape of a real server."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from azure.storage.blob import BlobServiceClient

from strongroom.engines.embedded.upkeep.backup import backup
from strongroom.testing import InProcessServer
from strongroom.testing.ports import HOST, free_port
from tests.app.gateways_of_a_store import settings_over
from tests.cli.command import in_process
from tests.interop.tools import require_tool
from tests.over_postgres import new_store

FOLDER = Path(__file__).parents[2] / "deploy" / "prometheus"
_RULES = (FOLDER / "alerts.yml").read_text()
_METRIC = re.compile(r"\bstrongroom_\w+")
_DEADLINE_S = 60


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "config", "prometheus.yml"),
        ("check", "rules", "alerts.yml"),
        ("test", "rules", "alerts_test.yml"),
        ("check", "rules", "gateways.yml"),
        ("test", "rules", "gateways_test.yml"),
    ],
    ids=" ".join,
)
def test_promtool_accepts_the_files(arguments: tuple[str, ...]) -> None:
    done = subprocess.run(
        [require_tool("promtool"), *arguments],
        cwd=FOLDER,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("rules", ["alerts", "gateways"])
def test_each_alert_is_tested_to_fire_and_not_to(rules: str) -> None:
    tests = (FOLDER / f"{rules}_test.yml").read_text()
    for alert in re.findall(r"- alert: (\w+)", (FOLDER / f"{rules}.yml").read_text()):
        after = re.findall(rf"alertname: {alert}\n +(exp_alerts:.*)", tests)
        assert "exp_alerts: []" in after, f"{alert} is not tested to be quiet"
        assert "exp_alerts:" in after, f"{alert} is not tested to fire"


def test_prometheus_scrapes_a_server_that_has_every_metric_of_the_alerts(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with InProcessServer.start(data=data, test_clock=False) as server:
        client = BlobServiceClient.from_connection_string(server.connection_string)
        client.create_container("box").upload_blob("one", bytes(100_000))
        backup(data, tmp_path / "backup")
        with _prometheus(tmp_path, f"{HOST}:{server.port}") as port:
            assert _value(port, 'up{job="strongroom"}') == 1
            for name in sorted(set(_METRIC.findall(_RULES))):
                assert _value(port, f"sum({name})") is not None, name
            assert _value(port, 'ALERTS{alertname="StrongroomDown"}') is None
            rules = _asked(port, "rules")["groups"]
    assert rules[0]["rules"]
    assert not [one["lastError"] for one in rules[0]["rules"] if one.get("lastError")]


def test_a_gateway_shows_every_metric_of_its_alerts(tmp_path: Path) -> None:
    """A quota and a folder of bodies have alerts of their own."""
    rules = (FOLDER / "gateways.yml").read_text()
    store = replace(new_store(), quota_bytes=10**9, bodies=f"file://{tmp_path}")
    made = ("store", "init", store.url, "--schema", store.schema, "--bodies", f"file://{tmp_path}")
    assert in_process(*made).code == 0
    with InProcessServer(settings_over(store)) as server:
        shown = _metrics(server.port)
    for name in sorted(set(_METRIC.findall(rules))):
        assert f"\n{name} " in shown, name


def _metrics(port: int) -> str:
    connection = http.client.HTTPConnection(HOST, port, timeout=10)
    try:
        connection.request("GET", "/.strongroom/metrics")
        return connection.getresponse().read().decode()
    finally:
        connection.close()


@contextmanager
def _prometheus(folder: Path, target: str) -> Iterator[int]:
    """Run Prometheus with our configuration for one target; yield its port when it has scraped."""
    for rules in ("alerts.yml", "gateways.yml"):
        shutil.copy(FOLDER / rules, folder)
    text = (FOLDER / "prometheus.yml").read_text()
    assert text.count("127.0.0.1:10000") == 1
    text = text.replace("127.0.0.1:10000", target).replace("15s", "1s")
    (folder / "prometheus.yml").write_text(text)
    port = free_port()
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [
                require_tool("prometheus"),
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'tsdb'}",
                f"--web.listen-address={HOST}:{port}",
            ],
            cwd=folder,
            stdout=log,
            stderr=log,
        )
    try:
        until_s = time.monotonic() + _DEADLINE_S
        while not _has_scraped(port):
            assert process.poll() is None, (folder / "prometheus.log").read_text()
            assert time.monotonic() < until_s, (folder / "prometheus.log").read_text()
            time.sleep(0.2)
        yield port
    finally:
        process.terminate()
        process.wait(30)


def _has_scraped(port: int) -> bool:
    try:
        return _value(port, "count(strongroom_disk_free_bytes)") is not None
    except OSError:
        return False


def _value(port: int, query: str) -> float | None:
    found = _asked(port, f"query?query={quote(query)}")["result"]
    return float(found[0]["value"][1]) if found else None


def _asked(port: int, path: str) -> Any:
    connection = http.client.HTTPConnection(HOST, port, timeout=20)
    try:
        connection.request("GET", f"/api/v1/{path}")
        answer = connection.getresponse()
        body = answer.read()
    finally:
        connection.close()
    if answer.status != 200:
        raise OSError(f"{answer.status}: {body[:200]!r}")
    return json.loads(body)["data"]
