"""Bodies in a folder, by the commands: made ready, served, shown, checked, copied, taken over."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from urllib.request import urlopen

import psycopg
import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobServiceClient

from strongroom.app import DataUnusable
from strongroom.cli import store as store_commands
from strongroom.cli.exits import Exit
from strongroom.database import DatabaseSettings
from strongroom.engines.bodies.layout import MARK, name_of
from strongroom.engines.membership import DEAD_TICKS
from strongroom.engines.postgres.apart import turns
from strongroom.testing.server import InProcessServer
from strongroom.values import TICKS_PER_S
from tests.app.gateways_of_a_store import settings_over
from tests.cli.command import Ran, in_process
from tests.engines.postgres.servers import Administrator
from tests.engines.postgres.version_1 import make_version_1
from tests.over_postgres import database, new_store

LONG = os.urandom(3 * 1024 * 1024 + 5)


def on(store: DatabaseSettings, command: str, *flags: str) -> Ran:
    return in_process("store", command, store.url, "--schema", store.schema, *flags)


def doctor(store: DatabaseSettings, *flags: str) -> Ran:
    return in_process("doctor", store.url, "--schema", store.schema, *flags)


@pytest.fixture
def store(tmp_path: Path) -> DatabaseSettings:
    """A store whose folder is ready, with two blobs."""
    folder = tmp_path / "shared"
    folder.mkdir()
    made = replace(new_store(), bodies=f"file://{folder}")
    assert on(made, "init", "--bodies", f"file://{folder}/").code == Exit.DONE
    with InProcessServer(settings_over(made)) as server:
        box = BlobServiceClient.from_connection_string(server.connection_string)
        for name, body in (("long", LONG), ("short", b"short"), ("gone", LONG)):
            box.create_container(name).upload_blob("blob", body)
        box.delete_container("gone")
    return made


def read(store: DatabaseSettings, name: str) -> bytes:
    with InProcessServer(settings_over(store)) as server:
        client = BlobServiceClient.from_connection_string(server.connection_string)
        return client.get_blob_client(name, "blob").download_blob().readall()


def run(store: DatabaseSettings, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(store.url, autocommit=True) as session:
        session.execute(f"SET search_path = {store.schema}".encode())
        answer = session.execute(statement.encode())
        return answer.fetchall() if answer.description else []


def test_a_store_with_a_folder_is_served_and_shown(store: DatabaseSettings) -> None:
    assert read(store, "long") == LONG
    assert read(store, "short") == b"short"
    shown = on(store, "status")
    assert f"{store.bodies}: " in shown.out
    apart = json.loads(on(store, "status", "--json").out)["status"]["apart"]
    assert apart["place"] == store.bodies
    # One of the two is dropped at some time, since its container was deleted.
    assert apart["bodies"] + apart["dropped"] == 2
    assert apart["size_bytes"] + apart["dropped_bytes"] == 2 * len(LONG)
    assert apart["away"] == ""
    again = on(store, "init", "--bodies", str(store.bodies))
    assert again.code == Exit.DONE
    assert "is ready" in again.out


def _health_without_folder(server: InProcessServer) -> dict[str, object]:
    """Return it when the gateway has looked for the folder. It is never 503 meanwhile."""
    for _ in range(300):
        with urlopen(f"{server.url}/.strongroom/health") as answer:
            health: dict[str, object] = json.loads(answer.read())
        if "bodies" in health:
            break
        time.sleep(0.1)
    return health


def test_a_folder_that_is_away_is_shown_and_the_gateway_stays_healthy(
    store: DatabaseSettings, tmp_path: Path
) -> None:
    shared, aside = tmp_path / "shared", tmp_path / "aside"
    with InProcessServer(settings_over(store)) as server:
        box = BlobServiceClient.from_connection_string(server.connection_string, retry_total=0)
        shared.rename(aside)
        shared.mkdir()
        health = _health_without_folder(server)
        with pytest.raises(HttpResponseError) as refused:
            box.get_blob_client("long", "blob").download_blob().readall()
        assert refused.value.status_code == 503
        assert box.get_blob_client("short", "blob").download_blob().readall() == b"short"
        shown = on(store, "status")
        shared.rmdir()
        aside.rename(shared)
    assert health["bodies"] == "away"
    assert "Finding: this machine cannot use the place of long bodies: " in shown.out
    assert shown.code == Exit.REFUSED


def test_a_folder_that_is_not_ready_is_refused_in_words(tmp_path: Path) -> None:
    made = new_store()
    for place, words in (("missing", "does not exist"), ("used", "not empty")):
        (tmp_path / "used").mkdir(exist_ok=True)
        (tmp_path / "used" / "notes").write_text("mine")
        ran = on(made, "init", "--bodies", f"file://{tmp_path / place}")
        assert (ran.code, words in ran.err) == (Exit.DATA, True), ran.err
    assert on(made, "init", "--bodies", "nfs:/shared").code == Exit.USAGE


def test_the_doctor_names_what_is_missing_damaged_and_unowned(store: DatabaseSettings) -> None:
    whole = doctor(store)
    assert (whole.code, whole.err) == (Exit.DONE, ""), whole.out
    assert "whole" in whole.out
    ((body,),) = run(store, "SELECT id FROM contents WHERE is_apart AND is_adopted LIMIT 1")
    assert isinstance(body, int)
    assert store.bodies is not None
    folder = Path(store.bodies.removeprefix("file://"))
    file, stray = folder / name_of(body), folder / name_of(77)
    stray.write_bytes(b"stray")
    hours_ago = time.time() - 20 * 3600
    os.utime(stray, (hours_ago, hours_ago))
    young = doctor(store, "--keep-dropped", "0s")
    assert (young.code, "1 body" in young.out) == (Exit.DONE, True), young.out
    os.utime(stray, (1e9, 1e9))
    assert "body 77 in file:" in doctor(store).out
    stray.unlink()
    content = file.read_bytes()
    for changed, words in (
        (content[:-1] + b"?", "damaged"),
        (content[:-1], "damaged"),
        (None, "damaged"),
    ):
        file.unlink(missing_ok=True) if changed is None else file.write_bytes(changed)
        found = doctor(store, "--json")
        report = json.loads(found.out)
        assert found.code == Exit.REFUSED
        assert [words in one["problem"] for one in report["findings"]] == [True], report
        assert "long/blob" in report["findings"][0]["place"] or "gone" in found.out


def test_the_doctor_takes_the_store_of_a_file_or_a_variable(tmp_path: Path) -> None:
    made = new_store()
    assert on(made, "init").code == Exit.DONE
    file = tmp_path / "url"
    file.write_text(made.url + "\n")
    # A directory that only a variable names gives way to a database.
    names = {"STRONGROOM_DATA": str(tmp_path), "STRONGROOM_STORE_SCHEMA": made.schema}
    of_file = in_process("doctor", "--store-file", file, **names)
    assert (of_file.code, ": whole (" in of_file.out) == (Exit.DONE, True), of_file
    names["STRONGROOM_STORE_FILE"] = str(file)
    assert in_process("doctor", **names) == of_file
    typed = in_process("doctor", tmp_path / "typed", **names)
    assert (typed.code, "typed" in typed.err) == (Exit.DATA, True), typed
    for place in (str(tmp_path), made.url):
        both = in_process("doctor", place, "--store-file", file)
        assert (both.code, "go with --store-file" in both.err) == (Exit.USAGE, True), both


def test_the_doctor_says_what_it_may_be_given() -> None:
    ran = in_process("doctor")
    assert ran.code == Exit.USAGE
    assert "Give a directory, the URL of a PostgreSQL, or --store-file" in ran.err


def test_the_doctor_checks_a_store_without_a_folder_too() -> None:
    plain = new_store()
    with InProcessServer(settings_over(plain)) as server:
        client = BlobServiceClient.from_connection_string(server.connection_string)
        client.create_container("box").upload_blob("blob", LONG)
        assert doctor(plain).code == Exit.DONE
    run(plain, "INSERT INTO chunks (id, at, data) VALUES (5, 0, 'x')")
    run(
        plain,
        "UPDATE chunks SET data = set_byte(data, 7, get_byte(data, 7) # 1) WHERE length(data) > 7",
    )
    found = doctor(plain)
    assert found.code == Exit.REFUSED
    assert "chunks of content 5: nobody owns them" in found.out
    assert "box/blob: its bytes are damaged" in found.out


def test_a_store_of_the_version_before_is_checked_and_gets_no_folder(tmp_path: Path) -> None:
    administrator = Administrator(database().url)
    old = replace(new_store(), schema=make_version_1(administrator, "before_bodies"))
    administrator.close()
    assert doctor(old).code == Exit.DONE
    ran = on(old, "init", "--bodies", f"file://{tmp_path}")
    assert (ran.code, "store migrate" in ran.err) == (Exit.DATA, True), ran.err
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(DataUnusable, match="store migrate"):
        read(replace(old, bodies=f"file://{tmp_path}"), "any")


def test_a_store_goes_into_a_folder_and_back(store: DatabaseSettings, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    second = replace(new_store(), bodies=f"file://{other}")
    flags = ("--from", store.url, "--from-schema", store.schema)
    there = in_process(
        *("store", "copy", *flags, "--to", second.url, "--to-schema", second.schema),
        *("--to-bodies", f"file://{other}"),
    )
    assert there.code == Exit.DONE, there.err
    assert f"--bodies file://{other}" in there.out
    assert read(second, "long") == LONG
    flags = ("--from", second.url, "--from-schema", second.schema)
    back = in_process("store", "copy", *flags, "--to", str(tmp_path / "data"))
    assert back.code == Exit.DONE, back.err
    assert in_process("doctor", str(tmp_path / "data")).code == Exit.DONE
    wrong = in_process(
        *("store", "copy", *flags, "--to", str(tmp_path / "more"), "--to-bodies", "file:///shared")
    )
    assert wrong.code == Exit.USAGE


def test_a_recovered_database_takes_the_folder_over_when_it_is_told_to(
    store: DatabaseSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mark has a turn that the database does not know, as after a recovery."""
    monkeypatch.setattr("strongroom.cli.store._WATCH_S", 0.1)
    assert "nothing was changed" in on(store, "adopt", "--yes").out
    run(store, "UPDATE store SET turns = ARRAY[gen_random_uuid()]")
    with pytest.raises(DataUnusable, match="store adopt URL"):
        read(store, "long")
    for wanted in (Exit.DONE, Exit.DONE):
        ran = on(store, "adopt", "--yes")
        assert ran.code == wanted, ran.err
    assert "nothing was changed" in ran.out
    assert read(store, "long") == LONG
    assert store.bodies is not None
    (Path(store.bodies.removeprefix("file://")) / MARK).unlink()
    lost = on(store, "adopt", "--yes")
    assert (lost.code, "mount" in lost.err) == (Exit.DATA, True)


def test_an_adoption_watches_for_longer_than_any_mark_stays_that_is_served() -> None:
    """Longest where a gateway was killed, another one takes over, and only looks on at first."""
    dead_s = DEAD_TICKS / TICKS_PER_S
    assert dead_s + turns.OBSERVE_S + turns.TURN_S < store_commands._WATCH_S


def test_accounts_are_changed_without_the_folder(store: DatabaseSettings, tmp_path: Path) -> None:
    """A command that changes a few records does not open bodies."""
    (tmp_path / "shared").rename(tmp_path / "unmounted")
    named = ("--store", store.url, "--store-schema", store.schema)
    added = in_process("account", "add", "orders", *named)
    assert added.code == Exit.DONE, added.err


def test_a_copy_of_the_whole_database_is_told_at_once(store: DatabaseSettings) -> None:
    """It has the last turn of its source, but it is another database."""
    name = "copied"
    base, _, query = store.url.partition("?")
    source = base.rpartition("/")[2]
    with psycopg.connect(database().url, dbname="template1", autocommit=True) as session:
        session.execute(f"DROP DATABASE IF EXISTS {name}".encode())
        session.execute(
            b"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (source,)
        )
        session.execute(f"CREATE DATABASE {name} TEMPLATE {source}".encode())
    url = f"{base.rpartition('/')[0]}/{name}" + (f"?{query}" if query else "")
    copy = replace(store, url=url)
    with pytest.raises(DataUnusable, match="belongs to another state"):
        read(copy, "long")
    assert read(store, "long") == LONG
