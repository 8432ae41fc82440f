"""Running rclone against a server: its settings come from the environment, never from a file.

Must not live here: assertions about the results. Source: rclone's page "Azure Blob".
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME
from strongroom.testing.server import Server
from tests.interop.tools import require_tool

_TIMEOUT_S = 30


@dataclass(frozen=True, slots=True)
class Entry:
    """The result of `lsjson` for a file or a folder; `size_bytes` is -1 for a folder."""

    path: str
    size_bytes: int
    is_dir: bool


@dataclass(frozen=True, slots=True)
class Rclone:
    """The program, and the environment that defines its remote `sr`."""

    program: str
    environment: dict[str, str]

    def run(self, *arguments: str, code: int = 0, stdin: bytes = b"") -> bytes:
        """Run one command and return its output.

        Arguments:
            code: the expected exit code.
            stdin: its standard input.
        """
        done = subprocess.run(
            [self.program, *arguments, "--retries", "1", "--low-level-retries", "1"],
            env=self.environment,
            input=stdin,
            capture_output=True,
            timeout=_TIMEOUT_S,
        )
        said = done.stderr.decode("utf-8", "replace")
        assert done.returncode == code, f"rclone {arguments}: {done.returncode}: {said[-3000:]}"
        return done.stdout

    def entries(self, remote: str, *flags: str) -> dict[str, Entry]:
        """Everything below `remote`, by path."""
        found = json.loads(self.run("lsjson", remote, "--recursive", *flags))
        made = (Entry(one["Path"], one["Size"], one["IsDir"]) for one in found)
        return {entry.path: entry for entry in made}

    def files(self, remote: str) -> dict[str, int]:
        """The sizes of all files below `remote`, by path."""
        found = self.entries(remote, "--files-only")
        return {path: entry.size_bytes for path, entry in found.items()}


def with_key(server: Server, home: Path) -> Rclone:
    """rclone with the development account's key; `use_emulator` makes it use the endpoint as is.

    Arguments:
        home: a folder of the test, so that the user's own settings have no effect.
    """
    return _rclone(
        home,
        RCLONE_CONFIG_SR_USE_EMULATOR="true",
        RCLONE_CONFIG_SR_ACCOUNT=DEVELOPMENT_ACCOUNT_NAME,
        RCLONE_CONFIG_SR_KEY=DEVELOPMENT_ACCOUNT_KEY,
        RCLONE_CONFIG_SR_ENDPOINT=f"{server.url}/{DEVELOPMENT_ACCOUNT_NAME}",
    )


def with_sas(url: str, home: Path) -> Rclone:
    """Return rclone with a URL that contains a SAS, and no other credential."""
    return _rclone(home, RCLONE_CONFIG_SR_SAS_URL=url)


def _rclone(home: Path, **settings: str) -> Rclone:
    program = require_tool("rclone")
    config = home / "rclone.conf"
    config.touch()
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    given = {"HOME": str(home), "RCLONE_CONFIG": str(config), "RCLONE_CONFIG_SR_TYPE": "azureblob"}
    return Rclone(program, kept | given | settings)
