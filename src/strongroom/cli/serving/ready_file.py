"""The file of `--ready-file`: it exists while the server serves, and has its endpoints as JSON.

Lives here: writing and removing it, and its content. Must not live here: when the server is ready
(app.py). The content has no secret, so any user of the machine may read it.
"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

from strongroom import __version__
from strongroom.config import ConfigError
from strongroom.servers import smb
from strongroom.servers.own_endpoints import PREFIX
from strongroom.sources import own_url

if TYPE_CHECKING:
    from strongroom.app import App

_MODE: Final = 0o644
_BEGIN: Final = b'{"pid": '


class ReadyFile:
    """One file. A file that an earlier server left behind is removed at once, and no other.

    Raises: ConfigError: its folder cannot be written, or something else has its name.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._new = path.with_name(f"{path.name}.new")
        self._content: bytes | None = None  # as it was published
        try:
            for old in (path, self._new):
                _remove_left(old)
            # An error is seen before the server starts, not after.
            self._number = os.open(self._new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE)
        except OSError as error:
            raise _unwritable(path, error) from None

    def publish(self, content: bytes) -> None:
        """Let the file appear, whole. Raises: ConfigError."""
        try:
            with os.fdopen(self._number, "wb") as file:
                file.write(content)
            self._new.replace(self._path)
        except OSError as error:
            raise _unwritable(self._path, error) from None
        self._content = content

    def withdraw(self) -> None:
        """Remove the file, unless another server has put its own there. Idempotent."""
        try:
            if self._content is None:  # the server did not start
                self._new.unlink(missing_ok=True)
            elif self._path.read_bytes() == self._content:
                self._path.unlink()
        except OSError:
            return  # it is gone, or so is the right to remove it


def _remove_left(path: Path) -> None:
    """Remove the file of an earlier server, or an empty one. Raises: ConfigError, OSError."""
    try:
        is_file = stat.S_ISREG(os.lstat(path).st_mode)
    except FileNotFoundError:
        return
    if not is_file or not _is_left(path):
        raise ConfigError(
            f"--ready-file: {path} is no file of an earlier server, and is left as it is. Choose "
            "another name, or remove it."
        )
    path.unlink()


def _is_left(path: Path) -> bool:
    """Whether a file begins as ours do; one that was not written to its end counts too."""
    with path.open("rb") as file:
        return _BEGIN.startswith(file.read(len(_BEGIN)))


def _unwritable(path: Path, error: OSError) -> ConfigError:
    return ConfigError(f"--ready-file {path} cannot be written: {error.strerror}")


def ready_content(app: App) -> bytes:
    """Return the content of the file: one JSON object and a line break.

    `endpoints` has the URL of each service, without an account, by the names blob, queue, table and
    file. So it has those of all (the port of all services), smb and console, where they are served.
    """
    endpoints = {name: own_url(app.settings, port) for name, port in app.ports.items()}
    if smb.NAME in endpoints:
        endpoints[smb.NAME] = "smb://" + endpoints[smb.NAME].partition("://")[2]
    facts = {
        "pid": os.getpid(),
        "version": __version__,
        "host": app.settings.host,
        "ports": app.ports,
        "endpoints": endpoints,
        "health": f"{endpoints['blob']}{PREFIX}health",
    }
    return json.dumps(facts).encode() + b"\n"
