"""Podman with folders of its own, for tests of the image: containers without a daemon.

Lives here: podman's configuration, commands, and the service that speaks Docker's API. Must not
live here: what is expected of the image. It needs root, and Debian's podman, runc, netavark and
iptables. Everything that it started is removed at the end.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

PACKAGES = "podman buildah runc netavark iptables uidmap"
_TOOLS = ("podman", "runc", "iptables")
# crun fails where control groups are mixed, and some limits are above what a container may have.
_CONFIG = """\
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
log_driver = "k8s-file"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[network]
network_backend = "netavark"
network_config_dir = "{folder}/networks"
"""
_STORAGE = """\
[storage]
driver = "overlay"
graphroot = "{folder}/graph"
runroot = "{folder}/run"
"""

_OWN_LINE = re.compile(r'time="[^"]*" level=error msg="unable to get systemd connection')


class Podman:
    """Podman, whose images and containers lie in a folder that `close` removes."""

    def __init__(self) -> None:
        missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
        assert not missing, f"{missing} are missing: apt install {PACKAGES}"
        assert os.geteuid() == 0, "containers need root here"
        self.folder = Path(tempfile.mkdtemp(prefix="strongroom-podman-"))
        (self.folder / "networks").mkdir()
        self.environment = dict(os.environ)
        for variable, name, text in (
            ("CONTAINERS_CONF", "containers.conf", _CONFIG),
            ("CONTAINERS_STORAGE_CONF", "storage.conf", _STORAGE),
        ):
            path = self.folder / name
            path.write_text(text.format(folder=self.folder), encoding="utf-8")
            self.environment[variable] = str(path)

    def __enter__(self) -> Podman:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove every container, volume and image."""
        self.attempt("rm", "--all", "--force", "--volumes", "--time=0")
        self.attempt("network", "prune", "--force")
        self._end_monitors()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _end_monitors(self) -> None:
        """End what watches commands that were run through the API; each would stay 5 minutes."""
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if str(self.folder).encode() in path.read_bytes():
                    os.kill(int(path.parent.name), signal.SIGKILL)
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has just ended

    def attempt(self, *arguments: str, within: Sequence[str] = ()) -> tuple[int, str]:
        """Run a command of podman; return its exit code and its output.

        Arguments:
            within: a command that runs podman, such as `nsenter --net=FILE`.
        """
        done = subprocess.run(
            (*within, "podman", *arguments),
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
        )
        # Without systemd, podman says each time that it repeats no health check by itself.
        lines = done.stdout.splitlines(keepends=True)
        return done.returncode, "".join(line for line in lines if not _OWN_LINE.match(line))

    def run(self, *arguments: str) -> str:
        """Run a command of podman, which must succeed; return its output."""
        code, output = self.attempt(*arguments)
        assert code == 0, f"podman {' '.join(arguments)} ended with {code}:\n{output}"
        return output

    def load(self, archive: Path) -> str:
        """Load an image from a file; return its id."""
        self.run("load", "--quiet", "--input", str(archive))
        return str(self.inspect("localhost/strongroom:latest", kind="image")["Id"])

    def inspect(self, name: str, kind: str = "container") -> dict[str, Any]:
        """Return what podman knows of a container or an image."""
        [found] = json.loads(self.run("inspect", f"--type={kind}", name))
        return dict(found)

    @contextmanager
    def container(self, *arguments: str) -> Iterator[str]:
        """Run a container in the background; yield its id, and remove it at the end."""
        name = self.run("run", "--detach", *arguments).splitlines()[-1]
        try:
            yield name
        finally:
            self.run("rm", "--force", "--volumes", "--time=0", name)

    def logs(self, name: str) -> str:
        """Return what a container wrote to both its outputs."""
        return self.run("logs", name)

    def in_it(self, name: str, *command: str) -> str:
        """Run a command in a container, which must succeed; return its output."""
        return self.run("exec", name, *command)

    @contextmanager
    def service(self, within: Sequence[str] = ()) -> Iterator[str]:
        """Speak Docker's API; yield the address of the socket."""
        address = f"unix://{self.folder}/api.sock"
        process = subprocess.Popen(
            (*within, "podman", "system", "service", "--time=0", address),
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            deadline = time.monotonic() + 60
            while not (self.folder / "api.sock").exists():
                assert process.poll() is None and time.monotonic() < deadline, "no service"
                time.sleep(0.05)
            yield address
        finally:
            process.terminate()
            process.wait(30)
