"""Adds the coordination view to the console of a running server.

Lives here: when the view is opened: when it is first asked for, or some seconds after the server's
start. Loading the toolkit takes as long as a fifth of the whole start. Must not live here: its
parts (opening.py), the console's port (servers/console/), flags.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from strongroom.app import App
from strongroom.console.store_sources import StoreSource, store_sources
from strongroom.servers.console.api.coordination import PAYLOAD_BYTES_MAX
from strongroom.servers.console.api.parts import MountedRequest
from strongroom.servers.console.refusals import ApiRefusal

if TYPE_CHECKING:
    from strongroom.console.opening import OpenView

NAME: Final = "coordination"
"""The first segment of the paths of this part of the read API."""
_LOAD_PAUSE_S: Final = 2.0
_log = logging.getLogger(__name__)


def open_coordination(app: App) -> Callable[[], None]:
    """Add the view to the console of a server; return what ends it again. On the event loop.

    Raises: ConfigError: a further store is named in a way that cannot be read.
    """
    flags = app.settings.console
    assert app.console is not None and flags is not None
    sources = store_sources(flags.coordination_stores)
    part = LatePart(partial(_open_view, app, sources, flags.coordination_acts))
    app.console.api.mounts[NAME] = part
    return part.close


async def _open_view(app: App, sources: Sequence[StoreSource], may_act: bool) -> OpenView:
    # On a thread: requests are answered meanwhile.
    loop, name = asyncio.get_running_loop(), "strongroom.console.opening"
    await loop.run_in_executor(None, importlib.import_module, name)
    from strongroom.console.opening import OpenView  # it is loaded by now

    return OpenView(app, sources, may_act)


class LatePart:
    """Answers as the view does, and opens it before (see MountedPart). On the event loop.

    Arguments:
        open_view: what it raises is what the request gets; the next request tries again.
    """

    body_bytes_max = PAYLOAD_BYTES_MAX

    def __init__(self, open_view: Callable[[], Coroutine[Any, Any, OpenView]]) -> None:
        self._open_view = open_view
        self._opening: asyncio.Task[OpenView] | None = None
        self._is_closed = False
        self._soon = asyncio.create_task(self._open_soon())

    async def answer(self, asked: MountedRequest) -> msgspec.Struct:
        """Raises: ApiRefusal 503 while the server stops."""
        view = await self._opened()
        return await view.part.answer(asked)

    def close(self) -> None:
        """End the view if it was opened, and open it no more."""
        self._is_closed = True
        self._soon.cancel()
        opening, self._opening = self._opening, None
        if opening is None or opening.cancel() or opening.cancelled():
            return
        if opening.exception() is None:
            opening.result().close()

    async def _open_soon(self) -> None:
        await asyncio.sleep(_LOAD_PAUSE_S)
        try:
            await self._opened()
        except Exception:  # a server serves without this view, too
            _log.exception("the console's view of coordination cannot be opened")

    async def _opened(self) -> OpenView:
        if self._is_closed:
            raise _stopping()
        if self._opening is None:
            self._opening = asyncio.create_task(self._open_view())
        opening = self._opening
        try:
            # Whoever leaves must not end what others wait for.
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            if self._is_closed:
                raise _stopping() from None
            raise
        except Exception:
            if self._opening is opening:
                self._opening = None
            raise


def _stopping() -> ApiRefusal:
    return ApiRefusal(503, "ServerStopping", "The server stops. Ask again when it is back.")
