"""A Ceph cluster on loopback, from Debian's packages: a monitor, a manager and three OSDs.

Lives here: its processes, started and stopped by their ids, without systemd. Each object lies on
all three OSDs, and a write needs two of them. Must not live here: what lies in it (pools.py).

Source: "Manual Deployment" of Ceph's documentation.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
import uuid
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from strongroom.testing.ports import HOST, free_port
from tests.coordination.servers import RealServer, folder_of, program

PACKAGES: Final = "--no-install-recommends ceph-mon ceph-osd ceph-mgr ceph-common librados2"
OSDS: Final = 3
_START_S: Final = 120.0
_FIRST_PORT: Final = 10_000
"""Each daemon takes some ports of a hundred, below those for outgoing connections."""
_SETTINGS: Final = """[global]
fsid = {fsid}
mon host = {mon}
mon initial members = a
auth cluster required = cephx
auth service required = cephx
auth client required = cephx
keyring = {folder}/keyring
run dir = {folder}
admin socket = {folder}/$name.$pid.asok
log file =
ms bind port min = {port}
ms bind port max = {last}
public network = 127.0.0.0/8
mon data = {folder}/mon
mgr data = {folder}/mgr
osd data = {folder}/osd$id
osd objectstore = bluestore
bluestore block size = 8589934592
osd memory target = 939524096
osd crush chooseleaf type = 0
osd pool default size = 3
osd pool default min size = 2
mon osd min down reporters = 1
mon data avail crit = 1
mon data avail warn = 1
mon allow pool delete = true
"""


class CephCluster:
    """A cluster; a context manager that stops it.

        with CephCluster(folder) as ceph:
            ceph.make_pool("bodies")
            ceph.osds[0].stop(signal.SIGKILL)
            ceph.osds[0].start()
            ceph.wait_until_whole()

    Arguments:
        folder: for logs.

    Attributes:
        configuration: the file that clients read.
        monitor, osds: their processes.
        started_s: for how long it was started.
    """

    def __init__(self, folder: Path) -> None:
        for name in ("ceph-mon", "ceph-osd", "ceph-mgr", "ceph", "rados"):
            program(name, PACKAGES)
        began = time.monotonic()
        self._logs = folder
        self.folder = folder_of(None)
        self.configuration = self.folder / "ceph.conf"
        self._mon_port = free_port()
        self._fsid = str(uuid.uuid4())
        self._settings()
        self.osds: list[RealServer] = []
        self._others: list[RealServer] = []
        try:
            self._start_monitor()
            self._start_manager()
            for number in range(OSDS):
                self._start_osd(number)
            self.wait_until_up()
        except BaseException:
            self.stop()
            raise
        self.started_s = time.monotonic() - began

    def _settings(self) -> None:
        port = _FIRST_PORT + os.getpid() % 90 * 100
        text = _SETTINGS.format(
            fsid=self._fsid,
            mon=f"{HOST}:{self._mon_port}",
            folder=self.folder,
            port=port,
            last=port + 99,
        )
        self.configuration.write_text(text)

    def _start_monitor(self) -> None:
        keyring, map_ = self.folder / "keyring", self.folder / "monmap"
        everything = [f"{part} allow *" for part in ("mon", "osd", "mgr")]
        self._run("ceph-authtool", "--create-keyring", keyring, "--gen-key", "-n", "mon.", *_caps())
        self._run("ceph-authtool", keyring, "--gen-key", "-n", "client.admin", *_caps(*everything))
        address = f"{HOST}:{self._mon_port}"
        self._run("monmaptool", "--create", "--add", "a", address, "--fsid", self._fsid, map_)
        (self.folder / "mon").mkdir()
        conf = ("-c", str(self.configuration))
        self._run("ceph-mon", *conf, "-i", "a", "--mkfs", "--monmap", map_, "--keyring", keyring)
        self.monitor = self._daemon("ceph-mon", "a")
        self._others.append(self.monitor)

    def _start_manager(self) -> None:
        own = self.folder / "mgr"
        own.mkdir()
        caps = ("mon", "allow profile mgr", "osd", "allow *", "mds", "allow *")
        self.run("auth", "get-or-create", "mgr.x", *caps, "-o", str(own / "keyring"))
        self._others.append(self._daemon("ceph-mgr", "x", "--keyring", str(own / "keyring")))

    def _start_osd(self, number: int) -> None:
        own, name, identity = self.folder / f"osd{number}", f"osd.{number}", str(uuid.uuid4())
        own.mkdir()
        keyring = own / "keyring"
        self._run("ceph-authtool", "--create-keyring", keyring, "--gen-key", "-n", name)
        secret = self._run("ceph-authtool", "-p", "-n", name, keyring).strip()
        given = json.dumps({"cephx_secret": secret})
        self.run("osd", "new", identity, str(number), "-i", "-", given=given)
        conf = ("-c", str(self.configuration), "-i", str(number), "--keyring", str(keyring))
        self._run("ceph-osd", *conf, "--mkfs", "--osd-uuid", identity)
        self.osds.append(self._daemon("ceph-osd", str(number), "--keyring", str(keyring)))

    def _daemon(self, kind: str, name: str, *flags: str) -> RealServer:
        command = [program(kind, PACKAGES), "-c", str(self.configuration), "-i", name, "-f", *flags]
        return RealServer(command, 0, self._logs / f"{kind}-{name}.log")

    def _run(self, *command: object, given: str | None = None) -> str:
        done = subprocess.run(
            [str(one) for one in command],
            check=False,
            input=given,
            capture_output=True,
            text=True,
            timeout=_START_S,
        )
        assert done.returncode == 0, (command, done.stderr[-2000:])
        return done.stdout

    def run(self, *command: str, given: str | None = None) -> str:
        """Run a command of `ceph`, and return its output."""
        return self._run("ceph", "-c", self.configuration, *command, given=given)

    def ask(self, *command: str) -> Any:
        """Return what a command of `ceph` answers."""
        return json.loads(self.run(*command, "--format", "json"))

    def rados(self, *arguments: str) -> str:
        """Run Ceph's own client of pools."""
        return self._run("rados", "-c", self.configuration, *arguments)

    def make_pool(self, name: str, groups: int = 32) -> None:
        """Make a pool as operators are told to."""
        self.run("osd", "pool", "create", name, str(groups))
        self.run("osd", "pool", "application", "enable", name, "strongroom")

    def make_erasure_coded_pool(self, name: str) -> None:
        """Make a pool that keeps two parts of each object, and a third one for parity."""
        profile = ("k=2", "m=1", "crush-failure-domain=osd")
        self.run("osd", "erasure-code-profile", "set", "two-one", *profile)
        self.run("osd", "pool", "create", name, "8", "8", "erasure", "two-one")
        self.run("osd", "pool", "application", "enable", name, "strongroom")

    def user(self, name: str, *caps: str) -> Path:
        """Make a user; return a configuration whose keyring has only this one."""
        keyring, made = self.folder / f"{name}.keyring", self.folder / f"{name}.conf"
        self.run("auth", "get-or-create", f"client.{name}", *caps, "-o", str(keyring))
        own = f"keyring = {self.folder}/keyring"
        made.write_text(self.configuration.read_text().replace(own, f"keyring = {keyring}"))
        return made

    def wait_until_up(self) -> None:
        """Wait until all OSDs serve."""
        self._until(lambda: self.ask("osd", "stat")["num_up_osds"] == OSDS, "an OSD is not up")

    def wait_until_whole(self) -> None:
        """Wait until each object is on as many OSDs as it should be."""
        self.wait_until_up()
        self._until(self._is_clean, "some objects are not whole")

    def _is_clean(self) -> bool:
        found = self.ask("pg", "stat")["pg_summary"]["num_pg_by_state"]
        return [one["name"] for one in found] == ["active+clean"]

    def _until(self, holds: Any, complaint: str) -> None:
        until = time.monotonic() + _START_S
        while not holds():
            assert time.monotonic() < until, (complaint, self.run("-s"))
            time.sleep(0.5)

    def pause(self) -> None:
        """Stop all OSDs: their connections stay open, and nothing answers."""
        for osd in self.osds:
            osd.send(signal.SIGSTOP)

    def resume(self) -> None:
        """Let all OSDs go on."""
        for osd in self.osds:
            osd.send(signal.SIGCONT)

    def stop(self) -> None:
        """End all processes, and remove their data."""
        for server in (*self.osds, *reversed(self._others)):
            server.stop(signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def _caps(*given: str) -> list[str]:
    """Return flags of `ceph-authtool` for rights such as `osd allow *`."""
    words = [one.partition(" ") for one in given or ("mon allow *",)]
    return [flag for part, _, right in words for flag in ("--cap", part, right)]
