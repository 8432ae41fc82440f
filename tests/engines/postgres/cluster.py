"""A PostgreSQL primary with synchronous standbys, on loopback: kills, pauses, promotions.

Lives here: the processes and their replication. It does what a cluster manager does: it promotes
the standby that has most, and lets the others follow it. Must not live here: the tests that use it.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import psycopg

from strongroom.testing.ports import HOST
from tests.coordination.servers import (
    PostgresServer,
    folder_of,
    postgres_on,
    program,
    user_of_postgres,
)
from tests.engines.postgres.patience import until
from tests.engines.postgres.servers import SMALL, Administrator, memory_folder, quick_server

_FLAGS: Final = (
    *("-c", "wal_keep_size=256MB"),
    *("-c", "max_connections=100"),
    # A standby that is stopped keeps its place: a commit waits for it.
    *("-c", "wal_sender_timeout=0"),
    *("-c", "wal_retrieve_retry_interval=100ms"),
)


class PostgresCluster:
    """A primary and standbys; a context manager that stops them all.

        with PostgresCluster(folder, standbys=2) as cluster:
            store = await open_store(cluster.url, clock)
            cluster.kill_primary()   # SIGKILL to all of its processes
            cluster.promote()        # the standby that has most; the others follow it
            cluster.rejoin()         # the killed one, as a standby with a fresh copy

    Arguments:
        folder: for logs.
        standbys: how many; a commit waits for any one of them.

    Attributes:
        nodes: the servers, by number.
        primary: the number of the primary.
    """

    def __init__(self, folder: Path, standbys: int = 1) -> None:
        self._folder = folder
        self.primary = 0
        self.nodes = [quick_server(folder, *_FLAGS, "-c", "cluster_name=node0")]
        self._dead: list[int] = []
        try:
            for number in range(1, standbys + 1):
                self._add(number)
            self.demand("ANY 1 (*)")
            self.wait_for_standbys()
        except BaseException:
            self.stop()
            raise

    @property
    def url(self) -> str:
        """The URL with all hosts, of which the one that can be written to is used."""
        hosts = ",".join(node.address for node in self.nodes)
        return f"postgresql://postgres@{hosts}/postgres?target_session_attrs=read-write"

    @property
    def standbys(self) -> list[int]:
        """The numbers of the standbys that run."""
        return [
            number
            for number in range(len(self.nodes))
            if number != self.primary and number not in self._dead
        ]

    def administrator(self, number: int | None = None) -> Administrator:
        """Return a superuser's session at a node, by default at the primary."""
        return Administrator(self.nodes[self.primary if number is None else number].url)

    def ask(self, statement: str, number: int | None = None) -> str:
        """Return the only value that a node answers, as text."""
        session = self.administrator(number)
        try:
            return str(session.value(statement))
        finally:
            session.close()

    def demand(self, names: str, number: int | None = None) -> None:
        """Set `synchronous_standby_names` of a node; empty = its commits wait for nobody."""
        session = self.administrator(number)
        session.configure(synchronous_standby_names=names)
        session.close()

    def wait_for_standbys(self) -> None:
        """Wait until every running standby is in sync with the primary."""
        wanted = str(len(self.standbys))
        in_sync = (
            "SELECT count(*) FROM pg_stat_replication "
            "WHERE state = 'streaming' AND sync_state IN ('sync', 'quorum')"
        )
        until(lambda: self.ask(in_sync) == wanted, "a standby does not follow")

    def kill_primary(self) -> None:
        """End the primary's processes with SIGKILL."""
        self.nodes[self.primary].kill()
        self._dead.append(self.primary)

    def pause_primary(self) -> None:
        """Stop the primary's processes: connections to it stay open, and nothing answers."""
        self.nodes[self.primary].pause()
        self._dead.append(self.primary)

    def promote(self) -> float:
        """Promote the standby that has most, and let the others follow it. Return how many seconds
        passed until it could be written to."""
        began = time.monotonic()
        is_gone = not self.nodes[self.primary].runs()
        for number in self.standbys if is_gone else ():
            until(functools.partial(_has_no_sender, self, number), "it still receives")
        first = max(self.standbys, key=lambda number: _received(self, number))
        others = [number for number in self.standbys if number != first]
        if not others:
            self.demand("", first)
        assert self.ask("SELECT pg_promote(true, 60)", first) == "True"
        until(lambda: _is_writable(self.nodes[first]), "it was not promoted")
        taken = time.monotonic() - began
        self.primary = first
        for number in others:
            session = self.administrator(number)
            session.configure(primary_conninfo=_conninfo(self.nodes[first], number))
            session.close()
        return taken

    def rejoin(self) -> None:
        """Let the killed nodes follow the primary, with a fresh copy of its data, and wait until
        they are in sync."""
        for number in list(self._dead):
            node = self.nodes[number]
            node.kill()
            _copy(self.nodes[self.primary], node.data, number)
            node.restart()
            self._dead.remove(number)
        self.demand("ANY 1 (*)")
        self.wait_for_standbys()

    def stop(self) -> None:
        """Stop all of them."""
        for node in self.nodes:
            if node.runs():
                node.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _add(self, number: int) -> None:
        data = folder_of(user_of_postgres(), memory_folder())
        _copy(self.nodes[0], data, number)
        log = self._folder / f"node{number}.log"
        flags = (*SMALL, *_FLAGS, "-c", f"cluster_name=node{number}")
        self.nodes.append(postgres_on(data, log, *flags))


def _conninfo(source: PostgresServer, number: int) -> str:
    port = source.address.rpartition(":")[2]
    return f"host={HOST} port={port} user=postgres application_name=node{number}"


def _copy(source: PostgresServer, data: Path, number: int) -> None:
    """Make a standby's data from a running server."""
    for entry in data.iterdir():
        shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
    basebackup = Path(program("initdb", "postgresql")).resolve().with_name("pg_basebackup")
    command = [str(basebackup), "-D", str(data), "-d", _conninfo(source, number)]
    command += ["-R", "-X", "stream", "-c", "fast", "--no-sync"]
    subprocess.run(command, check=True, user=user_of_postgres(), cwd="/", capture_output=True)


def _received(cluster: PostgresCluster, number: int) -> int:
    """A standby that was started again has received nothing yet, and has what it applies."""
    newest = "greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())"
    return int(cluster.ask(f"SELECT pg_wal_lsn_diff({newest}, '0/0')::bigint", number))


def _has_no_sender(cluster: PostgresCluster, number: int) -> bool:
    return cluster.ask("SELECT count(*) FROM pg_stat_wal_receiver", number) == "0"


def _is_writable(node: PostgresServer) -> bool:
    try:
        with psycopg.connect(node.url, connect_timeout=2, autocommit=True) as session:
            found = session.execute("SELECT pg_is_in_recovery()").fetchone()
    except psycopg.OperationalError:
        return False
    return found == (False,)
