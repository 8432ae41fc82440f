"""A damaged log of a killed server: `serve`, `doctor` and `backup` refuse it; it can be cut."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from azure.storage.blob import BlobServiceClient

from strongroom.cli.exits import Exit
from strongroom.engines.embedded.records.bound_pages import PAGE_BYTES
from strongroom.testing import Server
from strongroom.testing.ports import port_flags
from tests.cli.command import in_process, strongroom
from tests.engines.logs import flipped, frame_at

_BLOBS = 40


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a server that was killed; a bit of its log has flipped since."""
    data = tmp_path_factory.mktemp("killed") / "data"
    with Server.start(data=data, test_clock=False) as server:
        client = BlobServiceClient.from_connection_string(server.connection_string)
        box = client.create_container("box")
        for number in range(_BLOBS):
            box.upload_blob(f"{number}", b"%d" % number)
        server.kill()
    log = data / "records.sqlite-wal"
    log.write_bytes(flipped(log.read_bytes(), frame_at(20, PAGE_BYTES) + 1000, 3))
    return data


@pytest.fixture
def damaged(killed: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(killed, tmp_path / "data"))


@pytest.mark.parametrize("command", ["serve", "doctor", "backup"])
def test_a_damaged_log_is_refused_by_name(command: str, damaged: Path) -> None:
    log = damaged / "records.sqlite-wal"
    before = log.read_bytes()
    arguments = {
        "serve": ("serve", "--data", damaged, *port_flags()),
        "doctor": ("doctor", damaged),
        "backup": ("backup", damaged, damaged.with_name("backup")),
    }[command]
    ran = (strongroom if command == "serve" else in_process)(*arguments)
    assert ran.code == Exit.DATA
    assert f"{log} is damaged at frame 20" in ran.err
    assert f"strongroom doctor --cut-log {damaged}" in ran.err
    assert len(ran.err.splitlines()) == 1
    assert log.read_bytes() == before
    assert not damaged.with_name("backup").exists()


def test_a_damaged_log_can_be_cut_knowingly(damaged: Path) -> None:
    ran = in_process("doctor", damaged, "--cut-log", "--json")
    assert ran.code == Exit.DONE, ran.err
    assert "was cut at frame 20" in ran.err
    assert json.loads(ran.out)["whole"]
    assert (damaged / "records.sqlite-wal.damaged").exists()
    with Server.start(data=damaged, test_clock=False) as server:
        client = BlobServiceClient.from_connection_string(server.connection_string)
        names = {int(one.name) for one in client.get_container_client("box").list_blobs()}
    assert 0 < len(names) < _BLOBS
    assert names == set(range(len(names))), "what lay before the damage is there, in order"
    ran = in_process("doctor", damaged, "--cut-log")
    assert (ran.code, "nothing was cut" in ran.err) == (Exit.DONE, True)
