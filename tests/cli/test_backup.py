"""`strongroom backup`, `restore`, `doctor`: beside a running server, and their refusals."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from azure.storage.blob import BlobServiceClient

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_NAME
from strongroom.cli.exits import Exit
from strongroom.engines.embedded.records.bound_pages import PAGE_BYTES
from strongroom.testing import InProcessServer, Server
from strongroom.testing.ports import port_flags
from tests.cli.command import in_process, strongroom

BODY = b"b" * 50_000
ACCOUNT = DEVELOPMENT_ACCOUNT_NAME


def test_a_backup_under_load_is_whole_and_holds_what_was_answered_before(tmp_path: Path) -> None:
    data, backup, restored = tmp_path / "data", tmp_path / "backup", tmp_path / "restored"
    with Server.start(data=data, test_clock=False) as server:
        client = BlobServiceClient.from_connection_string(server.connection_string)
        box = client.create_container("box")
        for number in range(20):
            box.upload_blob(f"before-{number}", BODY if number % 2 else b"small")
        stop = threading.Event()

        def write() -> None:
            for number in range(5000):
                if stop.is_set():
                    return
                box.upload_blob(f"during-{number % 50}", BODY, overwrite=True)

        writer = threading.Thread(target=write)
        writer.start()
        ran = strongroom("backup", data, backup)
        looked = strongroom("doctor", data)
        stop.set()
        writer.join(60)
    assert ran.code == 0, ran.err
    assert (looked.code, looked.err) == (0, "")
    checked = in_process("doctor", backup, "--json")
    report = json.loads(checked.out)
    assert report["whole"], report
    assert report["counts"]["blobs"] >= 20
    assert in_process("restore", backup, restored).code == 0
    with InProcessServer.start(data=restored, test_clock=False) as again:
        client = BlobServiceClient.from_connection_string(again.connection_string)
        for number in range(20):
            found = client.get_blob_client("box", f"before-{number}").download_blob().readall()
            assert found == (BODY if number % 2 else b"small")
        client.get_blob_client("box", "after").upload_blob(BODY)
    assert in_process("doctor", restored).code == 0
    assert json.loads(in_process("doctor", backup, "--json").out) == report


def test_keys_stay_out_of_a_backup_and_the_command_says_so(tmp_path: Path) -> None:
    data, backup = tmp_path / "data", tmp_path / "backup"
    assert in_process("account", "add", "orders", "--data", data).code == 0
    with InProcessServer.start(data=data, test_clock=False):
        pass
    ran = in_process("backup", data, backup)
    assert "accounts.json" in ran.out
    assert not list(backup.rglob("accounts.json"))
    assert in_process("backup", data, tmp_path / "second", "--quiet").out == ""


def test_a_backup_is_not_served(tmp_path: Path) -> None:
    data, backup = tmp_path / "data", tmp_path / "backup"
    with InProcessServer.start(data=data, test_clock=False):
        pass
    assert in_process("backup", data, backup).code == 0
    ran = strongroom("serve", "--data", backup, *port_flags())
    assert ran.code == Exit.DATA
    assert "backup" in ran.err


@pytest.mark.parametrize("command", ["backup", "restore"])
def test_nothing_is_copied_over_something(tmp_path: Path, command: str) -> None:
    data = tmp_path / "data"
    with InProcessServer.start(data=data, test_clock=False):
        pass
    source = data
    if command == "restore":
        source = tmp_path / "backup"
        assert in_process("backup", data, source).code == 0
    target = tmp_path / "target"
    target.mkdir()
    (target / "precious").write_text("kept")
    ran = in_process(command, source, target)
    assert ran.code == Exit.DATA
    assert "not empty" in ran.err
    assert [path.name for path in target.iterdir()] == ["precious"]


def test_an_interrupted_backup_is_not_restored_and_the_next_replaces_it(tmp_path: Path) -> None:
    data, target = tmp_path / "data", tmp_path / "backup"
    with InProcessServer.start(data=data, test_clock=False):
        pass
    assert in_process("backup", data, target).code == 0
    (target / "FORMAT").rename(target / "UNFINISHED")
    for ran in (in_process("restore", target, tmp_path / "new"), in_process("doctor", target)):
        assert ran.code == Exit.DATA
        assert "was interrupted" in ran.err
        assert len(ran.err.splitlines()) == 1
    ran = strongroom("backup", data, target)
    assert (ran.code, "interrupted; it is replaced" in ran.err) == (0, True)
    assert in_process("restore", target, tmp_path / "new").code == 0


def test_a_damaged_backup_is_restored_only_knowingly(tmp_path: Path) -> None:
    data, target = tmp_path / "data", tmp_path / "backup"
    with InProcessServer.start(data=data, test_clock=False) as server:
        client = BlobServiceClient.from_connection_string(server.connection_string)
        client.create_container("box").upload_blob("body", BODY)
    assert in_process("backup", data, target).code == 0
    (segment,) = (target / "segments").iterdir()
    segment.unlink()
    ran = in_process("restore", target, tmp_path / "new")
    assert ran.code == Exit.DATA
    assert f"{target} is not whole: segment" in ran.err
    assert "--accept-damage" in ran.err
    assert in_process("restore", target, tmp_path / "new", "--accept-damage").code == 0


@pytest.mark.parametrize("command", ["backup", "restore", "doctor"])
def test_what_is_no_data_directory_is_refused(tmp_path: Path, command: str) -> None:
    source = tmp_path / "nothing"
    source.mkdir()
    target = [] if command == "doctor" else [tmp_path / "target"]
    ran = in_process(command, source, *target)
    assert ran.code == Exit.DATA
    assert len(ran.err.splitlines()) == 1
    assert not list(source.iterdir())


def test_a_missing_directory_is_refused_by_name(tmp_path: Path) -> None:
    ran = in_process("doctor", tmp_path / "missing")
    assert ran.code == Exit.DATA
    assert "missing" in ran.err


def test_the_doctor_finds_a_flipped_bit(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with InProcessServer.start(data=data, test_clock=False) as server:
        client = BlobServiceClient.from_connection_string(server.connection_string)
        client.create_container("box").upload_blob("body", BODY)
    assert in_process("doctor", data).code == 0
    (segment,) = [path for path in (data / "segments").iterdir() if BODY in path.read_bytes()]
    damaged = bytearray(segment.read_bytes())
    damaged[damaged.index(BODY) + 1000] ^= 1
    segment.write_bytes(damaged)
    ran = in_process("doctor", data)
    assert ran.code == Exit.REFUSED
    named, verdict, advice = ran.out.splitlines()
    assert named == f"{ACCOUNT}/box/body: its bytes are damaged: their checksum differs"
    assert verdict.startswith(f"{data}: 1 problem (1 container, 1 blob, 0 snapshots, ")
    assert "strongroom restore BACKUP NEW_DIRECTORY" in advice
    report = json.loads(in_process("doctor", data, "--json").out)
    assert not report["whole"]
    assert [finding["place"] for finding in report["findings"]] == [f"{ACCOUNT}/box/body"]


def broken(data: Path) -> Path:
    """A data directory whose records are no database any more; their file."""
    with InProcessServer.start(data=data, test_clock=False):
        """Only that it is there."""
    records = data / "records.sqlite"
    records.write_bytes(b"no database " * 1000)
    return records


@pytest.mark.parametrize("command", ["backup", "doctor"])
def test_records_that_cannot_be_read_are_named(tmp_path: Path, command: str) -> None:
    records = broken(tmp_path / "data")
    target = [] if command == "doctor" else [tmp_path / "target"]
    ran = in_process(command, tmp_path / "data", *target)
    assert ran.code == Exit.DATA
    assert f"{records} cannot be read: file is not a database" in ran.err
    assert len(ran.err.splitlines()) == 1


def test_the_doctor_tells_what_it_found_before_it_could_read_no_further(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with InProcessServer.start(data=data, test_clock=False) as server:
        client = BlobServiceClient.from_connection_string(server.connection_string)
        container = client.create_container("box")
        for number in range(60):
            container.upload_blob(f"small{number}", b"x" * 6000)
    records = data / "records.sqlite"
    text = bytearray(records.read_bytes())
    # Beyond the pages that say what the tables are.
    kept_bytes = 8 * PAGE_BYTES
    text[kept_bytes:] = b"\xff" * (len(text) - kept_bytes)
    records.write_bytes(text)
    ran = in_process("doctor", data, "--json")
    assert ran.code == Exit.REFUSED
    findings = json.loads(ran.out)["findings"]
    assert {finding["place"] for finding in findings} == {"records.sqlite"}
    assert len(findings) > 1
    assert "cannot be read any further" in findings[-1]["problem"]


def test_a_backup_of_damaged_bodies_is_refused_unless_nothing_is_verified(tmp_path: Path) -> None:
    data, target = tmp_path / "data", tmp_path / "backup"
    with InProcessServer.start(data=data, test_clock=False) as server:
        client = BlobServiceClient.from_connection_string(server.connection_string)
        client.create_container("box").upload_blob("body", BODY)
    (segment,) = (data / "segments").iterdir()
    held = bytearray(segment.read_bytes())
    held[1000] ^= 1
    segment.write_bytes(held)
    ran = in_process("backup", data, target)
    assert ran.code == Exit.DATA
    assert f"{data} is damaged, so no backup was made" in ran.err
    assert f"strongroom doctor {data}" in ran.err
    assert "strongroom restore" in ran.err
    assert not target.exists()
    assert in_process("backup", data, target, "--no-verify").code == 0
    assert in_process("restore", target, tmp_path / "new").code == Exit.DATA
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("flags", [[], ["--no-verify"]])
def test_a_backup_of_a_damaged_page_is_refused_and_leaves_nothing(
    flags: list[str], tmp_path: Path
) -> None:
    data, target = tmp_path / "data", tmp_path / "backup"
    with InProcessServer.start(data=data, test_clock=False) as server:
        client = BlobServiceClient.from_connection_string(server.connection_string)
        client.create_container("box").upload_blob("body", b"marker of a body")
    held = bytearray((data / "records.sqlite").read_bytes())
    held[held.index(b"marker of a body")] ^= 1
    (data / "records.sqlite").write_bytes(held)
    target.mkdir()
    ran = in_process("backup", data, target, *flags)
    assert ran.code == Exit.DATA
    assert f"{data} is damaged, so no backup was made" in ran.err
    assert "not an error" not in ran.err
    assert len(ran.err.splitlines()) == 1
    assert list(target.iterdir()) == []


def test_the_data_directory_may_come_from_the_environment(tmp_path: Path) -> None:
    data, backup = tmp_path / "data", tmp_path / "backup"
    with InProcessServer.start(data=data):
        pass
    assert in_process("backup", backup, STRONGROOM_DATA=str(data)).code == 0
    ran = in_process("doctor", STRONGROOM_DATA=str(data))
    assert ran.code == 0 and ran.out.startswith(f"{data}: whole")
    assert in_process("doctor", backup, STRONGROOM_DATA=str(tmp_path / "else")).code == 0
    restored = tmp_path / "restored"
    assert in_process("restore", backup, STRONGROOM_DATA=str(restored)).code == 0
    ran = in_process("upgrade", STRONGROOM_DATA=str(restored))
    assert (ran.code, ran.out) == (0, f"{restored} has format 4 already.\n")
    assert in_process("restore", backup).code == Exit.USAGE
    assert in_process("upgrade").code == Exit.USAGE
    for given in ((backup,), (data, backup, backup)):
        ran = in_process("backup", *given)
        assert ran.code == Exit.USAGE and "STRONGROOM_DATA" in ran.err
