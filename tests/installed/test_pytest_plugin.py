"""The fixtures of `strongroom.testing`, in a test suite that has only the wheel."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.installed.environments import Environment

_SUITE = """
from pathlib import Path

import strongroom
from azure.core.exceptions import ResourceExistsError
from azure.storage.blob import BlobServiceClient
import pytest


def test_an_upload_is_read_back(strongroom_connection_string):
    service = BlobServiceClient.from_connection_string(strongroom_connection_string)
    container = service.create_container("orders")
    container.upload_blob("first", b"1 cake")
    assert container.download_blob("first").readall() == b"1 cake"


def test_a_lease_runs_out_after_its_minute(strongroom_server, strongroom_clock):
    service = BlobServiceClient.from_connection_string(strongroom_server.connection_string)
    blob = service.create_container("leases").upload_blob("first", b"1 cake")
    blob.acquire_lease(lease_duration=60)
    with pytest.raises(ResourceExistsError):
        blob.acquire_lease(lease_duration=60)
    strongroom_clock.advance(60)
    blob.acquire_lease(lease_duration=60)


def test_it_is_the_installed_package():
    assert "site-packages" in Path(strongroom.__file__).parts
"""


@pytest.fixture(scope="module")
def with_pytest(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    folder = tmp_path_factory.mktemp("suite") / "venv"
    return Environment.create(folder, wheel, "pytest", "azure-storage-blob")


def test_a_suite_uses_them(with_pytest: Environment, tmp_path: Path) -> None:
    (tmp_path / "test_orders.py").write_text(_SUITE)
    assert "3 passed" in with_pytest.run("python", "-m", "pytest", "-q", cwd=tmp_path)
