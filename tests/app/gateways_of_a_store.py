"""Whole servers over one store in a database, in one process: which of them serves, which wait.

Lives here: starting and ending them, and requests to the one that serves. Must not live here: the
database (tests/over_postgres.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from strongroom.app import App
from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME
from strongroom.clock import SystemClock
from strongroom.config import Settings
from strongroom.database import DatabaseSettings
from strongroom.engines.base import EngineError
from strongroom.standby import NotServing, Standby
from tests.conformance.answer import Answer
from tests.conformance.client import PUT_BLOB, Client, Credential

CREDENTIAL: Final = Credential(DEVELOPMENT_ACCOUNT_NAME, DEVELOPMENT_ACCOUNT_KEY)
_END_S: Final = 60.0


def settings_over(store: DatabaseSettings, **more: Any) -> Settings:
    """Return the settings of a server on free ports."""
    return Settings(
        data=None,
        store=store,
        drain_timeout_s=5.0,
        blob_port=0,
        queue_port=0,
        table_port=0,
        file_port=0,
        **more,
    )


class GatewayUnderTest:
    """A server from its start to its end.

    Attributes:
        told: what it said of its wait.
        app: None until it serves.
        serves: is set when it serves.
    """

    def __init__(self, settings: Settings) -> None:
        self.told: list[str] = []
        self.app: App | None = None
        self.serves = asyncio.Event()
        self.waits = asyncio.Event()
        self._stop = asyncio.Event()
        self.ended = asyncio.create_task(self._serve(settings))

    async def until(self, event: asyncio.Event) -> None:
        """Wait for one of its events; fail if the server ends before."""
        waiting = asyncio.create_task(event.wait())
        until = asyncio.FIRST_COMPLETED
        await asyncio.wait((waiting, self.ended), timeout=_END_S, return_when=until)
        waiting.cancel()
        assert event.is_set(), self.ended.result() if self.ended.done() else self.told

    async def stop(self) -> EngineError | None:
        """End it as SIGTERM does; return what `serve` returns."""
        self._stop.set()
        return await asyncio.wait_for(asyncio.shield(self.ended), _END_S)

    async def ask(self, method: str, target: str, body: bytes = b"") -> Answer:
        """Send a signed request to the Blob service, and return its answer."""
        assert self.app is not None
        client = Client(self.app.ports["blob"], CREDENTIAL)
        try:
            return await asyncio.wait_for(
                asyncio.wrap_future(client.start(method, target, PUT_BLOB, body)), _END_S
            )
        finally:
            client.close()

    async def health(self) -> Answer:
        """Return the answer of its health check."""
        assert self.app is not None
        client = Client(self.app.ports["blob"], CREDENTIAL, auth=None, prefix="")
        return await asyncio.wrap_future(client.start("GET", "/.strongroom/health"))

    async def _serve(self, settings: Settings) -> EngineError | None:
        app = App(settings, SystemClock())
        app.standby = Standby(self._stop, self._tell)
        try:
            await app.start()
        except NotServing as ended:
            return ended.error
        assert app.failed is not None
        self.app = app
        self.serves.set()
        stopping = asyncio.ensure_future(self._stop.wait())
        await asyncio.wait((stopping, app.failed), return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        await app.stop()
        return app.failed.result() if app.failed.done() else None

    def _tell(self, text: str) -> None:
        self.told.append(text)
        self.waits.set()


@asynccontextmanager
async def gateway(settings: Settings) -> AsyncIterator[GatewayUnderTest]:
    """Start a server, and end it with the block if it still runs."""
    started = GatewayUnderTest(settings)
    try:
        yield started
    finally:
        await started.stop()
