"""A server in this process, and the coordination view over it, without HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar
from urllib.parse import quote

from strongroom.auth.claims import BearerClaim, SharedKeyClaim
from strongroom.auth.request import Service
from strongroom.clock import SystemClock
from strongroom.console.access import Access
from strongroom.console.coordination_view import CoordinationView, Wanted
from strongroom.console.held_waits import HeldWaits
from strongroom.console.other_stores import OtherStorePanel
from strongroom.console.own_places import OwnPlaces
from strongroom.console.own_transport import OwnTransport
from strongroom.console.record_pages import PageOf
from strongroom.console.server_clocks import ServerClocks
from strongroom.coordination import Client, connect
from strongroom.servers.console.api.coordination import Coordination
from strongroom.servers.service_listeners import contexts
from strongroom.testing import InProcessServer

T = TypeVar("T")
ACCOUNT = "devstoreaccount1"
EVERYTHING = Wanted(None, PageOf())


class World:
    """A running server and its view."""

    def __init__(self, server: InProcessServer, *stores: OtherStorePanel) -> None:
        app, clock = server._app, SystemClock()
        context = contexts(app.services, app.accounts, clock)[Service.BLOB]
        self.server = server
        self.wall_ticks = clock.wall_ticks
        transport = OwnTransport(context, server.loop)
        waits = HeldWaits(app.services.waiting, context, server.loop.time, clock.wall_ticks)
        places = OwnPlaces(transport, False, ServerClocks(clock.wall_ticks))
        self.view = CoordinationView(places, waits, app.accounts, stores)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.server.loop).result(30)

    def client(self, container: str = "locks", label: str = "") -> Client:
        endpoint = quote(f"{self.server.url}/{ACCOUNT}", safe="")
        return connect(f"azure://{ACCOUNT}/{container}?endpoint={endpoint}", label=label)

    def access(
        self, claim: SharedKeyClaim | BearerClaim | None = None, is_operator: bool = True
    ) -> Access:
        return Access(claim or SharedKeyClaim(ACCOUNT), is_operator, "ann", self.wall_ticks)

    def seen(self, access: Access | None = None, wanted: Wanted = EVERYTHING) -> Coordination:
        return self.run(self.view.containers(access or self.access(), wanted))
