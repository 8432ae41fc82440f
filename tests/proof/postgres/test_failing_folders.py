"""A gateway whose folder of bodies fails: a sync is answered EIO, the folder is unmounted."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from azure.core.exceptions import AzureError, ResourceNotFoundError
from azure.storage.blob import BlobServiceClient, ContainerClient

from strongroom.cli.exits import Exit
from strongroom.database import DatabaseSettings
from strongroom.testing import Server
from strongroom.testing.server import ServerFailed
from tests.cli.command import in_process
from tests.engines.postgres.patience import until
from tests.over_postgres import new_store

LONG = os.urandom(3 * 1024 * 1024)
_SOURCE = Path(__file__).with_name("failing_syncs.c")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder for bodies."""
    made = tmp_path / "shared"
    made.mkdir()
    return made


def _ready(folder: Path) -> DatabaseSettings:
    store = replace(new_store(), bodies=f"file://{folder}")
    flags = ("--schema", store.schema, "--bodies", str(store.bodies))
    assert in_process("store", "init", store.url, *flags).code == Exit.DONE
    return store


def _served(store: DatabaseSettings, data: Path, **environment: str) -> Server:
    flags = ("--store-schema", store.schema, "--bodies", str(store.bodies))
    variables = {"STRONGROOM_STORE": store.url, **environment}
    return Server.start(data=data, test_clock=False, flags=flags, environment=variables)


def _box(server: Server) -> ContainerClient:
    client = BlobServiceClient.from_connection_string(server.connection_string, retry_total=0)
    box = client.get_container_client("box")
    if not box.exists():
        box.create_container()
    return box


def _is_whole(store: DatabaseSettings) -> None:
    checked = in_process("doctor", store.url, "--schema", store.schema)
    assert checked.code == Exit.DONE, checked.out


@pytest.fixture
def layer(tmp_path: Path) -> Path:
    """The layer that lets syncs fail, built."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.fail("cc is missing; install it: apt-get install -y gcc libc6-dev")
    built = tmp_path / "failing.so"
    command = [compiler, "-shared", "-fPIC", "-O", "-o", str(built), str(_SOURCE), "-ldl"]
    subprocess.run(command, check=True)
    return built


def test_a_failed_sync_ends_the_gateway_and_what_it_answered_is_kept(
    tmp_path: Path, folder: Path, layer: Path
) -> None:
    store, now = _ready(folder), tmp_path / "now"
    failing = {
        "LD_PRELOAD": str(layer),
        "FAILING_FOLDER": str(folder),
        "FAILING_NOW": str(now),
    }
    with _served(store, tmp_path / "data", **failing) as server:
        box = _box(server)
        box.upload_blob("before", LONG)
        now.touch()
        with pytest.raises(AzureError):
            box.upload_blob("failed", LONG)
        until(lambda: server.exit_code is not None, "the gateway goes on")
        assert server.exit_code == Exit.STORAGE
    now.unlink()
    with _served(store, tmp_path / "data") as server:
        box = _box(server)
        assert box.download_blob("before").readall() == LONG
        with pytest.raises(ResourceNotFoundError):
            box.download_blob("failed")
        box.upload_blob("failed", LONG)
    _is_whole(store)


@pytest.fixture
def mounted(folder: Path) -> Iterator[Path]:
    """A folder on a file system of its own."""
    mount = ["mount", "-t", "tmpfs", "-o", "mode=0700", "strongroom-test", str(folder)]
    done = subprocess.run(mount, check=False, capture_output=True, text=True)
    if done.returncode:
        pytest.fail(f"this proof mounts a file system, so run it as root: {done.stderr}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=False, capture_output=True)


def test_an_unmounted_folder_stops_long_bodies_until_it_is_back(
    tmp_path: Path, mounted: Path
) -> None:
    store = _ready(mounted)
    kept = tmp_path / "kept"
    kept.mkdir()
    with _served(store, tmp_path / "data") as server:
        box = _box(server)
        box.upload_blob("long", LONG)
        box.upload_blob("short", b"short")
        subprocess.run(["mount", "--bind", str(mounted), str(kept)], check=True)
        try:
            subprocess.run(["umount", "-l", str(mounted)], check=True)
            until(lambda: _fails(box, "long"), "it is served from nowhere")
            with pytest.raises(AzureError):
                box.upload_blob("more", LONG)
            assert box.download_blob("short").readall() == b"short"
            assert list(mounted.iterdir()) == [], "something lies below the mount point"
            subprocess.run(["mount", "--bind", str(kept), str(mounted)], check=True)
            until(lambda: not _fails(box, "long"), "it does not come back")
            assert box.download_blob("long").readall() == LONG
            box.upload_blob("more", LONG)
        finally:
            subprocess.run(["umount", "-l", str(kept)], check=False)
    _is_whole(store)
    subprocess.run(["umount", "-l", str(mounted)], check=True)
    refused = _refused(store, tmp_path / "data")
    assert "mount" in refused


def _fails(box: ContainerClient, name: str) -> bool:
    try:
        box.download_blob(name).readall()
    except AzureError:
        return True
    return False


def _refused(store: DatabaseSettings, data: Path) -> str:
    with pytest.raises(ServerFailed, match="no mark") as refusal:
        _served(store, data)
    return str(refusal.value)
