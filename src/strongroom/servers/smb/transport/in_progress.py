"""The requests of one SMB connection that are in progress: their tasks and their memory.

Lives here: how they run and end. Must not live here: the content of requests (messages/), what the
connection does when one fails (life.py). Source: smb.md 5.1.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final, Protocol

from strongroom.servers.smb.refusals import CloseConnection
from strongroom.servers.smb.transport.life import SmbEvent

_log: Final = logging.getLogger("strongroom.smb")


class SharedMemory(Protocol):
    """The memory of the requests of all connections (listener.py)."""

    @property
    def is_full(self) -> bool: ...

    def add_busy_bytes(self, delta_bytes: int) -> None: ...


class RequestsInProgress:
    """The requests of one connection that are in progress.

    Arguments:
        memory: counts the bytes of all connections.
        busy_bytes_max: more bytes of this connection are too many.
        on: applies an event to the connection, with a reason for the log.
        check_memory: is called when memory was taken or freed, or a request has ended.
    """

    def __init__(
        self,
        memory: SharedMemory,
        busy_bytes_max: int,
        on: Callable[[SmbEvent, str], None],
        check_memory: Callable[[], None],
    ) -> None:
        self._memory = memory
        self._busy_bytes_max = busy_bytes_max
        self._on = on
        self._check_memory = check_memory
        self._tasks: set[asyncio.Task[None]] = set()
        self._busy_bytes = 0

    def __len__(self) -> int:
        return len(self._tasks)

    @property
    def is_none(self) -> bool:
        """Whether there is no request, nor memory of one."""
        return not self._tasks and not self._busy_bytes

    @property
    def is_memory_full(self) -> bool:
        """Whether they have taken their memory: of the connection, or of all of them."""
        if self._busy_bytes > self._busy_bytes_max:
            return True
        return self._busy_bytes > 0 and self._memory.is_full

    def add_busy_bytes(self, delta_bytes: int) -> None:
        if delta_bytes:
            self._busy_bytes += delta_bytes
            self._memory.add_busy_bytes(delta_bytes)
            self._check_memory()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work in a task of its own. A CloseConnection that it raises ends the connection."""
        self._tasks.add(asyncio.get_running_loop().create_task(self._run(work)))

    async def end(self, timeout_s: float) -> None:
        """Wait until all have ended. Those that are left after `timeout_s` are cancelled."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=timeout_s)
        left = list(self._tasks)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def free_memory(self) -> None:
        """Give back what is still counted, since the connection is over."""
        freed, self._busy_bytes = self._busy_bytes, 0
        self._memory.add_busy_bytes(-freed)

    async def _run(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work to its end in this task. A callback at the task's end would take a further turn
        of the loop."""
        try:
            await work
        except CloseConnection as error:
            self._on(SmbEvent.RULE_BROKEN, str(error))
        except Exception:
            _log.exception("a chain of SMB messages failed")
            self._on(SmbEvent.ABORT, "")
        finally:
            task = asyncio.current_task()
            assert task is not None, "it runs in a task of its own"
            self._tasks.discard(task)
            if not self._tasks:
                self._on(SmbEvent.ALL_ANSWERED, "")
            self._check_memory()
