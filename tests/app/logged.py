"""A server with an access log, for tests: requests of any form, and the lines that they cause."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from strongroom.auth.accounts import (
    DEVELOPMENT_ACCOUNT_KEY,
    DEVELOPMENT_ACCOUNT_NAME,
    Account,
    development_account,
)
from strongroom.config import (
    AccessLogNames,
    AccountSources,
    OAuth,
    ObservationSettings,
    Settings,
    SmbFlags,
)
from strongroom.testing.ports import free_port
from strongroom.testing.server import InProcessServer
from tests.conformance.client import Client, Credential
from tests.conformance.table_client import TableClient

SECOND_KEY = b"the second key of the account"
PATIENCE_S = 30.0

Line = dict[str, Any]


class Logged:
    """A server that accepts unsigned bearer tokens, and has all services on `one_port` too.

    Arguments:
        folder: the folder of its log.
        more: further settings; `data` is its data directory, None = in memory.
    """

    def __init__(
        self,
        folder: Path,
        names: AccessLogNames = "plain",
        smb: bool = False,
        traces: bool = False,
        **more: Any,
    ) -> None:
        self.path = folder / "access.log"
        (key,) = development_account().keys
        account = Account(DEVELOPMENT_ACCOUNT_NAME, (key, SECOND_KEY))
        self.settings = Settings(
            data=more.pop("data", None),
            blob_port=free_port(),
            queue_port=free_port(),
            table_port=free_port(),
            file_port=free_port(),
            one_port=free_port(),
            smb=SmbFlags(free_port()) if smb else None,
            accounts=AccountSources((account,)),
            oauth=OAuth(),
            observation=ObservationSettings(str(self.path), names, traces),
            **more,
        )
        self.server = InProcessServer(self.settings)
        self.credential = Credential(DEVELOPMENT_ACCOUNT_NAME, DEVELOPMENT_ACCOUNT_KEY)

    def __enter__(self) -> Logged:
        return self

    def __exit__(self, *_: object) -> None:
        self.server.stop()

    def client(self, service: str = "blob") -> Client:
        """A client of a service."""
        port: int = getattr(self.settings, f"{service}_port")
        make = TableClient if service == "table" else Client
        return make(port, self.credential)

    def lines(self, count: int) -> list[Line]:
        """Return all lines, after waiting until there are so many."""
        deadline = time.monotonic() + PATIENCE_S
        while len(found := self.path.read_bytes().splitlines()) < count:
            assert time.monotonic() < deadline, f"{len(found)} of {count} lines came"
            time.sleep(0.005)
        assert len(found) == count, found
        return [json.loads(line) for line in found]

    def last(self, count: int) -> Line:
        """Return the last line of so many."""
        return self.lines(count)[-1]
