"""The calls of an engine that an operation waits for, in their order.

Lives here: the double that counts them, and lets something happen between two of them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

READS: Final = ("read", "follow", "read_range", "scan", "now")


class EngineCalls:
    """Wraps the calls of an engine.

    Arguments:
        store: the engine; its methods are replaced.
        at: after which call `what` happens, from 1 on; 0 = never.

    Attributes:
        names: the calls so far.
    """

    def __init__(
        self, store: Any, at: int = 0, what: Callable[[], Awaitable[object]] | None = None
    ) -> None:
        self.names: list[str] = []
        self._at, self._what = at, what
        for name in READS:
            setattr(store, name, self._wrapped(name, getattr(store, name)))
        update = store.update

        def counted(*given: Any) -> Any:
            self.names.append("update")
            return update(*given)

        store.update = counted

    def _wrapped(self, name: str, call: Callable[..., Awaitable[Any]]) -> Any:
        async def counted(*given: Any, **more: Any) -> Any:
            found = await call(*given, **more)
            self.names.append(name)
            if len(self.names) == self._at and self._what is not None:
                what, self._what = self._what, None
                await what()
            return found

        return counted
