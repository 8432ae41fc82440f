"""The servers under smbtorture: Strongroom, and Samba's smbd for comparison.

Lives here: starting and stopping them, each on a free port and data of its own, with an empty share
for every test. Must not live here: smbtorture itself (running.py).
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from azure.storage.fileshare import ShareServiceClient

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME
from strongroom.testing.ports import HOST, free_port
from strongroom.testing.server import Server

_START_LIMIT_S: Final = 60.0
_STOP_LIMIT_S: Final = 60.0
_PAUSE_S: Final = 0.05
# smbd reads all shares when it starts.
_SMBD_SHARES: Final = 600
# Debian always has this Unix account. A session of root would not be refused anything.
_UNIX_ACCOUNT: Final = "daemon"


class Target(Protocol):
    """A server under test."""

    port: int
    user: str
    password: str

    def empty_share(self) -> str:
        """Return the name of a share that no test has used."""
        ...


@dataclass(slots=True)
class Strongroom:
    """`strongroom serve --smb`; each share is created over REST."""

    rest: ShareServiceClient
    port: int
    user: str = DEVELOPMENT_ACCOUNT_NAME
    password: str = DEVELOPMENT_ACCOUNT_KEY
    _count: int = 0

    def empty_share(self) -> str:
        """A new share."""
        self._count += 1
        name = f"torture-{self._count}"
        self.rest.create_share(name)
        return name


@contextmanager
def strongroom(folder: Path, *, encrypted: bool) -> Iterator[Strongroom]:
    """Serve from `folder`, and stop at the end. Fail if the server ended before.

    Arguments:
        folder: the data folder.
        encrypted: whether to refuse unencrypted sessions.
    """
    port = free_port()
    required = "required" if encrypted else "offered"
    flags = ("--smb", "--smb-port", str(port), "--smb-encryption", required)
    with Server.start(data=folder / "data", test_clock=False, flags=flags) as server:
        with ShareServiceClient.from_connection_string(server.connection_string) as rest:
            yield Strongroom(rest, port)
        server.stop()
        output = server.output()
        if server.exit_code != 0 or "Traceback" in output:
            raise AssertionError(f"The server failed; its last words: {output[-4000:]}")


@dataclass(slots=True)
class Smbd:
    """Debian's smbd; its shares are folders created before its start."""

    port: int
    user: str
    password: str
    _count: int = 0

    def empty_share(self) -> str:
        """The next share."""
        self._count += 1
        return f"torture-{self._count}"


def _smbd_settings(folder: Path, port: int, user: str) -> str:
    own = ("private dir", "lock directory", "state directory", "cache directory", "pid directory")
    lines = ["[global]", *(f"{one} = {folder / 'own'}" for one in own)]
    lines += [
        f"ncalrpc dir = {folder / 'own' / 'ncalrpc'}",
        f"log file = {folder / 'log'}",
        f"smb ports = {port}",
        "server role = standalone",
        "interfaces = lo",
        "bind interfaces only = yes",
        "disable netbios = yes",
        "disable spoolss = yes",
        "load printers = no",
        "map to guest = never",
        "server multi channel support = no",
        "kernel oplocks = no",
        "read only = no",
    ]
    for count in range(1, _SMBD_SHARES + 1):
        path = folder / "shares" / str(count)
        path.mkdir(parents=True)
        if os.geteuid() == 0:
            shutil.chown(path, user)
        lines += [f"[torture-{count}]", f"path = {path}"]
    return "\n".join([*lines, ""])


@contextmanager
def smbd(folder: Path) -> Iterator[Smbd]:
    """Serve from `folder` with Debian's smbd, without modules; stop it by its process group.

    `folder` must be one that other users may enter, since smbd acts as an ordinary user.
    Raises: TimeoutError if it does not listen.
    """
    port, password = free_port(), secrets.token_hex(16)
    user = _UNIX_ACCOUNT if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
    settings = folder / "smb.conf"
    (folder / "own" / "ncalrpc").mkdir(parents=True)
    settings.write_text(_smbd_settings(folder, port, user))
    subprocess.run(
        ["pdbedit", "-s", str(settings), "-a", "-t", "-u", user],
        input=f"{password}\n{password}\n",
        text=True,
        check=True,
        capture_output=True,
    )
    process = subprocess.Popen(
        ["smbd", "-s", str(settings), "--foreground", "--no-process-group"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        _await_listening(port)
        yield Smbd(port, user, password)
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(_STOP_LIMIT_S)


def _await_listening(port: int) -> None:
    deadline = time.monotonic() + _START_LIMIT_S
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex((HOST, port)) == 0:
                return
        time.sleep(_PAUSE_S)
    raise TimeoutError(f"nothing listens on port {port}")
