"""Applies setups in this process, and reads what is there afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

from strongroom.app import App
from strongroom.clock import SystemClock
from strongroom.config import ACCOUNTS_FILE_NAME, AccountSources, RolesSource, Settings, SetupSource

ACCOUNT = """
    [[accounts]]
    name = "devstoreaccount1"
"""


class SetUp:
    """A data directory, and the setup file that is applied to it.

    Attributes:
        lines: what the last run has printed.
    """

    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        self.file = folder / "setup.toml"
        self.lines: list[str] = []

    def write(self, text: str) -> None:
        """Write the setup file."""
        self.file.write_text(dedent(ACCOUNT) + dedent(text))
        self.file.chmod(0o600)

    def settings(
        self, *, overwrites: bool = False, variables: Mapping[str, str] | None = None
    ) -> Settings:
        """Return settings with the setup, and with free ports."""
        return Settings(
            data=self.data,
            blob_port=0,
            queue_port=0,
            table_port=0,
            file_port=0,
            accounts=AccountSources(file=self.data / ACCOUNTS_FILE_NAME),
            roles=RolesSource(self.data / "roles.json"),
            setup=SetupSource(self.file, overwrites, variables or {}),
        )

    def apply(self, *, overwrites: bool = False, **variables: str) -> list[str]:
        """Apply the setup to the data directory. Return the lines, without those of what was
        left."""
        self.lines = []
        settings = self.settings(overwrites=overwrites, variables=variables)
        app = App(settings, SystemClock(), self.lines.append)
        asyncio.run(app.set_up())
        return [line for line in self.lines if not line.startswith("left ")]
