"""Whose clock the times of the coordination view go by."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Final, cast
from urllib.parse import quote

from strongroom.app import App
from strongroom.auth.accounts import development_account
from strongroom.auth.claims import SharedKeyClaim
from strongroom.clock import SkewedClock, SystemClock
from strongroom.config import AccountSources, ConsoleSettings, Settings
from strongroom.console.endpoints import Document
from strongroom.console.opening import OpenView
from strongroom.console.store_sources import StoreSource
from strongroom.coordination import connect
from strongroom.servers.console.api.coordination import Coordination, StoreRecords
from strongroom.servers.console.api.parts import MountedRequest
from strongroom.servers.console.viewers import Viewer
from strongroom.testing import InProcessServer
from strongroom.testing.ports import free_port
from tests.console.world import ACCOUNT, World

AHEAD_S: Final = 600.0
"""How far the server is ahead of this machine; a signature may differ by 15 minutes."""


def settings() -> Settings:
    return Settings(
        data=None,
        blob_port=free_port(),
        queue_port=free_port(),
        table_port=free_port(),
        file_port=free_port(),
        accounts=AccountSources((development_account(),)),
        console=ConsoleSettings(free_port()),
        test_clock=True,
    )


class Served:
    """A server whose clock is ahead, with its view and one further store."""

    def __init__(self, app: App) -> None:
        self._app = app
        self.view = OpenView(app, [StoreSource("other", "memory://times")], may_act=True)
        self.url = f"http://127.0.0.1:{app.ports['blob']}/{ACCOUNT}"

    async def ask(self, method: str, path: str, **query: str) -> Document:
        viewer = Viewer(SharedKeyClaim(ACCOUNT), is_operator=True)
        return await self.view.part.answer(MountedRequest(method, path, query, None, b"", viewer))

    async def records(self, **query: str) -> Coordination:
        return cast(Coordination, await self.ask("GET", "", container="locks", **query))


def ahead_s(text: str) -> float:
    """How far a time is ahead of this machine's clock."""
    return (datetime.fromisoformat(text) - datetime.now(UTC)).total_seconds()


async def started() -> App:
    app = App(settings(), SkewedClock(SystemClock(), AHEAD_S))
    await app.start()
    return app


def test_what_the_server_has_seen_or_written_has_its_own_time() -> None:
    async def play() -> None:
        app = await started()
        served = Served(app)
        await served.ask("POST", "/gates/opened/open", container="locks")
        endpoint = quote(served.url, safe="")
        client = connect(f"azure://{ACCOUNT}/locks?endpoint={endpoint}", label="ann")
        waiting = asyncio.create_task(asyncio.to_thread(client.gate("awaited").wait, 60))
        seen = await served.records()
        while not seen.containers[0].records.gates[0].waiting:
            seen = await served.records(change=seen.change, wait_s="20")
        awaited, opened = seen.containers[0].records.gates
        assert (awaited.name, opened.name) == ("awaited", "opened")
        assert abs(ahead_s(awaited.waiting[0].since) - AHEAD_S) < AHEAD_S / 2
        assert abs(ahead_s(opened.since) - AHEAD_S) < AHEAD_S / 2
        await served.ask("POST", "/gates/awaited/open", container="locks")
        await waiting
        client.close()
        served.view.close()
        await app.stop()

    asyncio.run(play())


def test_what_is_written_into_a_further_store_has_this_machines_time() -> None:
    async def play() -> None:
        app = await started()
        served = Served(app)
        await served.ask("POST", "/gates/opened/open", store="other")
        found = cast(StoreRecords, await served.ask("GET", "", store="other"))
        assert abs(ahead_s(found.records.gates[0].since)) < AHEAD_S / 2
        served.view.close()
        await app.stop()

    asyncio.run(play())


def test_a_moved_clock_ends_what_a_lease_of_this_server_holds_and_nothing_else() -> None:
    with InProcessServer.start() as server:
        world = World(server)
        endpoint = quote(f"{server.url}/{ACCOUNT}", safe="")
        for mode in ("etag", "lease"):
            url = f"azure://{ACCOUNT}/{mode}?endpoint={endpoint}&mode={mode}"
            connect(url, label="ann").lock("a", ttl=60).acquire()
        server.clock.advance(61)
        parts = {one.container: one.records.held[0] for one in world.seen().containers}
        assert (parts["lease"].holders, parts["lease"].end) == (
            (),
            "ann: not renewed within its 60 s",
        )
        assert [one.who for one in parts["etag"].holders] == ["ann"]
        world.view.close()
