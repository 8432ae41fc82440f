"""Real etcd, PostgreSQL and Redis servers for tests: on loopback, with their data in a folder.

Lives here: starting, waiting until they answer, stopping by process id. A missing program fails the
test that needs it, with the remedy.
"""

from __future__ import annotations

import atexit
import functools
import http.client
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg
import psycopg.sql
import pytest

from strongroom.testing.ports import HOST, free_port

_START_S = 30.0


def program(name: str, package: str) -> str:
    """Return the path of a program, or fail with the package that provides it."""
    found = shutil.which(name)
    if found is None:
        places = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
        found = str(places[-1]) if places else None
    if found is None:
        pytest.fail(f"{name} is missing; install it: apt-get install -y {package}")
    return found


class RealServer:
    """A server's process; `address` is host:port."""

    def __init__(self, command: list[str], port: int, log: Path, user: str | None = None) -> None:
        self.address = f"{HOST}:{port}"
        self._port, self._command, self._log, self._user = port, command, log, user
        self._before: list[str] = []
        self.start()

    def start(self) -> None:
        """Start the server with its present data."""
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                [*self._before, *self._command],
                stdout=output,
                stderr=output,
                user=self._user,
                cwd="/",
            )

    def start_within(self, before: Sequence[str]) -> None:
        """Let each start from now on put this before the command, like `env NAME=VALUE`."""
        self._before = list(before)

    def wait(self, ready: Callable[[], bool]) -> None:
        """Wait until the server answers."""
        until = time.monotonic() + _START_S
        while not ready():
            assert self._process.poll() is None, self._log.read_text()[-2000:]
            assert time.monotonic() < until, self._log.read_text()[-2000:]
            time.sleep(0.05)

    def listens(self) -> bool:
        """Whether its port accepts connections."""
        with socket.socket() as probe:
            return probe.connect_ex((HOST, self._port)) == 0

    def runs(self) -> bool:
        """Whether its process runs."""
        return self._process.poll() is None

    def send(self, number: signal.Signals) -> None:
        """Send the process a signal."""
        self._process.send_signal(number)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Stop the process and wait for its end."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            self._process.send_signal(number)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)


class StoreServer(RealServer):
    """A server of one store, with all processes that it makes; a context manager that stops it.

        with postgres_server(folder) as server:
            client = coord.connect(server.url)
            server.kill()      # SIGKILL to all of its processes at once, and wait for their end
            server.restart()   # with its data; waits until it answers
            server.pause()     # SIGSTOP: connections stay open, nothing answers
            server.resume()    # SIGCONT

    Attributes:
        url: the URL for `connect`.
    """

    def __init__(self, command: list[str], port: int, log: Path, user: str | None = None) -> None:
        self.url = ""
        super().__init__(command, port, log, user)

    @property
    def log(self) -> Path:
        """The file with its output."""
        return self._log

    def answers(self) -> bool:
        """Whether it answers a request."""
        return self.listens()

    def send(self, number: signal.Signals) -> None:
        """Send all of its processes a signal, the first one first."""
        super().send(number)
        for process in _descendants(self._process.pid):
            _signal(process, number)

    def kill(self) -> None:
        """End all of its processes with SIGKILL."""
        self.stop(signal.SIGKILL)

    def restart(self) -> None:
        """Start it again, with its data, and wait until it answers."""
        self.start()
        self.wait(self.answers)

    def pause(self) -> None:
        """Pause all of its processes; connections stay open."""
        self.send(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume all of its processes."""
        self.send(signal.SIGCONT)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Stop the server, and wait until none of its processes is left."""
        if number is signal.SIGKILL and self.runs():
            self._pause_first()  # or it could make a process that is not found
        others = _descendants(self._process.pid) if self.runs() else []
        if number is signal.SIGKILL:
            self._process.kill()
            for process in others:
                _signal(process, number)
        elif self.runs():
            self.resume()
        super().stop(number)
        until = time.monotonic() + _START_S
        while any(_lives(process) for process in others):
            assert time.monotonic() < until, "it does not end"
            time.sleep(0.01)

    def _pause_first(self) -> None:
        """Pause the first process, and wait until it is paused or has ended."""
        self._process.send_signal(signal.SIGSTOP)
        until = time.monotonic() + _START_S
        while (fields := _stat(self._process.pid)) is not None and fields[0] not in "TZ":
            assert time.monotonic() < until, "it does not pause"
            time.sleep(0.001)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def _descendants(pid: int) -> list[int]:
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))) is not None:
            parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found, todo = [], [pid]
    while todo:
        children = parents.get(todo.pop(), [])
        found += children
        todo += children
    return found


def _stat(pid: int) -> list[str] | None:
    try:
        # The fields after the program's name: state, parent, ...
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def _lives(pid: int) -> bool:
    fields = _stat(pid)
    return fields is not None and fields[0] != "Z"


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass  # the process has ended


class RedisServer(StoreServer):
    """A Redis; see `StoreServer`."""

    def answers(self) -> bool:
        """Whether it has loaded its data; one that requires a password has loaded it."""
        try:
            with socket.create_connection((HOST, self._port), 1.0) as probe:
                probe.sendall(b"PING\r\n")
                return probe.recv(100).startswith((b"+PONG", b"-NOAUTH"))
        except OSError:
            return False


def redis_server(folder: Path, *flags: str) -> RedisServer:
    """Start a Redis that writes everything to its disk before it answers.

    Arguments:
        folder: its data folder.
        flags: further settings, like "--requirepass", "secret".
    """
    port = free_port()
    command = [program("redis-server", "redis-server"), "--port", str(port), "--bind", HOST]
    command += ["--dir", str(folder), "--appendonly", "yes", "--appendfsync", "always", *flags]
    server = RedisServer(command, port, folder / "redis.log")
    server.url = f"redis://{server.address}/0"
    server.wait(server.answers)
    return server


class EtcdCluster:
    """Members of one etcd on loopback; a context manager that stops them all.

        with etcd_cluster(folder, 3) as cluster:
            client = coord.connect(cluster.url)
            number = cluster.leader()      # which member leads; waits until one does
            cluster.kill(number)           # SIGKILL, and wait for its end
            cluster.restart(number)        # with its data; waits until it answers again
            cluster.pause(0)               # SIGSTOP: connections stay open, nothing answers
            cluster.resume(0)              # SIGCONT
            cluster.stop()                 # all of them; also at the end of the `with`

    Attributes:
        members: the processes, by number.
    """

    def __init__(self, members: list[RealServer]) -> None:
        self.members = members

    @property
    def addresses(self) -> str:
        """The host:port of every member, separated by commas, for a URL and `etcdctl
        --endpoints`."""
        return ",".join(member.address for member in self.members)

    @property
    def url(self) -> str:
        """The URL for `connect`."""
        return f"etcd://{self.addresses}"

    def leader(self) -> int:
        """Return the number of the member that leads; wait until there is one."""
        until = time.monotonic() + _START_S
        while True:
            for number, member in enumerate(self.members):
                status = _etcd_status(member.address) if member.runs() else {}
                leader = status.get("leader", "0")
                if leader != "0" and leader == status["header"]["member_id"]:
                    return number
            assert time.monotonic() < until, "no member leads"
            time.sleep(0.05)

    def call(self, path: str, body: dict[str, Any], token: str = "") -> dict[str, Any]:
        """Call the JSON gateway of the first running member, as an administrator.

        Arguments:
            path: like "/v3/lease/revoke".
            body: as JSON; keys and values are base64.
            token: the token from `/v3/auth/authenticate`.
        """
        address = next(member.address for member in self.members if member.runs())
        headers = {"Authorization": token} if token else {}
        request = urllib.request.Request(
            f"http://{address}{path}", json.dumps(body).encode(), headers
        )
        with urllib.request.urlopen(request, timeout=10.0) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def kill(self, number: int) -> None:
        """End a member with SIGKILL."""
        self.members[number].stop(signal.SIGKILL)

    def restart(self, number: int) -> None:
        """Start a stopped member with its data; a majority must run."""
        self.members[number].start()
        self.ready()

    def pause(self, number: int) -> None:
        """Stop a member with SIGSTOP: it keeps its connections and answers nothing."""
        self.members[number].send(signal.SIGSTOP)

    def resume(self, number: int) -> None:
        """Resume a paused member."""
        self.members[number].send(signal.SIGCONT)

    def ready(self) -> None:
        """Wait until every running member follows a leader and answers."""
        for member in self.members:
            if member.runs():
                member.wait(functools.partial(_etcd_follows, member.address))

    def stop(self) -> None:
        """Stop all of them."""
        for member in self.members:
            member.stop(signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def etcd_cluster(folder: Path, count: int = 1, *flags: str) -> EtcdCluster:
    """Start an etcd of so many members, and wait until it answers.

    Arguments:
        folder: for data and logs.
        count: of members; 1 or 3.
        flags: more of etcd's own, the same for every member.
    """
    ports = [(free_port(), free_port()) for _ in range(count)]
    peers = ",".join(f"m{n}=http://{HOST}:{peer}" for n, (_, peer) in enumerate(ports))
    members = []
    for number, (port, peer) in enumerate(ports):
        client, between = f"http://{HOST}:{port}", f"http://{HOST}:{peer}"
        command = [program("etcd", "etcd-server"), "--name", f"m{number}"]
        command += ["--data-dir", str(folder / f"m{number}"), "--initial-cluster", peers]
        command += ["--listen-client-urls", client, "--advertise-client-urls", client]
        command += ["--listen-peer-urls", between, "--initial-advertise-peer-urls", between, *flags]
        members.append(RealServer(command, port, folder / f"m{number}.log"))
    cluster = EtcdCluster(members)
    try:
        cluster.ready()
    except BaseException:
        cluster.stop()
        raise
    return cluster


def _etcd_follows(address: str) -> bool:
    return "leader" in _etcd_status(address)


def _etcd_status(address: str) -> dict[str, Any]:
    """Return the status that a member reports; empty if it does not answer or has no leader."""
    request = urllib.request.Request(f"http://{address}/v3/maintenance/status", b"{}")
    try:
        with urllib.request.urlopen(request, timeout=1.0) as answer:
            found: dict[str, Any] = json.load(answer)
    except (OSError, ValueError, http.client.HTTPException):
        return {}
    return found


class PostgresServer(StoreServer):
    """A PostgreSQL; see `StoreServer`. Its superuser, `postgres`, needs no password.

    Attributes:
        data: the folder of its data.
    """

    data: Path

    def add_user(self, name: str, password: str) -> None:
        """Create a user with a password, and a database of the same name that the user owns."""
        access = self.data / "pg_hba.conf"
        line = f"host all {name} {HOST}/32 scram-sha-256\n"
        access.write_text(line + access.read_text())
        with psycopg.connect(self.url, autocommit=True) as session:
            who, said = psycopg.sql.Identifier(name), psycopg.sql.Literal(password)
            session.execute(psycopg.sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(who, said))
            owner = psycopg.sql.SQL("CREATE DATABASE {} OWNER {}").format(who, who)
            session.execute(owner)
            session.execute("SELECT pg_reload_conf()")

    def stop(self, number: signal.Signals = signal.SIGINT) -> None:
        """Stop the server without waiting for its clients."""
        super().stop(number)

    def answers(self) -> bool:
        """Whether it accepts sessions; it listens before that."""
        try:
            psycopg.connect(self.url, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True


def postgres_server(folder: Path, *flags: str, within: Path | None = None) -> PostgresServer:
    """Start a PostgreSQL; if this process is root, under the user of its package.

    Arguments:
        folder: the folder of its log; its data are in a folder that its user owns.
        flags: further settings, like "-c", "max_connections=20".
        within: where the folder of its data is made.
    """
    user = user_of_postgres()
    data = folder_of(user, within)
    initdb = [program("initdb", "postgresql"), "-D", str(data), "-U", "postgres", "-A", "trust"]
    # The environment of the tests shall decide neither the encoding nor the order of texts.
    initdb += ["-E", "UTF8", "--locale=C", "-N"]
    subprocess.run(initdb, check=True, user=user, cwd="/", stdout=subprocess.DEVNULL)
    return postgres_on(data, folder / "postgres.log", *flags)


def postgres_on(data: Path, log: Path, *flags: str) -> PostgresServer:
    """Start a PostgreSQL on data that exist, and wait until it answers."""
    port = free_port()
    command = [program("postgres", "postgresql"), "-D", str(data), "-p", str(port)]
    command += ["-h", HOST, "-k", "", *flags]
    server = PostgresServer(command, port, log, user_of_postgres())
    server.data = data
    server.url = f"postgres://postgres@{server.address}/postgres"
    server.wait(server.answers)
    return server


def user_of_postgres() -> str | None:
    """Return the user for servers that refuse to run as root; None if this process is not root."""
    return "postgres" if os.getuid() == 0 else None


def folder_of(user: str | None, within: Path | None = None) -> Path:
    """Create a folder that a user owns, until this process ends.

    It is not below pytest's folders, since every test run closes those to other users.
    """
    made = Path(tempfile.mkdtemp(prefix="strongroom-test-", dir=within))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    if user is not None:
        os.chown(made, pwd.getpwnam(user).pw_uid, -1)
    return made


def certificate(folder: Path) -> tuple[Path, Path]:
    """Create a self-signed certificate for 127.0.0.1, and return it and its key."""
    made, key = folder / "certificate.pem", folder / "key.pem"
    command = [program("openssl", "openssl"), "req", "-x509", "-newkey", "ec"]
    command += ["-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=strongroom-test", "-addext", f"subjectAltName=IP:{HOST}"]
    command += ["-keyout", str(key), "-out", str(made)]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    return made, key
