"""`strongroom serve --store` in a process of its own, on one port: serving or waiting.

Lives here: starting it, and what its health says. Must not live here: what is in front of it
(balancers.py).
"""

from __future__ import annotations

import http.client
import sys
from collections.abc import Sequence
from pathlib import Path

from strongroom.testing.ports import free_port
from tests.coordination.servers import RealServer
from tests.proof.postgres.http_store import Address


class Gateway(RealServer):
    """One gateway of a store. It has no open port as long as another one serves.

    Arguments:
        url: of the database.
        folder: for its own files and its log.
        name: of its files.
        tls: its certificate and its key; None = without TLS.
        flags: further flags of `serve`.
        start: what is started instead of `python -m strongroom`.

    Attributes:
        services: where it serves.
    """

    def __init__(
        self,
        url: str,
        folder: Path,
        name: str = "gateway",
        tls: tuple[Path, Path] | None = None,
        *,
        flags: Sequence[str] = (),
        start: Sequence[str] = (sys.executable, "-m", "strongroom"),
    ) -> None:
        self.services = Address(free_port(), None if tls is None else tls[0])
        command = [*start, "serve", "--no-console", "--store", url, *flags]
        command += ["--data", str(folder / name), "--store-connections", "4", "--port-base", "0"]
        command += ["--one-port", str(self.services.port), "--log-level", "info"]
        if tls is not None:
            command += ["--cert", str(tls[0]), "--key", str(tls[1])]
        super().__init__(command, self.services.port, folder / f"{name}.log")

    def start(self) -> None:
        """Start it with its present files."""
        self._said_before = self._log.stat().st_size if self._log.exists() else 0
        super().start()

    def waits(self) -> bool:
        """Whether it has said since its start that it waits for another one."""
        return b"waiting: gateway" in self._log.read_bytes()[self._said_before :]

    def serves(self) -> bool:
        """Whether it serves and its database answers."""
        return self.health() == 200

    def health(self) -> int:
        """Return the status of its health; 0 if it does not answer."""
        connection = self.services.connect()
        try:
            connection.request("GET", "/.strongroom/health")
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return 0
        finally:
            connection.close()
