"""The engine on a full disk: the log is overwritten, and the reserve is used and refilled.

Lives here: when this happens, and for which item of a group. Must not live here: how much of the
reserve a purpose may use (reserve.py), groups (group_commit.py).
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable
from typing import Final, Protocol

import apsw

from strongroom.engines.embedded.commit.serial_point import QueuedWork
from strongroom.engines.embedded.records.checksummed_pages import checkpoint
from strongroom.engines.embedded.records.sqlite import Writer
from strongroom.engines.embedded.space.reserve import Reserve, is_full
from strongroom.values import Purpose

# The interval of checks for free space, and the shortest interval of checkpoints that let the log
# be overwritten.
RESERVE_RETRY_S: Final = 1.0

_log = logging.getLogger(__name__)


class BetweenGroups(Protocol):
    """The type of Committer.between_groups."""

    def __call__(self, work: Callable[[], object], first: bool = False) -> asyncio.Future[None]: ...


class FullDisk:
    """Makes space for the commits of one store, and restores the reserve. Used on the event loop;
    its work runs between groups.

    Arguments:
        on_broken: called with an I/O error.
    """

    def __init__(
        self,
        writer: Writer,
        reserve: Reserve,
        between_groups: BetweenGroups,
        on_broken: Callable[[Exception], None],
    ) -> None:
        self._writer = writer
        self._reserve = reserve
        self._between_groups = between_groups
        self._on_broken = on_broken
        self._loop = asyncio.get_running_loop()
        self._checkpointed_at = float("-inf")
        self._refilling: asyncio.TimerHandle | None = None
        self._stopped = False
        self._await_space()

    @property
    def is_low(self) -> bool:
        """Whether part of the reserve is in use, or could not be allocated."""
        return not self._reserve.is_whole

    def check_copy(self, size_bytes: int) -> asyncio.Future[None]:
        """Raises Full unless the copy fits, with the reserve if necessary."""
        return self._use(lambda: self._reserve.check_copy(size_bytes))

    def make_space_for_copy(self, size_bytes: int) -> asyncio.Future[None]:
        """Release some of the reserve for a copy that found no space for its next `size_bytes`.
        Raises Full: there is none left for it."""
        return self._use(lambda: self._reserve.release_for_copy(size_bytes))

    def make_space_for(self, item: QueuedWork, purpose: Purpose) -> bool:
        """Make space for an item that did not fit, before any other work between groups. Return
        False if there is nothing left to try."""
        now, may_release = self._loop.time(), self._reserve.may_release(purpose)
        is_due = may_release or now - self._checkpointed_at >= RESERVE_RETRY_S
        if is_due and not item.is_second_try:
            item.is_second_try = True
            self._checkpointed_at = now
            self._use(functools.partial(self._checkpoint, purpose), first=True)
            return True
        if may_release:
            self._use(functools.partial(self._reserve.release_slice, purpose), first=True)
        return may_release

    def stop(self) -> None:
        """No more checks for free space. Idempotent."""
        self._stopped = True
        if self._refilling is not None:
            self._refilling.cancel()

    def _checkpoint(self, purpose: Purpose) -> None:
        """Checkpoint the log, so that it can be overwritten. The database may have to grow for
        that, which may take some of the reserve."""
        connection = self._writer.connection
        try:
            self._reserve.run_with_reserve(lambda: checkpoint(connection, truncate=False), purpose)
        except apsw.Error as error:
            if not (is_full(error) or isinstance(error, apsw.CantOpenError)):
                raise

    def _use(self, work: Callable[[], object], first: bool = False) -> asyncio.Future[None]:
        """Run work that may use the reserve between groups. Afterwards, check for free space until
        the reserve is whole."""
        future = self._between_groups(work, first)
        future.add_done_callback(self._used)
        return future

    def _used(self, done: asyncio.Future[None]) -> None:
        error = None if done.cancelled() else done.exception()
        if isinstance(error, (apsw.Error, OSError)):
            self._on_broken(error)
        self._await_space()

    def _await_space(self) -> None:
        """Try to refill the reserve after RESERVE_RETRY_S."""
        if self.is_low and self._refilling is None and not self._stopped:
            self._refilling = self._loop.call_later(RESERVE_RETRY_S, self._try_refill)

    def _try_refill(self) -> None:
        self._refilling = None
        self._use(self._refill)

    def _refill(self) -> None:
        try:
            self._reserve.refill(self._writer.spare_bytes())
        except OSError as error:
            _log.warning("the ballast, the reserve for a full disk, cannot be refilled: %s", error)
