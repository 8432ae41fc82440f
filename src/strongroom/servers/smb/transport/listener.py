"""The SMB server: it counts its connections by address, enforces their time limits, and drains.

Lives here: what its connections share. Must not live here: the protocol (connection.py), the set of
connections (connections/open_connections.py). Its shape is that of servers/listener.py. Source:
smb.md 5.1.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from strongroom.auth.accounts import Accounts
from strongroom.clock import Clock
from strongroom.servers.connections.accepting import Acceptor
from strongroom.servers.connections.budget import ConnectionBudget
from strongroom.servers.connections.open_connections import OpenConnections
from strongroom.servers.connections.settings import AcceptSettings
from strongroom.servers.observers import RequestObserver
from strongroom.servers.smb.messages.setup_commands import SETUP_RULES
from strongroom.servers.smb.state.connections import ConnectShare, SmbShared
from strongroom.servers.smb.state.declarations import CommandTable
from strongroom.servers.smb.state.settings import SmbSettings
from strongroom.servers.smb.transport.connection import SmbServerConnection
from strongroom.services.core.runner import Services

_CRYPTO_THREADS = 2


class SmbListener:
    """A server of SMB 3, and of SMB 2.1 where encryption is not required.

    Arguments:
        budget: the places for connections of all servers of the process; None = this server has its
            own.
        commands: the rules of the commands beside those that set a connection up.
    """

    def __init__(
        self,
        services: Services,
        accounts: Accounts,
        clock: Clock,
        settings: SmbSettings,
        *,
        connect_share: ConnectShare,
        commands: CommandTable,
        budget: ConnectionBudget | None = None,
        observers: Sequence[RequestObserver] = (),
    ) -> None:
        self.draining = False
        self._threads = ThreadPoolExecutor(_CRYPTO_THREADS, thread_name_prefix="smb-crypto")
        self.shared = SmbShared(
            services,
            accounts,
            clock,
            settings,
            connect_share=connect_share,
            commands={**{rule.command: rule for rule in SETUP_RULES}, **commands},
            threads=self._threads,
            observers=observers,
        )
        self._settings = settings
        self._connections: OpenConnections[SmbServerConnection] = OpenConnections()
        self._per_address: Counter[str] = Counter()
        self._busy_bytes = 0
        most = settings.connections_max
        if budget is None:
            budget = ConnectionBudget(most)
        self._acceptor = Acceptor(
            AcceptSettings(), None, self._make, budget, self._connections.waiting, most=most
        )

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    async def listen(self, host: str, port: int) -> int:
        port = await self._acceptor.listen(host, port)
        self._connections.start_sweeping(self._settings.sweep_interval_s, self.sweep)
        return port

    async def drain(self, timeout_s: float) -> bool:
        """Requests that only wait for a change are cancelled at once."""
        self.draining = True
        self._acceptor.stop()
        for connection in self._connections:
            connection.finish()
        finished = await self._connections.end(timeout_s, None)
        self._threads.shutdown(wait=False)
        return finished

    async def close(self) -> None:
        await self.drain(0.0)

    def close_idle(self) -> None:
        """Close the connections without an authenticated session, to free memory."""
        for connection in self._connections:
            connection.close_if_idle()

    # For connections.

    def admit(self, connection: SmbServerConnection, address: str) -> bool:
        """Count a new connection. Returns False when there are too many."""
        has_place = self._acceptor.admit(connection)
        self._connections.add(connection)
        self._per_address[address] += 1
        most = self._settings.connections_per_address_max
        return has_place and not self.draining and self._per_address[address] <= most

    def forget(self, connection: SmbServerConnection, address: str) -> None:
        """Stop counting a connection that has ended with all its sessions."""
        self._connections.discard(connection)
        self._per_address[address] -= 1
        if not self._per_address[address]:
            del self._per_address[address]
        self._acceptor.forget(connection)

    @property
    def is_full(self) -> bool:
        """Whether requests in progress exceed the memory that they may use."""
        return self._busy_bytes > self._settings.buffered_bytes_max

    def add_busy_bytes(self, delta_bytes: int) -> None:
        """Add to the memory of requests in progress; a negative number subtracts."""
        was_full = self.is_full
        self._busy_bytes += delta_bytes
        if was_full and not self.is_full:
            for connection in self._connections:
                connection.check_memory()

    def sweep(self, now: float) -> None:
        """`now` is of the loop's clock."""
        for connection in self._connections:
            connection.sweep(now)

    def _make(self, loop: asyncio.AbstractEventLoop) -> SmbServerConnection:
        return SmbServerConnection(self)
