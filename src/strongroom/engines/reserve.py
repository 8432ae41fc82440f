"""Who may use the space that is kept back for a full disk, and when it is kept back again.

Lives here: how much of the ballast each purpose may use, and what counts as a full disk. Must not
live here: the ballast's file (ballast.py), which update has which purpose (`Purpose` in values.py),
groups (group_commit.py).

    GROWTH    works while the whole reserve is there, and uses none of it
    UPKEEP    works while half of the reserve is there, and uses the other half
    FREEING   always works, and uses all of it

What makes nothing larger is never refused because of what is left of the reserve: it takes space in
the log alone, which is written over again and again.

Free pages inside the database count as reserve too: a commit that fits into them takes no space
from the disk either. So a store whose records have been
deleted takes records again, although its database never becomes a smaller file.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, TypeVar

import apsw

from strongroom.engines.ballast import Ballast
from strongroom.engines.base import Full
from strongroom.engines.files import is_no_space
from strongroom.values import Purpose

T = TypeVar("T")

_log = logging.getLogger(__name__)

# The ballast is given up in so many slices.
_SLICES: Final = 16


def is_full(error: Exception) -> bool:
    """Whether `error`, of SQLite or of the system, says that the disk is full."""
    if isinstance(error, OSError):
        return is_no_space(error)
    # When SQLite cannot make its shared-memory file long enough, it is an I/O error.
    if getattr(error, "extendedresult", None) == apsw.SQLITE_IOERR_SHMSIZE:
        return True
    return isinstance(error, apsw.FullError)


class Reserve:
    """The reserve of one store. Used by one thread at a time.

    Raises: OSError.
    """

    def __init__(self, ballast: Ballast) -> None:
        self._ballast = ballast
        self._held_bytes = ballast.held_bytes()
        self._spare_bytes = 0
        self._told = False
        full_bytes = ballast.full_bytes
        self._floors = {
            Purpose.GROWTH: full_bytes,
            Purpose.UPKEEP: full_bytes // 2,
            Purpose.FREEING: 0,
        }

    @property
    def is_whole(self) -> bool:
        """Whether all of the ballast is there."""
        return self._held_bytes >= self._ballast.full_bytes

    def admits(self, purpose: Purpose) -> bool:
        """Whether updates of this purpose that make something larger are to be tried at all."""
        return self._held_bytes + self._spare_bytes >= self._floors[purpose]

    def may_give(self, purpose: Purpose) -> bool:
        """Whether part of the ballast is left that this purpose may use."""
        return self._held_bytes > self._floors[purpose]

    def give(self, purpose: Purpose) -> None:
        """Give up a slice of the ballast, if any is left that this purpose may use. Raises
        OSError."""
        if self.may_give(purpose):
            slice_bytes = max(1, self._ballast.full_bytes // _SLICES)
            self._cut(max(self._floors[purpose], self._held_bytes - slice_bytes))

    def give_for(self, size_bytes: int) -> None:
        """Give up as much as it takes to have `size_bytes` free. Raises Full when there is not so
        much, and gives up nothing then; OSError."""
        missing_bytes = size_bytes - self._ballast.free_bytes()
        if missing_bytes > self._held_bytes:
            raise Full(Purpose.FREEING)
        if missing_bytes > 0:
            self._cut(self._held_bytes - missing_bytes)

    def spend(self, work: Callable[[], T], purpose: Purpose) -> T:
        """Do `work`, and again with one slice of the ballast less each time that the disk is too
        full for it. Raises what `work` raises when nothing is left that `purpose` may use."""
        while True:
            try:
                return work()
            except (apsw.Error, OSError) as error:
                if not is_full(error) or not self.may_give(purpose):
                    raise
            self.give(purpose)

    def refill(self, spare_bytes: int) -> None:
        """Keep back again as much as there is space for: all, or half.

        Arguments:
            spare_bytes: how much more fits into the database before its file grows.

        Raises: OSError.
        """
        self._spare_bytes = spare_bytes
        for length in (self._floors[Purpose.GROWTH], self._floors[Purpose.UPKEEP]):
            if self._held_bytes >= length:
                return
            if self._ballast.fill(length):
                self._held_bytes = length
                break
        if self._told and self.is_whole:
            self._told = False
            _log.warning("there is space on the disk again: all of the reserve is kept back")

    def _cut(self, length: int) -> None:
        if not self._told:
            self._told = True
            _log.warning(
                "the disk is full: what deletes, or keeps alive what is stored, goes on in the "
                "space kept back for it; free some space in the file system"
            )
        try:
            self._ballast.cut(length)
        except OSError as error:
            if not is_full(error):
                raise
            # A file system that copies on write needs space to give up some.
            _log.warning("the space kept back cannot be given up: %s", error)
            length = 0
        self._held_bytes = length
