"""Durable handles without a connection, and CREATEs that may be repeated, of this process.

Lives here: held state and its bounds. Must not live here: rules (semantics/file/durability.py), the
end of a handle (handles/closing.py). Source: [MS-SMB2] sections 3.3.1.10 and 3.3.2.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final, NamedTuple

from strongroom.services.file.opens.open_handle import Handle
from strongroom.services.file.opens.open_node import OpenNode

DISCONNECTED_MAX: Final = 8192
"""Of all accounts together."""
DISCONNECTED_PER_ACCOUNT_MAX: Final = 2048

CreateKey = tuple[bytes, bytes]
"""The ClientGuid and CreateGuid of a CREATE."""


def _ignore(handle: Handle) -> None:
    """Take the handle of a CREATE that has no CreateGuid."""


_NOT_REGISTERED: Final = nullcontext(_ignore)


class _Waiting(NamedTuple):
    handle: Handle
    node: OpenNode
    timer: asyncio.Task[None]
    close: Callable[[], asyncio.Task[None]]


class DurableHandles:
    """Handles that wait for their clients to reconnect, and the CREATEs of version 2 that may be
    repeated."""

    def __init__(self) -> None:
        self._waiting: dict[int, _Waiting] = {}
        self._per_account: Counter[str] = Counter()
        self._creates: dict[CreateKey, Handle | None] = {}

    @property
    def waiting_count(self) -> int:
        return len(self._waiting)

    # Handles that wait for their clients.

    def has_room(self, account: str) -> bool:
        """Whether one more handle of an account may wait."""
        is_full = self._per_account[account] >= DISCONNECTED_PER_ACCOUNT_MAX
        return not is_full and len(self._waiting) < DISCONNECTED_MAX

    def wait(
        self,
        handle: Handle,
        node: OpenNode,
        timer: asyncio.Task[None],
        close: Callable[[], asyncio.Task[None]],
    ) -> None:
        """Let a handle that has lost its client wait for it.

        Arguments:
            node: its file, which stays open as long as the handle waits.
            timer: ends the wait; it is cancelled if the wait ends earlier.
            close: closes the handle.
        """
        handle.lose_client()
        self._waiting[handle.id] = _Waiting(handle, node, timer, close)
        self._per_account[handle.access.account] += 1

    def end_wait(self, handle: Handle) -> None:
        """The handle has its client again, or is being closed. Idempotent."""
        gone = self._waiting.pop(handle.id, None)
        if gone is None:
            return
        self._per_account[handle.access.account] -= 1
        if not self._per_account[handle.access.account]:
            del self._per_account[handle.access.account]
        if gone.timer is not asyncio.current_task():
            gone.timer.cancel()

    def close_disconnected(self, handle: Handle) -> None:
        """Close a disconnected handle, since its file is needed. Idempotent. A handle that is being
        closed already is left alone: the table changes when that is over."""
        waiting = self._waiting.get(handle.id)
        if waiting is None or handle.is_closed:
            return
        self.end_wait(handle)
        waiting.node.close_by(waiting.close())

    def close_disconnected_in_share(self, generation: int) -> None:
        for waiting in list(self._waiting.values()):
            if waiting.handle.access.generation == generation:
                self.close_disconnected(waiting.handle)

    # Repeated CREATEs.

    def is_known(self, key: CreateKey) -> bool:
        """Whether a CREATE with this CreateGuid is under way, or can still be repeated."""
        return key in self._creates

    def created(self, key: CreateKey) -> Handle | None:
        """None = it is still under way."""
        return self._creates[key]

    def creating(self, key: CreateKey | None) -> AbstractContextManager[Callable[[Handle], None]]:
        """Register a CREATE while the block runs. The block passes its handle to the yielded
        function. `key` None: the CREATE has no CreateGuid."""
        return _NOT_REGISTERED if key is None else self._creating(key)

    @contextmanager
    def _creating(self, key: CreateKey) -> Iterator[Callable[[Handle], None]]:
        self._creates[key] = None

        def made(handle: Handle) -> None:
            self._creates[key] = handle

        try:
            yield made
        finally:
            if self._creates.get(key) is None:
                self._creates.pop(key, None)

    def forget_create(self, handle: Handle) -> None:
        """Its client knows the handle, or it is closed: it cannot be repeated any more.
        Idempotent."""
        state = handle.durable
        if state is None or state.create_guid is None:
            return
        key = (state.client_guid, state.create_guid)
        if self._creates.get(key) is handle:
            del self._creates[key]
