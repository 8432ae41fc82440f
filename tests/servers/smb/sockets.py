"""An SMB client with a socket: each command waits for its own answer, and others may come before.

Lives here: the socket, the matching of answers, notices of breaks. Must not live here: bodies of
commands (command_calls.py), authentication (client.py).
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME
from strongroom.servers.smb.refusals import SmbError
from strongroom.servers.smb.state.declarations import SmbAnswer
from strongroom.wire.smb.commands import Command
from strongroom.wire.smb.header import ALL_ONES, HEADER_BYTES
from strongroom.wire.smb.requests.oplock_break import (
    LeaseBreakAck,
    LeaseBreakNotice,
    write_lease_acknowledgment,
)
from strongroom.wire.smb.statuses import STATUS_PENDING
from tests.servers.smb import client_codecs
from tests.servers.smb.client import PATIENCE_S, Client, Closed, Reply
from tests.servers.smb.command_calls import SmbCalls

LOOPBACK = "127.0.0.1"
_KEY = base64.b64decode(DEVELOPMENT_ACCOUNT_KEY)
_CREDIT_BYTES = 65536
# NT statuses of refusals have both upper bits set; warnings have only the first of them.
_REFUSED = 0xC000_0000


class SocketClient(Client):
    """A connection over TCP."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._begin()

    @classmethod
    async def dial(cls, port: int) -> SocketClient:
        """Connect. Raises: OSError."""
        return cls(*await asyncio.open_connection(LOOPBACK, port))

    def send_raw(self, data: bytes) -> None:
        self._writer.write(data)

    async def frame(self) -> bytes:
        try:
            async with asyncio.timeout(PATIENCE_S):
                size = int.from_bytes(await self._reader.readexactly(4), "big")
                return await self._reader.readexactly(size)
        except (OSError, asyncio.IncompleteReadError):
            raise Closed from None

    def pause_reading(self) -> None:
        assert isinstance(self._writer.transport, asyncio.ReadTransport)
        self._writer.transport.pause_reading()

    def send_eof(self) -> None:
        """Send no more, but leave the other direction open."""
        self._writer.write_eof()

    def close(self) -> None:
        """End the connection."""
        self._writer.close()


class SmbMount(SmbCalls):
    """A share of the development account, mounted over TCP. Use it as a context manager.

    Attributes:
        answers_breaks: whether notices of leases are acknowledged as soon as they arrive.
        on_notice: called with a notice instead; it runs concurrently with other requests.
        notices: the notices of leases, in order.
        has_notice: set when a notice has arrived.
        waits: set when a request was answered PENDING.
    """

    def __init__(self, port: int, share: str, *, answers_breaks: bool = True) -> None:
        self._port, self._share = port, share
        self._pending: dict[int, asyncio.Future[Reply]] = {}
        self._reading: asyncio.Task[None] | None = None
        self._client: SocketClient | None = None
        self.answers_breaks = answers_breaks
        self.on_notice: Callable[[LeaseBreakNotice], Coroutine[Any, Any, None]] | None = None
        self.notices: list[LeaseBreakNotice] = []
        self.has_notice = asyncio.Event()
        self.waits = asyncio.Event()

    async def __aenter__(self) -> SmbMount:
        client = self._client = await SocketClient.dial(self._port)
        refused = (
            (await client.negotiate()).status
            or (await client.log_on(user=DEVELOPMENT_ACCOUNT_NAME, key=_KEY)).status
            or (await client.connect(self._share)).status
        )
        if refused:
            raise SmbError(refused)
        self._reading = asyncio.create_task(self._read(client))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._client is not None
        self._client.close()
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    async def send(self, command: Command, body: bytes) -> SmbAnswer:
        """Send one command. Raises: SmbError for a refusal; Closed if there is no connection."""
        client = self._client
        assert client is not None and self._reading is not None
        if self._reading.done():
            raise Closed
        charge = max(1, -(-max(len(body), _read_bytes(command, body)) // _CREDIT_BYTES))
        waiter: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._pending[client.next_id] = waiter
        client.send(client.message(command, body, credit_charge=charge, credits=charge + 32))
        async with asyncio.timeout(PATIENCE_S):
            reply = await waiter
        if reply.status & _REFUSED == _REFUSED:
            raise SmbError(reply.status)
        return SmbAnswer(reply.body, reply.status)

    async def acknowledge_lease(self, notice: LeaseBreakNotice, state: int | None = None) -> None:
        """Acknowledge a notice, with the state that it asks for or the given one."""
        answer = LeaseBreakAck(notice.key, notice.new if state is None else state)
        await self.send(Command.OPLOCK_BREAK, write_lease_acknowledgment(answer))

    async def _read(self, client: SocketClient) -> None:
        answers: set[asyncio.Task[None]] = set()
        try:
            while True:
                for reply in await client.replies():
                    if reply.header.message_id == ALL_ONES:
                        notice = self._noticed(reply)
                        react = self.on_notice or self._answer
                        answers.add(asyncio.create_task(react(notice)))
                    elif reply.status == STATUS_PENDING:
                        self.waits.set()
                    else:
                        self._pending.pop(reply.header.message_id).set_result(reply)
        except (Closed, TimeoutError):
            for waiter in self._pending.values():
                waiter.set_exception(Closed())

    async def _answer(self, notice: LeaseBreakNotice) -> None:
        if self.answers_breaks and notice.must_acknowledge:
            await self.acknowledge_lease(notice)

    def _noticed(self, reply: Reply) -> LeaseBreakNotice:
        notice = client_codecs.read_lease_notice(memoryview(bytes(HEADER_BYTES) + reply.body))
        self.notices.append(notice)
        self.has_notice.set()
        return notice


def _read_bytes(command: Command, body: bytes) -> int:
    """Return how many bytes a READ requests."""
    return int.from_bytes(body[4:8], "little") if command == Command.READ else 0
