"""The dashboard for Grafana asks for metrics, labels and values that a server has."""

from __future__ import annotations

import http.client
import json
import re
from pathlib import Path

from azure.storage.blob import BlobServiceClient
from prometheus_client.parser import text_string_to_metric_families

from strongroom.engines.embedded.disk.files import OsFiles
from strongroom.engines.embedded.scrub import kept
from strongroom.engines.embedded.upkeep.backup import backup
from strongroom.testing import InProcessServer
from tests.tidy.sources import ROOT

_DASHBOARD = json.loads((ROOT / "deploy/grafana/strongroom.json").read_text(encoding="utf-8"))
_NAME = re.compile(r"\b(?:strongroom|process)_\w+")


def _queries() -> list[str]:
    return [target["expr"] for panel in _DASHBOARD["panels"] for target in panel["targets"]]


def _served(folder: Path) -> dict[str, set[str]]:
    """The names of all samples of a server that was backed up and scrubbed, with their labels."""
    with InProcessServer.start(data=folder / "data", test_clock=False):
        pass
    kept.save(str(folder / "data"), OsFiles(), kept.KeptScrub(began_s=1.0, ended_s=2.0))
    with InProcessServer.start(data=folder / "data", test_clock=False) as server:
        client = BlobServiceClient.from_connection_string(server.connection_string)
        client.create_container("box").upload_blob("b", b"1")
        backup(folder / "data", folder / "backup")
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
        connection.request("GET", "/.strongroom/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def test_each_metric_and_label_of_the_dashboard_is_served(tmp_path: Path) -> None:
    served = _served(tmp_path)
    queries = _queries()
    asked = {name for query in queries for name in _NAME.findall(query)}
    assert len(asked) > 15
    assert not asked - served.keys()
    labels = set().union(*served.values())
    used = {one for query in queries for one in re.findall(r"by \(([\w, ]+)\)", query)}
    for grouped in used:
        assert not {label.strip() for label in grouped.split(",")} - labels
    legends = {
        label
        for panel in _DASHBOARD["panels"]
        for target in panel["targets"]
        for label in re.findall(r"{{(\w+)}}", target["legendFormat"])
    }
    assert not legends - labels


def test_each_metric_of_the_store_is_on_the_dashboard(tmp_path: Path) -> None:
    asked = {name for query in _queries() for name in _NAME.findall(query)}
    own = {name for name in _served(tmp_path) if name.startswith("strongroom_")}
    shown = {re.sub(r"_(?:bucket|sum|count|created)$", "", name) for name in asked}
    assert not {re.sub(r"_(?:bucket|sum|count|created)$", "", name) for name in own} - shown


def test_no_two_panels_lie_on_each_other() -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in _DASHBOARD["panels"]:
        place = panel["gridPos"]
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert (x, y) not in taken, f"{panel['title']} lies on {taken[x, y]}"
                taken[x, y] = panel["title"]
        assert place["x"] + place["w"] <= 24
    numbers = [panel["id"] for panel in _DASHBOARD["panels"]]
    assert len(numbers) == len(set(numbers))
