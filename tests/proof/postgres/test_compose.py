"""The compose file of two gateways: it is read by podman-compose, and what it starts works.

No container runs here: the images of PostgreSQL and HAProxy come from a registry. Its services run
as processes, with the commands, scripts and configuration of its files.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from azure.storage.blob import BlobServiceClient

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME
from strongroom.config import Settings
from strongroom.testing.ports import HOST
from tests.engines.postgres.servers import Administrator
from tests.proof.postgres.composition import FOLDER, PASSWORD, Composition

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """A folder with podman-compose."""
    folder = tmp_path / "packages"
    install = [sys.executable, "-m", "pip", "install", "-q", f"--target={folder}"]
    subprocess.run([*install, "podman-compose==1.6.0"], check=True)
    return folder


def configuration(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """What podman-compose makes of the file. It asks its engine for a version, and no more."""
    command = [sys.executable, str(folder / "podman_compose.py"), "--podman-path=/bin/echo"]
    return subprocess.run(
        [*command, "--file", str(FOLDER / "compose.yaml"), "config"],
        env={**os.environ, "PYTHONPATH": str(folder), **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_file_is_read_and_asks_for_a_password(packages: Path) -> None:
    parsed = configuration(packages, DATABASE_PASSWORD=PASSWORD)
    assert parsed.returncode == 0, parsed.stderr
    services = yaml.safe_load(parsed.stdout)["services"]
    assert set(services) == {"db1", "db2", "gateway1", "gateway2", "balancer"}
    refused = configuration(packages, DATABASE_PASSWORD="")
    assert refused.returncode != 0
    assert "DATABASE_PASSWORD" in refused.stderr


def test_what_the_file_names_is_there() -> None:
    services: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text())["services"]
    for name, service in services.items():
        assert re.fullmatch(r"[a-z./-]+:[\w.-]+", service["image"]), "each image has a tag"
        for volume in service.get("volumes", []):
            source = volume.partition(":")[0]
            assert not source.startswith(".") or (FOLDER / source).is_file(), f"{name}: {source}"
        for published in service.get("ports", []):
            assert published.startswith("127.0.0.1:"), "everybody knows the key of the account"
        for needed in service.get("depends_on", {}):
            assert "test" in services[needed]["healthcheck"], f"{name} waits for {needed}"
    for gateway in (services["gateway1"], services["gateway2"]):
        build = gateway["build"]
        assert (FOLDER / build["context"] / build["dockerfile"]).is_file()
        assert float(gateway["stop_grace_period"].rstrip("s")) > Settings().drain_timeout_s


def test_its_services_serve_and_take_over(tmp_path: Path) -> None:
    with Composition(tmp_path) as running:
        assert [running.healthcheck(name) for name in ("db1", "balancer")] == [0, 0]
        administrator = Administrator(running.primary.url)
        followers = "SELECT application_name, sync_state FROM pg_stat_replication"
        assert administrator.run(followers) == [("db2", "sync")]
        administrator.close()
        wiki = container(running.ports[0])
        wiki.create_container()
        wiki.upload_blob("first", b"1")
        serving = next(one for one in running.gateways.values() if is_ready(one._log))
        serving.stop()
        wiki.upload_blob("second", b"2")
        assert [wiki.download_blob(name).readall() for name in ("first", "second")] == [b"1", b"2"]


def is_ready(log: Path) -> bool:
    return b"is ready" in log.read_bytes()


def container(port: int) -> Any:
    """A container behind the balancer; the SDK repeats requests that have no answer."""
    string = (
        f"DefaultEndpointsProtocol=http;AccountName={DEVELOPMENT_ACCOUNT_NAME};AccountKey="
        f"{DEVELOPMENT_ACCOUNT_KEY};BlobEndpoint=http://{HOST}:{port}/{DEVELOPMENT_ACCOUNT_NAME};"
    )
    service = BlobServiceClient.from_connection_string(string, retry_total=20, retry_backoff=0.2)
    return service.get_container_client("wiki")
