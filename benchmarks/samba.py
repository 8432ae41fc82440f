"""Samba beside Strongroom: its server smbd with one share, and its client smbclient for both.

Lives here: starting and calling them. Must not live here: the measures (files.py).
"""

import contextlib
import getpass
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.endpoint import HOST
from benchmarks.sampling import cpu_with_children_s, process_tree
from benchmarks.servers import ServerFailed, free_ports

SMBD: Final = "smbd"
SHARE: Final = "bench"
SYNCED_SHARE: Final = "bench-synced"
"""The same folder of smbd, whose writes are synced before their answers."""
ENCRYPTED: Final = "encrypt"
SIGNED: Final = "sign"
_PASSWORD: Final = "of the benchmark"
_READY_S: Final = 60.0
_PATIENCE_S: Final = 1200.0
_FOLDERS: Final = ("private", "lock", "state", "cache", "pid", "ncalrpc", "share")


@dataclass(frozen=True, slots=True)
class SmbShare:
    """A share of a server, for smbclient.

    Arguments:
        name: the name of the server, for the tables.
        port: the SMB port.
        pid: the process id of the server.
        login: a file with the name and the password of the user.
        share: the share's name.
    """

    name: str
    port: int
    pid: int
    login: Path
    share: str = SHARE

    def run(
        self,
        commands: Sequence[str],
        folder: Path,
        protection: str = ENCRYPTED,
        prefix: Sequence[str] = (),
    ) -> float:
        """Run some commands with smbclient in a folder.

        Arguments:
            prefix: the command that starts smbclient, with its arguments.

        Returns: the seconds that it took, including its start and its logon.

        Raises:
            ServerFailed: a command failed, or there is no smbclient.
        """
        began = time.monotonic()
        try:
            ran = subprocess.run(
                [
                    *(
                        *prefix,
                        "smbclient",
                        f"//{HOST}/{self.share}",
                        "-p",
                        str(self.port),
                        "-m",
                        "SMB3",
                    ),
                    *("-A", str(self.login), f"--client-protection={protection}"),
                ],
                input="\n".join([*commands, "exit", ""]),
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=_PATIENCE_S,
            )
        except OSError as error:
            raise ServerFailed(f"smbclient is needed: {error}") from error
        took_s = time.monotonic() - began
        failed = re.search(r"NT_STATUS_\w+", ran.stdout + ran.stderr)
        if failed is not None or ran.returncode:
            raise ServerFailed(f"smbclient at {self.name}: {(ran.stdout + ran.stderr)[-1000:]}")
        return took_s

    @contextlib.contextmanager
    def counted_cpu(self, used_s: list[float]) -> Iterator[None]:
        """Append the CPU seconds that the server uses during the block."""
        before, processes = cpu_with_children_s(self.pid), len(process_tree(self.pid))
        yield
        # A process that served the connection has to end first.
        ends = time.monotonic() + _READY_S
        while len(process_tree(self.pid)) > processes and time.monotonic() < ends:
            time.sleep(0.01)
        used_s.append(cpu_with_children_s(self.pid) - before)


def write_login(folder: Path, user: str, password: str) -> Path:
    """Write a file with the user for smbclient, and return its path."""
    login = folder / "login"
    login.write_text(f"username={user}\npassword={password}\n")
    return login


def has_smbd() -> bool:
    """Whether Samba's server is installed."""
    return shutil.which("smbd") is not None and shutil.which("pdbedit") is not None


@contextlib.contextmanager
def smbd(folder: Path) -> Iterator[tuple[SmbShare, Path]]:
    """Run smbd with one share on a free port of loopback, until the end of the block.

    Returns: the share, and the folder that it serves.

    Raises:
        ServerFailed: it did not start.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (port,) = free_ports(1)
    config = _configuration(folder, port)
    user = getpass.getuser()
    added = subprocess.run(
        ["pdbedit", "-s", str(config), "-a", "-t", "-u", user],
        input=f"{_PASSWORD}\n{_PASSWORD}\n",
        capture_output=True,
        text=True,
    )
    if added.returncode:
        raise ServerFailed(f"pdbedit: {added.stderr}")
    log = (folder / "log").open("wb")
    process = subprocess.Popen(
        ["smbd", "-s", str(config), "-F", "--no-process-group", "--debug-stdout"],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        # smbd ends its whole process group when it ends.
        start_new_session=True,
    )
    try:
        share = SmbShare(SMBD, port, process.pid, write_login(folder, user, _PASSWORD))
        _await_ready(share, folder, process)
        yield share, folder / "share"
    finally:
        process.terminate()
        process.wait()
        log.close()


def _configuration(folder: Path, port: int) -> Path:
    for name in _FOLDERS:
        (folder / name).mkdir(exist_ok=True)
    own = {
        **{f"{name} directory" if name != "private" else "private dir": name for name in _FOLDERS},
        "ncalrpc dir": "ncalrpc",
    }
    lines = ["[global]", "server role = standalone server", "interfaces = lo"]
    lines += ["bind interfaces only = yes", f"smb ports = {port}", "disable netbios = yes"]
    lines += ["disable spoolss = yes", "map to guest = never", "load printers = no"]
    lines += ["server multi channel support = no", "server min protocol = SMB3_11"]
    for setting, name in own.items():
        if setting not in ("ncalrpc directory", "share directory"):
            lines.append(f"{setting} = {folder / name}")
    served = [f"path = {folder / 'share'}", "read only = no", "kernel oplocks = no"]
    lines += [f"[{SHARE}]", *served, f"[{SYNCED_SHARE}]", *served, "sync always = yes"]
    config = folder / "smb.conf"
    config.write_text("\n".join(lines) + "\n")
    return config


def _await_ready(share: SmbShare, folder: Path, process: subprocess.Popen[bytes]) -> None:
    ends = time.monotonic() + _READY_S
    while process.poll() is None and time.monotonic() < ends:
        with contextlib.suppress(ServerFailed):
            share.run(["ls"], folder)
            return
        time.sleep(0.1)
    raise ServerFailed(f"smbd did not start: {(folder / 'log').read_text()[-1000:]}")
