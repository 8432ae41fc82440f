"""`strongroom store copy`: a store of all services there and back, and what the command says."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from azure.storage.blob import generate_blob_sas

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME
from strongroom.cli.exits import Exit
from strongroom.config import ACCOUNTS_FILE_NAME, Settings
from strongroom.database import DatabaseSettings
from strongroom.testing import InProcessServer
from strongroom.testing.ports import port_flags
from tests.cli.command import in_process, strongroom
from tests.conformance import messages
from tests.conformance.answer import expect
from tests.conformance.client import Client
from tests.conformance.containers.test_container_acl import acl, document, policy
from tests.durability.kept_data import LEASE_ID, Services, questions
from tests.durability.kept_data import fill as fill_services
from tests.durability.kept_directories import unpack
from tests.engines.transfers.stores import new_schema
from tests.over_postgres import database

_HELD = "/empty/held"
_ETAGS = ("/kept/within", "/kept/listed", "/kept/appended", "/kept/paged", _HELD)
_PUT = {"x-ms-blob-type": "BlockBlob"}


def _lease(blobs: Client, action: str, **headers: str) -> int:
    fields = {"x-ms-lease-action": action, "x-ms-lease-id": LEASE_ID}
    fields |= {f"x-ms-{name.replace('_', '-')}": value for name, value in headers.items()}
    return blobs.put(f"{_HELD}?comp=lease", fields).status


def _sas() -> str:
    return generate_blob_sas(
        DEVELOPMENT_ACCOUNT_NAME,
        "kept",
        "long",
        account_key=DEVELOPMENT_ACCOUNT_KEY,
        policy_id="reading",
        expiry=datetime.now(UTC) + timedelta(hours=1),
    )


def _etags(blobs: Client) -> list[str]:
    return [blobs.head(one).etag for one in _ETAGS]


def test_a_store_of_all_services_comes_back_with_everything(tmp_path: Path) -> None:
    home, back = tmp_path / "home", tmp_path / "back"
    with InProcessServer.start(data=home, test_clock=False) as server:
        on = Services(server)
        fill_services(on)
        expect(on.blobs.put(_HELD, _PUT, b"held"), 201)
        assert _lease(on.blobs, "acquire", lease_duration="60", proposed_lease_id=LEASE_ID) == 201
        expect(on.blobs.put(acl("kept"), {}, document(policy("reading", permission="r"))), 200)
        messages.put(on.queues, "other", "taken")
        (taken,) = messages.get(on.queues, "other", visibilitytimeout=3600)
        etags = _etags(on.blobs)
        on.close()
    url, schema = database().url, new_schema()
    there = in_process("store", "copy", "--from", home, "--to", url, "--to-schema", schema)
    assert there.code == 0, there.err
    assert "verified: " in there.out
    assert f"Start: strongroom serve --store URL --store-schema {schema}\n" in there.out
    between = Settings(
        data=None,
        store=DatabaseSettings(url, connections=4, schema=schema),
        blob_port=0,
        queue_port=0,
        table_port=0,
        file_port=0,
    )
    with InProcessServer(between) as server:
        on = Services(server)
        for one in questions(on):
            assert one.ask() == one.right, one.name
        assert _etags(on.blobs) == etags
        expect(on.blobs.put(_HELD, _PUT, b"other"), 412, "LeaseIdMissing")
        assert _lease(on.blobs, "renew") == 200
        etags = _etags(on.blobs)
        on.close()
    ran = in_process("store", "copy", "--from", url, "--from-schema", schema, "--to", back)
    assert ran.code == 0, ran.err
    assert in_process("doctor", back).code == 0
    with InProcessServer.start(data=back, test_clock=False) as server:
        on = Services(server)
        for one in questions(on):
            assert one.ask() == one.right, one.name
        assert _etags(on.blobs) == etags
        expect(on.blobs.put(_HELD, _PUT, b"other"), 412, "LeaseIdMissing")
        assert _lease(on.blobs, "renew") == 200
        expect(on.blobs.put(_HELD, {**_PUT, "x-ms-lease-id": LEASE_ID}, b"mine"), 201)
        assert _lease(on.blobs, "release") == 200
        matched = {**_PUT, "If-Match": etags[1]}
        expect(on.blobs.put("/kept/listed", matched, b"new"), 201)
        expect(on.blobs.put("/kept/listed", matched, b"newer"), 412, "ConditionNotMet")
        expect(on.blobs.anonymous.get(f"/kept/long?{_sas()}"), 200)
        expect(messages.delete(on.queues, "other", taken), 204)
        on.close()


@pytest.mark.parametrize(("version", "kind"), [("3", "data"), ("3", "backup"), ("4", "backup")])
def test_what_an_earlier_version_wrote_is_copied(version: str, kind: str, tmp_path: Path) -> None:
    source, url, schema = unpack(version, kind, tmp_path), database().url, new_schema()
    back = tmp_path / "back"
    for flags in (("--from", source, "--to", url), ("--from", url, "--to", back)):
        schemas = ("--from-schema", schema, "--to-schema", schema)
        ran = in_process("store", "copy", *flags, *schemas)
        assert ran.code == 0, ran.err
    assert in_process("doctor", back).code == 0
    with InProcessServer.start(data=back, test_clock=False) as server:
        on = Services(server)
        for one in questions(on):
            assert one.ask() == one.right, one.name
        on.close()


def _made(path: Path, bodies: int = 1) -> Path:
    with InProcessServer.start(data=path, test_clock=False) as server:
        on = Services(server)
        expect(on.blobs.put("/kept?restype=container"), 201)
        for number in range(bodies):
            expect(on.blobs.put(f"/kept/{number}", _PUT, bytes([number % 256]) * 1_000_000), 201)
        on.close()
    return path


def test_the_report_can_be_read_by_programs(tmp_path: Path) -> None:
    home = _made(tmp_path / "home")
    ran = in_process("store", "copy", "--from", home, "--to", tmp_path / "copy", "--json")
    report = json.loads(ran.out)
    assert report["source"] == str(home)
    assert report["target"] == str(tmp_path / "copy")
    assert report["contents"] == 1
    assert report["body_bytes"] == 1_000_000
    assert report["records"] > 0
    assert report["resumed"] is False
    assert report["duration_s"] > 0
    assert len(report["digest"]) == 64
    assert ran.err == ""


def _written_bytes(directory: Path) -> int:
    return sum(one.stat().st_size for one in directory.glob("segments/*.seg"))


def test_a_killed_copy_is_not_served_and_goes_on(tmp_path: Path) -> None:
    home, goal = _made(tmp_path / "home", 60), tmp_path / "goal"
    command = [sys.executable, "-m", "strongroom", "store", "copy", "--from", str(home)]
    running = subprocess.Popen([*command, "--to", str(goal)], stdout=subprocess.DEVNULL)
    ends = time.monotonic() + 30
    while _written_bytes(goal) < 2_000_000 and time.monotonic() < ends:
        time.sleep(0.002)
    running.send_signal(signal.SIGKILL)
    assert running.wait() == -signal.SIGKILL
    served = strongroom("serve", "--data", goal, *port_flags())
    assert served.code == Exit.DATA
    assert "copy that wrote it was interrupted" in served.err
    ran = in_process("store", "copy", "--from", home, "--to", goal)
    assert ran.code == 0, ran.err
    assert "It went on where an earlier run was cut." in ran.out
    assert in_process("doctor", goal).code == 0


def test_keys_are_not_copied_and_the_command_says_so(tmp_path: Path) -> None:
    home = _made(tmp_path / "home")
    assert in_process("account", "add", "orders", "--data", home).code == 0
    ran = in_process("store", "copy", "--from", home, "--to", tmp_path / "copy")
    assert f"{home / ACCOUNTS_FILE_NAME} is not in it" in ran.out
    assert not (tmp_path / "copy" / ACCOUNTS_FILE_NAME).exists()


def test_damage_is_refused_and_the_command_says_what_to_do(tmp_path: Path) -> None:
    home = _made(tmp_path / "home")
    (segment,) = (home / "segments").iterdir()
    data = bytearray(segment.read_bytes())
    data[500_000] ^= 1
    segment.write_bytes(data)
    ran = in_process("store", "copy", "--from", home, "--to", tmp_path / "copy")
    assert ran.code == Exit.DATA
    assert "content " in ran.err
    assert f"strongroom doctor {home} names what is damaged" in ran.err
    assert "1 problem" in in_process("doctor", home).out


def test_a_served_directory_is_refused(tmp_path: Path) -> None:
    home = _made(tmp_path / "home")
    with InProcessServer.start(data=home, test_clock=False):
        ran = in_process("store", "copy", "--from", home, "--to", tmp_path / "copy")
    assert ran.code == Exit.DATA
    assert "a server has" in ran.err
    assert "strongroom backup" in ran.err


@pytest.mark.parametrize(
    ("url", "code", "text"),
    [
        ("postgresql://someone:hunter2@127.0.0.1:1/db", Exit.USAGE, "PGPASSFILE"),
        ("postgresql://127.0.0.1:1/db?password=hunter2", Exit.USAGE, "PGPASSFILE"),
        ("postgresql://127.0.0.1:1/db", Exit.UNAVAILABLE, "127.0.0.1"),
        ("mysql://127.0.0.1:1/db", Exit.USAGE, "postgresql://"),
    ],
)
@pytest.mark.parametrize("flag", ["--from", "--to"])
def test_a_url_that_cannot_be_used_is_refused_without_its_secrets(
    url: str, code: Exit, text: str, flag: str, tmp_path: Path
) -> None:
    home = _made(tmp_path / "home") if flag == "--to" else tmp_path / "copy"
    other = "--to" if flag == "--from" else "--from"
    ran = in_process("store", "copy", flag, url, other, home)
    assert ran.code == code, ran.err
    assert text in ran.err
    assert "--store-file" not in ran.err, "it has no such flag"
    assert "hunter2" not in ran.err + ran.out
