"""The reset of a server that runs in this process, without a request.

Lives here: calling the reset on the server's own loop. Must not live here: what it does
(services/reset.py).
"""

from __future__ import annotations

import asyncio

from strongroom.app import App
from strongroom.auth.request import Service
from strongroom.services.reset import ResetScope, reset


def reset_app(app: App, loop: asyncio.AbstractEventLoop, timeout_s: float) -> None:
    """Remove everything from a server's store.

    Arguments:
        loop: the server's, which runs on another thread.

    Raises: ResetRefused, the engine's errors, TimeoutError.
    """
    accounts = tuple(one.name for one in app.accounts.all())
    scope = ResetScope(accounts, tuple(Service), accounts, app.settings.data is not None)
    asyncio.run_coroutine_threadsafe(reset(app.services, scope), loop).result(timeout_s)
