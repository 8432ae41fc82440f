"""Adds the coordination view to the console of a running server.

Lives here: which object gets which, and the further stores that the settings name. Must not live
here: the console's port and its other parts (servers/console/), flags.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Final

from strongroom.app import App
from strongroom.auth.request import Service
from strongroom.clock import SystemClock
from strongroom.config import ConfigError
from strongroom.console.coordination_view import CoordinationView
from strongroom.console.endpoints import CoordinationPart
from strongroom.console.held_waits import HeldWaits
from strongroom.console.other_stores import OtherStorePanel, StoreSource
from strongroom.console.own_places import OwnPlaces
from strongroom.console.own_transport import OwnTransport
from strongroom.servers.service_listeners import contexts

NAME: Final = "coordination"
"""The first segment of the paths of this part of the read API."""
_LOOK_S: Final = 1.0
_STORE: Final = re.compile(r"([A-Za-z0-9_-]{1,40})=([a-z][a-z0-9+]*://\S*)")


def open_coordination(app: App) -> Callable[[], None]:
    """Add the view to the console of a server; return what ends it again. On the event loop.

    Raises: ConfigError: a further store is named in a way that cannot be read.
    """
    settings = app.settings
    assert app.console is not None and settings.console is not None
    loop, clock = asyncio.get_running_loop(), SystemClock()
    sources = [store_source(text) for text in settings.console.coordination_stores]
    if len({one.name for one in sources}) < len(sources):
        raise ConfigError("--coordination-store: two stores have the same name")
    panels = tuple(OtherStorePanel(one, settings.console.coordination_acts) for one in sources)
    context = contexts(app.services, app.accounts, clock)[Service.BLOB]
    waits = HeldWaits(app.services.waiting, context, loop.time, clock.wall_ticks)
    places = OwnPlaces(OwnTransport(context, loop), settings.data is not None)
    view = CoordinationView(places, waits, app.accounts, panels)
    waiting = app.services.waiting
    part = CoordinationPart(view, clock.wall_ticks, lambda: waiting.is_stopping)
    app.console.api.mounts[NAME] = part
    looking = asyncio.create_task(_look_for_ever(view))

    def close() -> None:
        looking.cancel()
        view.close()

    return close


def store_source(text: str) -> StoreSource:
    """Return the store that a text NAME=URL names. Raises: ConfigError, without the URL."""
    found = _STORE.fullmatch(text)
    if found is None:
        raise ConfigError(
            "--coordination-store needs NAME=URL, like jobs=redis://10.0.0.5:6379/0; a name has"
            " letters, digits, hyphens and underscores"
        )
    return StoreSource(found[1], found[2])


async def _look_for_ever(view: CoordinationView) -> None:
    """Look who waits every second, so that it is known since when when somebody asks."""
    while True:
        view.look()
        await asyncio.sleep(_LOOK_S)
