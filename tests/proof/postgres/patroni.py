"""A PostgreSQL cluster under Debian's Patroni, with an etcd, on loopback: kills and rejoining.

Lives here: the configuration and the processes. Patroni promotes, and lets killed nodes follow
again. Must not live here: the load and what is expected of it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import psycopg
import yaml

from strongroom.testing.ports import HOST, free_port
from tests.coordination.servers import (
    EtcdCluster,
    StoreServer,
    etcd_cluster,
    folder_of,
    program,
    user_of_postgres,
)
from tests.engines.postgres.servers import memory_folder

PATIENCE_S: Final = 120.0
QUICK: Final[Mapping[str, int]] = {"ttl": 5, "loop_wait": 1, "retry_timeout": 2}
"""Patroni finds within 5 s that a leader is lost. Its default is 30 s."""
DEFAULT: Final[Mapping[str, int]] = {"ttl": 30, "loop_wait": 10, "retry_timeout": 10}
_PAUSE_S: Final = 0.05
_SCOPE: Final = "strongroom"
_PARAMETERS: Final = {
    "max_connections": 100,
    "shared_buffers": "64MB",
    "max_wal_size": "256MB",
    "wal_keep_size": "256MB",
    # A standby looks for its new primary so soon, not after 5 s.
    "wal_retrieve_retry_interval": "500ms",
    "unix_socket_directories": "",
}
_ACCESS: Final = [f"host all all {HOST}/32 trust", f"host replication all {HOST}/32 trust"]


class PatroniNode:
    """A PostgreSQL with the Patroni that runs it.

    Attributes:
        name: as Patroni knows it.
        address: host:port of the PostgreSQL.
        data: the folder of its data.
    """

    def __init__(self, name: str, folder: Path, etcd: str, cluster: Mapping[str, Any]) -> None:
        self.name = name
        port, self._control = free_port(), free_port()
        self.address = f"{HOST}:{port}"
        own = folder_of(user_of_postgres(), memory_folder())
        self.data = own / "data"
        self.file = own / "patroni.yml"
        self.file.write_text(yaml.safe_dump(self._configuration(etcd, cluster)))
        self._log = folder / f"{name}.log"
        self.start()

    def start(self) -> None:
        """Start its Patroni, which starts the PostgreSQL."""
        command = [program("patroni", "--no-install-recommends patroni"), str(self.file)]
        self._patroni = StoreServer(command, self._control, self._log, user_of_postgres())

    def kill(self) -> None:
        """End Patroni and all processes of the PostgreSQL with SIGKILL, like a lost machine."""
        self._patroni.send(signal.SIGSTOP)  # it would start what is killed before it
        first = self._first_process()
        if first is not None:
            os.kill(first, signal.SIGSTOP)  # it would make further processes
            children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
            for process in (first, *map(int, children)):
                _end(process)
        self._patroni.kill()

    def runs(self) -> bool:
        """Whether its Patroni runs."""
        return self._patroni.runs()

    def cluster(self) -> list[dict[str, Any]]:
        """Return the members of the cluster as this Patroni sees them; none if it does not say."""
        found: list[dict[str, Any]] = self.ask("cluster").get("members", [])
        return found

    def ask(self, path: str) -> dict[str, Any]:
        """Return what Patroni answers; empty if it does not."""
        try:
            with urllib.request.urlopen(f"http://{HOST}:{self._control}/{path}", timeout=2) as body:
                found: dict[str, Any] = json.load(body)
        except (OSError, ValueError):
            return {}
        return found

    def _first_process(self) -> int | None:
        try:
            return int((self.data / "postmaster.pid").read_text().split()[0])
        except (OSError, IndexError):
            return None

    def _configuration(self, etcd: str, cluster: Mapping[str, Any]) -> dict[str, Any]:
        control = f"{HOST}:{self._control}"
        users = {"superuser": {"username": "postgres"}, "replication": {"username": "postgres"}}
        programs = Path(program("initdb", "postgresql")).resolve().parent
        shared = {
            "use_pg_rewind": True,
            "remove_data_directory_on_rewind_failure": True,
            "remove_data_directory_on_diverged_timelines": True,
            "parameters": _PARAMETERS,
        }
        return {
            "scope": _SCOPE,
            "name": self.name,
            "restapi": {"listen": control, "connect_address": control},
            "etcd3": {"host": etcd},
            "bootstrap": {
                "dcs": {**cluster, "postgresql": shared},
                "initdb": [{"encoding": "UTF8"}, {"locale": "C"}, "data-checksums"],
            },
            "postgresql": {
                "listen": self.address,
                "connect_address": self.address,
                "data_dir": str(self.data),
                "bin_dir": str(programs),
                "pgpass": str(self.file.with_name("pgpass")),
                "authentication": users,
                "pg_hba": _ACCESS,
            },
        }


class PatroniCluster:
    """Nodes under Patroni; a context manager that stops them all.

        with PatroniCluster(folder, is_strict=False) as cluster:
            leader = cluster.leader()
            leader.kill()
            cluster.rejoin()   # starts what was killed, and waits until all are in their places

    Arguments:
        folder: for logs and the data of etcd.
        is_strict: whether a commit waits as long as no standby is there.
        times: how soon Patroni finds that a leader is lost.
        count: of nodes.
    """

    def __init__(
        self,
        folder: Path,
        *,
        is_strict: bool,
        times: Mapping[str, int] = QUICK,
        count: int = 3,
    ) -> None:
        self._etcd: EtcdCluster = etcd_cluster(folder)
        self.nodes: list[PatroniNode] = []
        settings = {**times, "synchronous_mode": True, "synchronous_mode_strict": is_strict}
        try:
            for number in range(count):
                address = self._etcd.addresses
                self.nodes.append(PatroniNode(f"n{number}", folder, address, settings))
                if not number:
                    self._until(lambda: bool(self.leaders()), "the first node does not lead")
            self.wait_until_whole()
        except BaseException:
            self.stop()
            raise

    @property
    def url(self) -> str:
        """The URL with all nodes, of which the one that can be written to is used."""
        hosts = ",".join(node.address for node in self.nodes)
        return f"postgresql://postgres@{hosts}/postgres?target_session_attrs=read-write"

    def leader(self) -> PatroniNode:
        """Return the node that leads."""
        self._until(lambda: bool(self.leaders()), "no node leads")
        (found,) = self.leaders()
        return next(node for node in self.nodes if node.name == found)

    def leaders(self) -> list[str]:
        """Return the names of the nodes that lead and can be written to."""
        running = [node for node in self.nodes if node.runs()]
        return [node.name for node in running if node.ask("primary").get("role") in _LEADS]

    def rejoin(self) -> float:
        """Start the nodes that were killed, and wait until the cluster is whole. Return how many
        seconds that took."""
        began = time.monotonic()
        for node in self.nodes:
            if not node.runs():
                node.start()
        self.wait_until_whole()
        return time.monotonic() - began

    def wait_until_whole(self) -> None:
        """Wait until all nodes run on one timeline, and one standby is in sync."""
        self._until(self._is_whole, "the cluster does not become whole")

    def control(self, *words: str) -> str:
        """Run patronictl, and return what it prints."""
        command = [program("patronictl", "patroni"), "-c", str(self.nodes[0].file), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        return done.stdout + done.stderr

    def ask(self, statement: str, node: PatroniNode | None = None) -> Any:
        """Return the only value that the leader, or a node, answers."""
        address = (node or self.leader()).address
        with psycopg.connect(f"postgresql://postgres@{address}/postgres") as session:
            found = session.execute(statement.encode()).fetchone()
        assert found is not None
        return found[0]

    def stop(self) -> None:
        """Stop all of them, at once."""
        for node in self.nodes:
            if node.runs():
                node.kill()
        self._etcd.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _members(self) -> list[dict[str, Any]]:
        running = (node for node in self.nodes if node.runs())
        return next((found for node in running if (found := node.cluster())), [])

    def _is_whole(self) -> bool:
        members = self._members()
        states = [member.get("state") for member in members]
        roles = sorted(member["role"] for member in members)
        return (
            len(members) == len(self.nodes)
            and set(states) <= {"running", "streaming"}
            and roles == sorted(["leader", "sync_standby", *["replica"] * (len(members) - 2)])
            and len({member.get("timeline") for member in members}) == 1
        )

    def _until(self, holds: Callable[[], bool], complaint: str) -> None:
        end = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < end, f"{complaint}: {self._members()}"
            time.sleep(_PAUSE_S)


_LEADS: Final = ("master", "primary")


def _end(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it has ended
