"""The servers under test: started on free ports, paused while another is measured, stopped by id.

A server that is not measured is paused (SIGSTOP). So it uses neither CPU nor disk during the
other's turn, and does its background work in its own turns.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from benchmarks.endpoint import Endpoint, account_sas
from strongroom.testing.ports import free_port

STRONGROOM: Final = "Strongroom"
AZURITE: Final = "Azurite"

_FOLDER: Final = Path(__file__).parent
_AZURITE: Final = _FOLDER / "azurite" / "node_modules" / "azurite"
_SERVICES: Final = ("blob", "queue", "table")
_READY_S: Final = 60.0
_STOP_S: Final = 30.0

Command = Callable[[Path, list[int]], list[str]]


class ServerFailed(Exception):
    """A server did not start, or stopped by itself."""


def strongroom_command(data: Path, ports: list[int]) -> list[str]:
    """Return the command of Strongroom from this environment, with its defaults: durable, on
    disk."""
    program = Path(sys.executable).with_name("strongroom")
    named = zip(_SERVICES, ports, strict=True)
    flags = [text for name, port in named for text in (f"--{name}-port", str(port))]
    # No benchmark uses the File service, and its usual port may be taken.
    flags += ["--file-port", str(free_ports(1)[0])]
    return [str(program), "serve", "--data", str(data), *flags]


def azurite_command(data: Path, ports: list[int]) -> list[str]:
    """Return the command of the pinned Azurite, with its defaults: on disk, all three services."""
    named = zip(_SERVICES, ports, strict=True)
    flags = [text for name, port in named for text in (f"--{name}Port", str(port))]
    script = _AZURITE / "dist" / "src" / "azurite.js"
    quiet = ["--skipApiVersionCheck", "--silent", "--disableTelemetry"]
    return [_program("node"), str(script), "-l", str(data), *quiet, *flags]


def install_azurite() -> str:
    """Install the pinned package unless it is installed, and return its version.

    Raises:
        ServerFailed: there is no Node or npm, or the installation failed.
    """
    if not (_AZURITE / "package.json").exists():
        command = [_program("npm"), "install", "--no-audit", "--no-fund", "--loglevel=error"]
        if subprocess.run(command, cwd=_FOLDER / "azurite", stdout=sys.stderr).returncode:
            raise ServerFailed("npm could not install Azurite")
    return str(json.loads((_AZURITE / "package.json").read_text())["version"])


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise ServerFailed(f"{name} is needed to compare with Azurite; or use --only strongroom")
    return found


def free_ports(count: int) -> list[int]:
    """Return free ports on loopback, below the range of outgoing connections.

    They stay reserved for this process's servers, which set SO_REUSEADDR before they bind, as those
    of Node, Go and C do. Raises OSError if there are none left.
    """
    return [free_port() for _ in range(count)]


@dataclass
class Server:
    """One server with a data folder of its own.

    Arguments:
        name: its name in the tables.
        command: returns the command line for the data folder and three ports.
        data: its data folder; created here.
    """

    name: str
    command: Command
    data: Path
    ports: list[int] = field(default_factory=lambda: free_ports(3))
    _process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> Endpoint:
        """The endpoint of its blob service."""
        return self.endpoint_of("blob")

    def endpoint_of(self, service: str) -> Endpoint:
        """Return the endpoint of one of its services: blob, queue, table."""
        return Endpoint(self.ports[_SERVICES.index(service)], account_sas())

    @property
    def pid(self) -> int:
        """The id of the server's process.

        Raises:
            ServerFailed: the process has ended.
        """
        if self._process is None or self._process.poll() is not None:
            raise ServerFailed(f"{self.name} does not run; see {self.log}")
        return self._process.pid

    @property
    def log(self) -> Path:
        """The file for its output."""
        return self.data.with_suffix(".log")

    def start(self) -> float:
        """Start the server, and return the seconds until its first correct answer.

        Raises:
            ServerFailed: the process ended, or gave no correct answer within a minute.
        """
        self.data.mkdir(parents=True, exist_ok=True)
        command = self.command(self.data, self.ports)
        endpoint, began = self.endpoint, time.monotonic()
        with self.log.open("ab") as log:
            try:
                self._process = subprocess.Popen(
                    command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                    start_new_session=True,
                )  # fmt: skip
            except OSError as error:
                raise ServerFailed(f"{command[0]} cannot be started: {error}") from error
        while time.monotonic() - began < _READY_S:
            try:
                if endpoint.call("GET", "/?comp=list")[0] == 200:
                    ready_s = time.monotonic() - began
                    self._await_others()
                    return ready_s
            except OSError:
                pass  # not listening yet
            if self._process.poll() is not None:
                break
            time.sleep(0.005)
        self.stop()
        raise ServerFailed(f"{self.name} did not start: {self.log.read_text()[-2000:]}")

    def _await_others(self) -> None:
        """Wait for the other services, which may open their ports a little later."""
        for service, path in (("queue", "/?comp=list"), ("table", "/Tables")):
            ends = time.monotonic() + _READY_S
            while time.monotonic() < ends:
                try:
                    headers = {"Accept": "application/json"}
                    if self.endpoint_of(service).call("GET", path, headers)[0] == 200:
                        break
                except OSError:
                    pass
                time.sleep(0.005)

    def stop(self, *, kill: bool = False) -> None:
        """Stop the server and wait for its end: by a signal, or by a kill if `kill` is set."""
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        process.send_signal(signal.SIGCONT)
        process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def discard(self) -> None:
        """Stop the server and remove its data."""
        self.stop(kill=True)
        shutil.rmtree(self.data, ignore_errors=True)

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
