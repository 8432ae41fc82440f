"""The coordination view of a running server, put together.

Lives here: which object gets which. Must not live here: when that happens (serving.py). This module
loads the toolkit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from strongroom.app import App
from strongroom.auth.request import Service
from strongroom.console.coordination_view import CoordinationView
from strongroom.console.endpoints import CoordinationPart
from strongroom.console.held_waits import HeldWaits
from strongroom.console.other_stores import OtherStorePanel
from strongroom.console.own_places import OwnPlaces
from strongroom.console.own_transport import OwnTransport
from strongroom.console.server_clocks import ServerClocks
from strongroom.console.store_sources import StoreSource
from strongroom.servers.service_listeners import contexts

_LOOK_S: Final = 1.0


class OpenView:
    """The view, which looks every second who waits. On the event loop.

    Attributes:
        part: answers the requests about it.

    Arguments:
        sources: the further stores.
        may_act: whether the console may open gates and break locks there.
    """

    def __init__(self, app: App, sources: Sequence[StoreSource], may_act: bool) -> None:
        # Wall time, as in the tail of requests. A test clock moves store time only: that of leases.
        loop, clock = asyncio.get_running_loop(), app.services.clock
        panels = tuple(OtherStorePanel(one, may_act) for one in sources)
        context = contexts(app.services, app.accounts, clock)[Service.BLOB]
        waiting = app.services.waiting
        waits = HeldWaits(waiting, context, loop.time, clock.wall_ticks)
        transport, is_durable = OwnTransport(context, loop), app.settings.data is not None
        places = OwnPlaces(transport, is_durable, ServerClocks(clock.wall_ticks))
        self._view = CoordinationView(places, waits, app.accounts, panels)
        self.part = CoordinationPart(self._view, clock.wall_ticks, lambda: waiting.is_stopping)
        self._looking = asyncio.create_task(self._look_for_ever())

    async def _look_for_ever(self) -> None:
        """Look who waits every second, so that it is known since when when somebody asks."""
        while True:
            self._view.look()
            await asyncio.sleep(_LOOK_S)

    def close(self) -> None:
        """End it."""
        self._looking.cancel()
        self._view.close()
