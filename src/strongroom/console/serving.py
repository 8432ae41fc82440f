"""Adds the coordination view to the console of a running server.

Lives here: when the view is opened: when it is first asked for, or some seconds after the server's
start. Loading the toolkit takes as long as a fifth of the whole start. Must not live here: its
parts (opening.py), the console's port (servers/console/), flags.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from strongroom.app import App
from strongroom.console.store_sources import StoreSource, store_sources
from strongroom.servers.console.api.coordination import PAYLOAD_BYTES_MAX
from strongroom.servers.console.api.parts import MountedRequest

if TYPE_CHECKING:
    from strongroom.console.opening import OpenView

NAME: Final = "coordination"
"""The first segment of the paths of this part of the read API."""
_LOAD_PAUSE_S: Final = 2.0


def open_coordination(app: App) -> Callable[[], None]:
    """Add the view to the console of a server; return what ends it again. On the event loop.

    Raises: ConfigError: a further store is named in a way that cannot be read.
    """
    flags = app.settings.console
    assert app.console is not None and flags is not None
    sources = store_sources(flags.coordination_stores)
    part = _LatePart(app, sources, flags.coordination_acts)
    app.console.api.mounts[NAME] = part
    return part.close


class _LatePart:
    """Answers as the view does, and opens it before (see MountedPart)."""

    body_bytes_max = PAYLOAD_BYTES_MAX

    def __init__(self, app: App, sources: Sequence[StoreSource], may_act: bool) -> None:
        self._app, self._sources, self._may_act = app, sources, may_act
        self._opening: asyncio.Task[OpenView] | None = None
        self._soon = asyncio.create_task(self._open_soon())

    async def answer(self, asked: MountedRequest) -> msgspec.Struct:
        """See MountedPart."""
        view = await self._opened()
        return await view.part.answer(asked)

    def close(self) -> None:
        """End the view, if it was opened."""
        self._soon.cancel()
        opening = self._opening
        if opening is None or opening.cancel() or opening.cancelled():
            return
        if opening.exception() is None:
            opening.result().close()

    async def _open_soon(self) -> None:
        await asyncio.sleep(_LOAD_PAUSE_S)
        await self._opened()

    async def _opened(self) -> OpenView:
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())
        # Whoever leaves must not end what others wait for.
        return await asyncio.shield(self._opening)

    async def _open(self) -> OpenView:
        # On a thread: requests are answered meanwhile.
        loop, name = asyncio.get_running_loop(), "strongroom.console.opening"
        await loop.run_in_executor(None, importlib.import_module, name)
        from strongroom.console.opening import OpenView  # it is loaded by now

        return OpenView(self._app, self._sources, self._may_act)
