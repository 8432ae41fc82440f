"""etcd beside Strongroom: one member on loopback, and a client of etcd's own lock.

The lock is etcd's `v3lock` service over its JSON gateway. Lock waits in the order of arrival, and
answers when the client holds the lock; Unlock releases it. One lease lasts for many cycles, so a
cycle is these two requests. Both sides use the HTTP client of the coordination toolkit, for a fair
comparison.
"""

import base64
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from benchmarks.endpoint import HOST
from benchmarks.servers import ServerFailed, free_ports
from strongroom.coordination.clock import SystemClocks
from strongroom.coordination.stores.connections.http_pool import HttpPool, NoResponse

ETCD: Final = "etcd"
MISSING: Final = "etcd is not installed; to compare with it: apt-get install -y etcd-server"
_READY_S: Final = 30.0
_STOP_S: Final = 10.0
_TIMEOUT_S: Final = 60.0
_LEASE_S: Final = 600


def etcd_version() -> str | None:
    """Return the version of etcd on this machine; None if it is not installed."""
    program = shutil.which("etcd")
    if program is None:
        return None
    text = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    return text.partition("etcd Version:")[2].split()[0]


class EtcdServer:
    """One member with its defaults: durable, on disk.

    Arguments:
        data: its data folder.

    Raises:
        ServerFailed: it did not start.
    """

    def __init__(self, data: Path) -> None:
        self.log = data.with_suffix(".log")
        port, peer = free_ports(2)
        self.url = f"http://{HOST}:{port}"
        between = f"http://{HOST}:{peer}"
        command = [
            "etcd", "--data-dir", str(data), "--log-level", "error", "--logger", "zap",
            "--listen-client-urls", self.url, "--advertise-client-urls", self.url,
            "--listen-peer-urls", between, "--initial-advertise-peer-urls", between,
            "--initial-cluster", f"default={between}",
        ]  # fmt: skip
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                start_new_session=True,
            )  # fmt: skip
        self._await_answers()

    def _await_answers(self) -> None:
        ends = time.monotonic() + _READY_S
        lock = EtcdLock(self.url, "ready")
        while self._process.poll() is None and time.monotonic() < ends:
            try:
                lock.renew_lease()
            except (EtcdFailed, OSError):
                time.sleep(0.02)  # not yet
            else:
                return
        self.stop()
        raise ServerFailed(f"etcd did not start: {self.log.read_text()[-2000:]}")

    @property
    def pid(self) -> int:
        """The id of etcd's process."""
        return self._process.pid

    def pause(self) -> None:
        """Stop the process until `awake`."""
        os.kill(self.pid, signal.SIGSTOP)

    @contextmanager
    def awake(self) -> Iterator[None]:
        """Let the process run for the block, then pause it again."""
        os.kill(self.pid, signal.SIGCONT)
        try:
            yield
        finally:
            self.pause()

    def stop(self) -> None:
        """Kill the process and wait for its end."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(_STOP_S)


class EtcdFailed(Exception):
    """etcd gave an answer with which a benchmark cannot continue."""


class EtcdLock:
    """One client of a lock.

    Arguments:
        url: the URL of the member.
        name: the name of the lock.
    """

    def __init__(self, url: str, name: str) -> None:
        self._pool = HttpPool(url, SystemClocks())
        self._name = base64.b64encode(name.encode()).decode()
        self._lease = ""
        self._key = ""

    def renew_lease(self) -> None:
        """Grant another lease, which the locks of the next minutes use."""
        self._lease = self._ask("/v3/lease/grant", {"TTL": _LEASE_S})["ID"]

    def acquire(self) -> None:
        """Wait until this client holds the lock."""
        found = self._ask("/v3/lock/lock", {"name": self._name, "lease": self._lease})
        self._key = found["key"]

    def release(self) -> None:
        """Release the lock."""
        self._ask("/v3/lock/unlock", {"key": self._key})

    def _ask(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        sent = json.dumps(body).encode()
        kind = {"Content-Type": "application/json"}
        try:
            answer = self._pool.send("POST", path, kind, sent, _TIMEOUT_S)
        except NoResponse as error:
            raise EtcdFailed(f"{path}: {error}") from error
        except Exception as error:  # it cannot be reached
            raise EtcdFailed(f"{path}: {error}") from error
        if answer.status != 200:
            raise EtcdFailed(f"{path}: {answer.status} {answer.body[:200]!r}")
        found: dict[str, Any] = json.loads(answer.body)
        return found
