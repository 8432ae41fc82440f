"""Two versions of the program beside each other, and a migration under load.

One gateway is of the last commit that knew only version 1 of the tables. They take turns, and then
the store is migrated. Nothing that was answered is lost, and clients see nothing but pauses.
"""

from __future__ import annotations

import http.client
import io
import signal
import socket
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Final

import psycopg
import pytest

from strongroom.testing.ports import HOST
from tests.engines.postgres.patience import until
from tests.engines.postgres.servers import Administrator, quick_server
from tests.proof.postgres.gateway import Gateway
from tests.proof.postgres.http_load import HttpLoad
from tests.proof.postgres.http_store import Address

BEFORE: Final = "7d3060d0"
"""The last commit whose program knows version 1 of the tables, and no other."""
_REPOSITORY: Final = Path(__file__).parents[3]
_DATA: Final = 4
_NO_ANSWER, _CHANGED, _BUSY = 0, 412, 503


class EitherGateway(Address, frozen=True):
    """Whichever of several gateways has an open port, as a balancer finds it."""

    ports: tuple[int, ...] = ()

    def connect(self, port: int | None = None) -> http.client.HTTPConnection:
        """Whatever port is asked for."""
        for one in self.ports:
            with socket.socket() as probe:
                if probe.connect_ex((HOST, one)) == 0:
                    return Address(one).connect()
        return super().connect(port)


@pytest.fixture(scope="module")
def program_before(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """What starts the program that knows only version 1."""
    packed = subprocess.run(
        ["git", "archive", BEFORE, "src"], cwd=_REPOSITORY, capture_output=True, check=False
    )
    assert not packed.returncode, (
        f"this clone does not have the commit {BEFORE} (a whole clone has): {packed.stderr!r}"
    )
    folder = tmp_path_factory.mktemp("before")
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return ("/usr/bin/env", f"PYTHONPATH={folder / 'src'}", sys.executable, "-m", "strongroom")


def migrated(url: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "strongroom", "store", "migrate", url]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=90)


def version(url: str) -> int:
    with psycopg.connect(url) as session:
        return int(session.execute("SELECT version FROM strongroom.store").fetchall()[0][0])


def _hands_over(serving: Gateway, waiting: Gateway, load: HttpLoad) -> None:
    until(waiting.waits, "it does not wait")
    load.acknowledges(20)
    serving.stop()
    until(waiting.serves, "it does not take over")
    load.acknowledges(20)


@pytest.mark.timeout(600)
def test_two_versions_take_turns_and_the_store_is_migrated_under_load(
    tmp_path: Path, program_before: tuple[str, ...]
) -> None:
    with quick_server(tmp_path) as server:
        old = Gateway(server.url, tmp_path, "old", start=program_before)
        until(old.serves, "it does not serve")
        new = Gateway(server.url, tmp_path, "new")
        ports = (old.services.port, new.services.port)
        load = HttpLoad(EitherGateway(ports[0], None, ports), "versions")
        try:
            _hands_over(old, new, load)
            old.start()
            _hands_over(new, old, load)
            new.start()
            until(new.waits, "it does not wait")
            refused = migrated(server.url)
            assert refused.returncode == _DATA
            assert "gateways of an older program use the store: " in refused.stderr
            _hands_over(old, new, load)
            updated = Gateway(server.url, tmp_path, "updated")
            until(updated.waits, "it does not wait")
            assert version(server.url) == 1
            done = migrated(server.url)
            assert done.returncode == 0, done.stderr
            load.acknowledges(50)
            assert version(server.url) == 2
            old.start()
            until(lambda: not old.runs(), "it joined a store that it does not know")
            load.stop()
            verdict = load.verdict()
        finally:
            for one in (old, new, *([updated] if "updated" in locals() else [])):
                one.stop(signal.SIGKILL)
    print(verdict)
    assert verdict.is_exact, verdict
    assert set(verdict.refused) <= {_NO_ANSWER, _CHANGED, _BUSY}
    assert "the store has a newer version of its tables" in (tmp_path / "old.log").read_text()


@pytest.mark.timeout(600)
def test_a_killed_gateway_of_the_older_program_does_not_hold_up_a_migration(
    tmp_path: Path, program_before: tuple[str, ...]
) -> None:
    with quick_server(tmp_path) as server:
        old = Gateway(server.url, tmp_path, "old", start=program_before)
        until(old.serves, "it does not serve")
        old.stop(signal.SIGKILL)
        administrator = Administrator(server.url)
        assert migrated(server.url).returncode == 0
        assert administrator.value("SELECT count(*) FROM strongroom.gateways") == 0
        administrator.close()
        assert version(server.url) == 2
