"""A PostgreSQL of its own for a benchmark: Debian's, on loopback, with its defaults but for memory.

As root it runs under the user of its package, since PostgreSQL refuses root.
"""

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final

from benchmarks.endpoint import HOST
from benchmarks.servers import ServerFailed, free_ports

MISSING: Final = "PostgreSQL is not installed; to measure it: apt-get install -y postgresql"
_USER: Final = "postgres"
_READY_S: Final = 30.0
_SETTINGS: Final = ("shared_buffers=512MB", "max_wal_size=4GB", "max_connections=100")


def programs() -> Path | None:
    """Return the folder of the newest server's programs; None if there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    return found[-1].parent if found else None


class PostgresServer:
    """One server, durable, on the disk of its folder.

    Arguments:
        folder: where a folder for its data is made.

    Raises:
        ServerFailed: it is not installed, or did not start.
    """

    def __init__(self, folder: Path) -> None:
        found = programs()
        if found is None:
            raise ServerFailed(MISSING)
        self._user = _USER if os.geteuid() == 0 else None
        self._data = Path(tempfile.mkdtemp(prefix="strongroom-postgres-", dir=_reachable(folder)))
        if self._user is not None:
            shutil.chown(self._data, _USER)
        (port,) = free_ports(1)
        self.url = f"postgresql://postgres@{HOST}:{port}/postgres"
        self._log = folder / "postgres.log"
        made = [found / "initdb", "-D", self._data, "-U", "postgres", "-A", "trust", "-E", "UTF8"]
        command = [str(part) for part in (*made, "--locale=C")]
        subprocess.run(command, check=True, user=self._user, cwd="/", stdout=subprocess.DEVNULL)
        flags = [text for one in _SETTINGS for text in ("-c", one)]
        self._command = [str(found / "postgres"), "-D", str(self._data), "-p", str(port)]
        self._command += ["-h", HOST, "-k", "", *flags]
        self._start(found / "pg_isready", port)

    def _start(self, probe: Path, port: int) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdout=log, stderr=log, user=self._user, cwd="/"
            )
        ends = time.monotonic() + _READY_S
        while self._process.poll() is None and time.monotonic() < ends:
            if not subprocess.run([probe, "-q", "-h", HOST, "-p", str(port)]).returncode:
                return
            time.sleep(0.05)
        self.stop()
        raise ServerFailed(f"PostgreSQL did not start: {self._log.read_text()[-2000:]}")

    @property
    def pid(self) -> int:
        """The id of its first process."""
        return self._process.pid

    def stop(self) -> None:
        """Stop it and remove its data."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        shutil.rmtree(self._data, ignore_errors=True)


def _reachable(folder: Path) -> Path:
    """Return a folder on the same disk that PostgreSQL's user may enter."""
    if os.geteuid() != 0:
        return folder
    user = pwd.getpwnam(_USER)
    for place in (folder, Path("/var/tmp")):
        probe = ["test", "-x", str(place)]
        if not subprocess.run(probe, user=user.pw_uid, group=user.pw_gid).returncode:
            return place
    raise ServerFailed(f"the user {_USER} may not enter {folder}; use --folder")
