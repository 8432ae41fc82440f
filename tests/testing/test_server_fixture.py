"""The shipped servers and fixtures for tests; tests/pages follows their manual."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from azure.core.exceptions import ResourceExistsError
from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobClient, BlobServiceClient
from azure.storage.blob.aio import BlobServiceClient as AsyncBlobServiceClient
from azure.storage.fileshare import ShareServiceClient
from azure.storage.queue import QueueServiceClient

from strongroom.app import CannotListen, DataUnusable
from strongroom.testing import InProcessServer, Server, pytest_plugin
from strongroom.testing.ports import HOST, free_port
from strongroom.testing.server import ServerClock, ServerFailed

Kind = type[InProcessServer] | type[Server]
KINDS = pytest.mark.parametrize("kind", [InProcessServer, Server])


def new_blob(server: InProcessServer | Server) -> BlobClient:
    service = BlobServiceClient.from_connection_string(server.connection_string)
    blob = service.create_container("box").get_blob_client("blob")
    blob.upload_blob(b"body")
    return blob


@KINDS
def test_a_lease_runs_out_when_the_clock_is_moved(kind: Kind) -> None:
    with kind.start() as server:
        blob = new_blob(server)
        blob.acquire_lease(lease_duration=60)
        server.clock.advance(59)
        with pytest.raises(ResourceExistsError):
            blob.acquire_lease(lease_duration=60)
        server.clock.advance(1)
        blob.acquire_lease(lease_duration=60)


@KINDS
def test_a_clock_that_is_not_for_tests_cannot_be_moved(kind: Kind) -> None:
    with kind.start(test_clock=False) as server, pytest.raises(ServerFailed):
        server.clock.advance(1)


@KINDS
def test_the_clock_does_not_run_backwards(kind: Kind) -> None:
    with kind.start() as server, pytest.raises((ServerFailed, ValueError)):
        server.clock.advance(-1)


@KINDS
def test_data_outlives_the_server(kind: Kind, tmp_path: Path) -> None:
    with kind.start(data=tmp_path / "data") as server:
        new_blob(server)
    with kind.start(data=tmp_path / "data") as server:
        blob = BlobClient.from_connection_string(server.connection_string, "box", "blob")
        assert blob.download_blob().readall() == b"body"


@KINDS
def test_a_stopped_server_is_gone_and_can_be_stopped_again(kind: Kind) -> None:
    server = kind.start()
    server.stop()
    server.stop()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((HOST, server.port), timeout=5)
    if isinstance(server, Server):
        server.close()


@KINDS
def test_two_servers_stand_side_by_side(kind: Kind) -> None:
    with kind.start() as one, kind.start() as two:
        assert one.port != two.port
        assert max(one.port, two.port) < 32768
        new_blob(one)
        new_blob(two)


@KINDS
def test_a_port_of_ones_own_choice_is_taken_or_refused(kind: Kind) -> None:
    port = free_port()
    with kind.start(port=port) as server:
        assert server.url == f"http://{HOST}:{port}"
        with pytest.raises(CannotListen):
            kind.start(port=port)


@KINDS
def test_async_code_uses_it_too(kind: Kind) -> None:
    async def use() -> bytes:
        async with (
            kind.start() as server,
            AsyncBlobServiceClient.from_connection_string(server.connection_string) as service,
        ):
            container = await service.create_container("box")
            await container.upload_blob("blob", b"body")
            return await (await container.download_blob("blob")).readall()

    assert asyncio.run(use()) == b"body"


def test_a_directory_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(DataUnusable, match="not empty"):
        InProcessServer.start(data=tmp_path)
    with pytest.raises(ServerFailed, match="not empty"):
        Server.start(data=tmp_path)


def test_what_was_answered_survives_a_kill(tmp_path: Path) -> None:
    with Server.start(data=tmp_path / "data") as server:
        blob = new_blob(server)
        server.kill()
        assert server.exit_code == -signal.SIGKILL
        server.restart()
        assert blob.download_blob().readall() == b"body"
        server.stop()
        assert server.exit_code == 0


def test_the_environment_s_accounts_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRONGROOM_ACCOUNTS", "mine:a2V5")
    monkeypatch.setenv("AZURITE_ACCOUNTS", "mine:a2V5")
    for kind in (InProcessServer, Server):
        with kind.start() as server:
            new_blob(server)


def test_the_fixtures_work_together(
    strongroom_server: InProcessServer,
    strongroom_connection_string: str,
    strongroom_clock: ServerClock,
) -> None:
    assert strongroom_connection_string == strongroom_server.connection_string
    service = BlobServiceClient.from_connection_string(strongroom_connection_string)
    blob = service.create_container("fixtures").get_blob_client("blob")
    blob.upload_blob(b"body")
    before = blob.get_blob_properties().last_modified
    strongroom_clock.advance(3600)
    blob.upload_blob(b"later", overwrite=True)
    assert (blob.get_blob_properties().last_modified - before).total_seconds() >= 3600


@KINDS
def test_a_reset_empties_the_server(kind: Kind) -> None:
    with kind.start() as server:
        blob = new_blob(server)
        server.reset()
        assert not blob.exists()
        new_blob(server)


@KINDS
def test_a_server_whose_data_is_to_last_is_not_reset(kind: Kind, tmp_path: Path) -> None:
    with kind.start(data=tmp_path / "data") as server:
        blob = new_blob(server)
        with pytest.raises(ServerFailed, match="--allow-reset"):
            server.reset()
        assert blob.exists()


def test_each_client_begins_with_an_empty_server(
    blob_service_client: BlobServiceClient,
    queue_service_client: QueueServiceClient,
    table_service_client: TableServiceClient,
    share_service_client: ShareServiceClient,
) -> None:
    """Each test does so: see the next one, which makes the same names."""
    assert list(blob_service_client.list_containers()) == []
    assert list(queue_service_client.list_queues()) == []
    assert list(table_service_client.list_tables()) == []
    assert list(share_service_client.list_shares()) == []
    blob_service_client.create_container("box").upload_blob("blob", b"body")
    queue_service_client.create_queue("tasks").send_message("text")
    table_service_client.create_table("Rows")
    share_service_client.create_share("docs")


test_each_client_begins_with_an_empty_server_again = test_each_client_begins_with_an_empty_server


def test_a_client_whose_sdk_is_missing_says_what_to_install(
    strongroom_server: InProcessServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, distribution in pytest_plugin.DISTRIBUTIONS.items():
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(pytest.fail.Exception, match=f"pip install {distribution}$"):
            pytest_plugin.client_of(strongroom_server, module, "Client")


def test_the_plugin_costs_other_test_runs_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_other.py").write_text(
        "import sys\n\ndef test_it():\n    assert 'strongroom.app' not in sys.modules\n"
        "    assert 'azure.core' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout
