"""`strongroom store` and `doctor`, given what they cannot use: the error says what and where it is.

Must not live here: what the commands do when all is well (test_store.py, test_store_copy.py,
test_store_bodies.py).
"""

from __future__ import annotations

import errno
import os
import shlex
import socket
from pathlib import Path
from unittest import mock

import psycopg
import pytest

from strongroom.cli.exits import Exit
from strongroom.engines.bodies import folder_files
from strongroom.testing import InProcessServer
from strongroom.testing.ports import HOST, free_port
from tests.cli.command import Ran, in_process, strongroom
from tests.conformance.answer import expect
from tests.durability.kept_data import Services
from tests.over_postgres import database, new_store

_LONG = os.urandom(2 * 1024 * 1024)
_SHOWN = f"PostgreSQL at {HOST}"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A data directory with a long body."""
    home = tmp_path / "home"
    with InProcessServer.start(data=home, test_clock=False) as server:
        on = Services(server)
        expect(on.blobs.put("/kept?restype=container"), 201)
        expect(on.blobs.put("/kept/long", {"x-ms-blob-type": "BlockBlob"}, _LONG), 201)
        on.close()
    return home


def copied(start: object, goal: object, *flags: object) -> Ran:
    return in_process("store", "copy", "--from", start, "--to", goal, *flags)


def test_a_copy_goes_to_no_schema_that_no_server_takes(home: Path) -> None:
    for flag, start, goal in (("to", home, database().url), ("from", database().url, "new")):
        ran = copied(start, goal, f"--{flag}-schema", "Two Words")
        assert ran.code == Exit.USAGE, ran.out
        assert f"--{flag}-schema 'Two Words': give a name of lower-case letters" in ran.err


@pytest.mark.parametrize("url", ["postgresql:/127.0.0.1/store", "postgres:store"])
def test_a_url_without_its_slashes_becomes_no_directory(
    url: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = copied(home, url)
    assert (ran.code, list(tmp_path.iterdir())) == (Exit.USAGE, [home]), ran.out
    assert "begins with postgresql://" in ran.err


@pytest.mark.parametrize("flag", ["--from", "--to"])
def test_a_copy_says_which_database_does_not_answer(flag: str) -> None:
    """The other one is no store, so it would be named first."""
    away = f"postgresql://{HOST}:{free_port()}/away"
    other = new_store()
    assert in_process("store", "init", other.url, "--schema", other.schema).code == Exit.DONE
    start, goal = (away, other.url) if flag == "--from" else (other.url, away)
    ran = copied(start, goal, "--from-schema", other.schema, "--to-schema", other.schema)
    assert ran.code == Exit.UNAVAILABLE
    assert f"strongroom: PostgreSQL at {away.removeprefix('postgresql://')}: " in ran.err


def test_a_copy_says_which_database_has_no_store(tmp_path: Path) -> None:
    missing = new_store()
    ran = copied(missing.url, tmp_path / "copy", "--from-schema", missing.schema)
    assert ran.code == Exit.DATA
    assert ran.err.startswith(f"strongroom: {_SHOWN}:")
    assert "strongroom store init" in ran.err


def test_a_copy_whose_folder_is_full_says_so_and_goes_on_later(home: Path, tmp_path: Path) -> None:
    folder, goal = tmp_path / "two words", new_store()
    folder.mkdir()
    place = f"file://{folder}"
    flags = ("--to-schema", goal.schema, "--to-bodies", place)
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with mock.patch.object(folder_files, "write_all", side_effect=full):
        ran = copied(home, goal.url, *flags)
    assert ran.code == Exit.DATA
    assert ran.err.startswith(f"strongroom: {place} is full. Free some space there, and run the")
    ran = copied(home, goal.url, *flags)
    assert ran.code == Exit.DONE, ran.err
    start = ran.out.splitlines()[-1].removeprefix("Start: ")
    assert shlex.split(start)[-2:] == ["--bodies", place]


def test_a_directory_that_cannot_be_made_is_named(home: Path, tmp_path: Path) -> None:
    goal = tmp_path / ("n" * 300)
    ran = copied(home, goal)
    assert ran.code == Exit.DATA
    assert ran.err == f"strongroom: {goal} cannot be used: {os.strerror(errno.ENAMETOOLONG)}\n"


def test_the_doctor_says_which_database_has_no_store() -> None:
    missing = new_store()
    ran = in_process("doctor", missing.url, "--schema", missing.schema)
    assert ran.code == Exit.DATA
    assert ran.err.startswith(f"strongroom: {_SHOWN}:")
    assert "`strongroom store status` for the same database says what to do" in ran.err
    asked = in_process("store", "status", missing.url, "--schema", missing.schema)
    assert "make one with `strongroom store init URL`" in asked.err


def test_the_doctor_does_not_wait_for_a_database_that_hangs() -> None:
    """The driver alone would wait for longer than a command may take here."""
    with socket.create_server((HOST, 0)) as silent:
        port = silent.getsockname()[1]
        ran = strongroom("doctor", f"postgresql://{HOST}:{port}/store")
    assert ran.code == Exit.UNAVAILABLE
    assert f"{_SHOWN}:{port}/store: the database cannot be reached" in ran.err


def test_an_adoption_that_nobody_answers_says_that_nothing_was_changed(tmp_path: Path) -> None:
    store, folder = new_store(), tmp_path / "shared"
    folder.mkdir()
    named = (store.url, "--schema", store.schema)
    assert in_process("store", "init", *named, "--bodies", f"file://{folder}").code == Exit.DONE
    with psycopg.connect(database().url, autocommit=True) as session:
        change = f"UPDATE {store.schema}.store SET turns = ARRAY[gen_random_uuid()]"
        session.execute(change.encode())
    ran = in_process("store", "adopt", *named)
    assert ran.code == Exit.REFUSED
    assert "strongroom: nothing was changed, since nobody answered; --yes does not ask" in ran.err


def test_the_sql_for_nobody_is_not_printed() -> None:
    ran = in_process("store", "init", "--print-sql", "")
    assert (ran.code, ran.out) == (Exit.USAGE, "")
    assert "name the role" in ran.err


@pytest.mark.parametrize("words", ["store status", "doctor", "account list", "role list", "serve"])
def test_two_variables_that_name_databases_are_refused(words: str, tmp_path: Path) -> None:
    """Otherwise a command could change another store than the one that is served."""
    file, away = tmp_path / "store", f"postgresql://{HOST}:{free_port()}/away"
    file.write_text(away)
    file.chmod(0o600)
    ran = in_process(*words.split(), STRONGROOM_STORE=away, STRONGROOM_STORE_FILE=str(file))
    assert ran.code == Exit.SETTINGS
    assert "it does not go with STRONGROOM_STORE_FILE" in ran.err
