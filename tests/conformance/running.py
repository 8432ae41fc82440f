"""The server under test, in this process, with accounts that a test may add to and change.

It is strict: an error that an operation does not declare becomes a 500, which no test expects.
"""

from __future__ import annotations

import base64
import itertools
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from strongroom.auth.accounts import (
    DEVELOPMENT_ACCOUNT_KEY,
    DEVELOPMENT_ACCOUNT_NAME,
    Account,
    development_account,
)
from strongroom.config import AccountSources, Settings, SmbFlags
from strongroom.servers.identities.accounts_file import change_accounts
from strongroom.testing.ports import free_port
from strongroom.testing.server import InProcessServer
from tests.conformance.client import Client, Credential
from tests.conformance.table_client import TableClient

_ACCOUNTS_AT_ONCE = 16


class Running:
    """A server on a free port of loopback.

    Arguments:
        data: its data directory; None = in memory.
        copy_source_hosts: hosts of its own network that it may copy from.
        rehydration_s: the durations of rehydrations, with priority Standard and High.
        smb: whether SMB is served too.
        allow_reset: whether a data directory may be reset.
    """

    def __init__(
        self,
        data: Path | None = None,
        copy_source_hosts: tuple[str, ...] = (),
        rehydration_s: tuple[float, float] = (0.0, 0.0),
        smb: bool = False,
        allow_reset: bool = False,
    ) -> None:
        self.credential = Credential(DEVELOPMENT_ACCOUNT_NAME, DEVELOPMENT_ACCOUNT_KEY)
        self._numbers = itertools.count(1)
        self._unused: list[Credential] = []
        self._folder = tempfile.TemporaryDirectory()
        self._file = Path(self._folder.name) / "accounts.json"
        change_accounts(self._file, lambda _: (development_account(),))
        settings = Settings(
            data=data,
            blob_port=free_port(),
            queue_port=free_port(),
            table_port=free_port(),
            file_port=free_port(),
            accounts=AccountSources(file=self._file, must_exist=True),
            test_clock=True,
            copy_source_hosts=copy_source_hosts,
            strict=True,
            rehydration_s=rehydration_s,
            smb=SmbFlags(free_port()) if smb else None,
            allow_reset=allow_reset,
        )
        self.smb_port = 0 if settings.smb is None else settings.smb.port
        self.server = InProcessServer(settings)
        self.port = self.server.port
        self.queue_port = int(self.server.queue_url.rpartition(":")[2])
        self.table_port = int(self.server.table_url.rpartition(":")[2])
        self.file_port = int(self.server.file_url.rpartition(":")[2])

    def client(self) -> Client:
        """A client of the development account."""
        return Client(self.port, self.credential)

    def account(self) -> Client:
        """A client of an account that no test has used."""
        if not self._unused:
            self._unused = self._add_accounts()
        return Client(self.port, self._unused.pop())

    def _add_accounts(self) -> list[Credential]:
        """Add several accounts by one change of the file, which costs a sync."""
        names = [f"account{next(self._numbers)}" for _ in range(_ACCOUNTS_AT_ONCE)]
        keys = [name.encode() * 4 for name in names]
        added = tuple(Account(name, (key,)) for name, key in zip(names, keys, strict=True))
        change_accounts(self._file, lambda before: (*before, *added))
        return [
            Credential(name, base64.b64encode(key).decode())
            for name, key in zip(names, keys, strict=True)
        ]

    def queues(self) -> Client:
        """A client of the development account's queues."""
        return Client(self.queue_port, self.credential)

    def queue_account(self) -> Client:
        """A client of the queues of a new account of its own."""
        return Client(self.queue_port, self.account().credential)

    def tables(self) -> TableClient:
        """A client of the development account's tables."""
        return TableClient(self.table_port, self.credential)

    def table_account(self) -> TableClient:
        """A client of the tables of a new account of its own."""
        return TableClient(self.table_port, self.account().credential)

    def files(self) -> Client:
        """A client of the development account's shares."""
        return Client(self.file_port, self.credential)

    def file_account(self) -> Client:
        """A client of the shares of a new account of its own."""
        return Client(self.file_port, self.account().credential)

    def set_keys(self, name: str, *keys: str) -> None:
        """Replace the keys (base64) of the account `name`."""
        account = Account(name, tuple(base64.b64decode(key) for key in keys))

        def edit(before: tuple[Account, ...]) -> tuple[Account, ...]:
            return (*(one for one in before if one.name != name), account)

        change_accounts(self._file, edit)

    def switch(self, name: str, **changes: Any) -> None:
        """Change some of the account's switches (fields of `Switches`)."""

        def edit(before: tuple[Account, ...]) -> tuple[Account, ...]:
            return tuple(_switched(one, changes) if one.name == name else one for one in before)

        change_accounts(self._file, edit)

    def advance(self, seconds: float) -> None:
        """Advance store time by `seconds`."""
        self.server.advance(seconds)

    def stop(self) -> None:
        """End the server and its thread."""
        self.server.stop()
        self._folder.cleanup()


def _switched(account: Account, changes: dict[str, Any]) -> Account:
    return account.switched(msgspec.structs.replace(account.switches, **changes))
