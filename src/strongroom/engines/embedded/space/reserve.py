"""The reserve: which updates may use the space kept back for a full disk, and when it is refilled.

Lives here: how much of the ballast each purpose may use, and what counts as a full disk. Must not
live here: the ballast's file (ballast.py), which update has which purpose (`Purpose` in values.py),
groups (group_commit.py).

    GROWTH    is served while the whole reserve is available, and may use none of it
    UPKEEP    is served while at least half of the reserve is left, and may use the other half
    FREEING   is always tried, and may use all of it

The copies of compaction free space too. They may use all but the last slice: that is for the commit
which makes a copy count.

An update that makes no record larger is never refused because the reserve is low. It takes space in
the log only, and the log is overwritten again and again.

Free pages inside the database count as reserve too, since a commit that fits into them takes no
space from the disk. So a store accepts new records after deletes, although the file of its database
never becomes smaller.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, TypeVar

import apsw

from strongroom.engines.base import Full
from strongroom.engines.embedded.disk.files import is_no_space
from strongroom.engines.embedded.records import checksummed_pages
from strongroom.engines.embedded.space.ballast import Ballast
from strongroom.values import Purpose

T = TypeVar("T")

_log = logging.getLogger(__name__)

# The number of slices in which the ballast is released.
_SLICE_COUNT: Final = 16


def is_full(error: Exception) -> bool:
    """Return whether `error`, of SQLite or of the system, says that the disk is full."""
    if isinstance(error, OSError):
        return is_no_space(error)
    return checksummed_pages.is_full(error)


class Reserve:
    """The reserve of one store. Used by one thread at a time.

    Raises: OSError.
    """

    def __init__(self, ballast: Ballast) -> None:
        self._ballast = ballast
        self._held_bytes = ballast.held_bytes()
        self._spare_bytes = 0
        self._has_warned = False
        full_bytes = ballast.full_bytes
        self._slice_bytes = max(1, full_bytes // _SLICE_COUNT)
        self._floors = {
            Purpose.GROWTH: full_bytes,
            Purpose.UPKEEP: full_bytes // 2,
            Purpose.FREEING: 0,
        }

    @property
    def is_whole(self) -> bool:
        return self._held_bytes >= self._ballast.full_bytes

    @property
    def held_bytes(self) -> int:
        return self._held_bytes

    @property
    def whole_bytes(self) -> int:
        return self._ballast.full_bytes

    def admits(self, purpose: Purpose) -> bool:
        """For updates that make records larger."""
        return self._held_bytes + self._spare_bytes >= self._floors[purpose]

    def may_release(self, purpose: Purpose) -> bool:
        """Return whether part of the ballast is left that this purpose may use."""
        return self._held_bytes > self._floors[purpose]

    def release_slice(self, purpose: Purpose) -> None:
        """If this purpose may use one more. Raises OSError."""
        if self.may_release(purpose):
            self._cut(max(self._floors[purpose], self._held_bytes - self._slice_bytes))

    def check_copy(self, size_bytes: int) -> None:
        """Check that a copy of `size_bytes` fits, if it may use the reserve. Nothing is released.

        Raises: Full, OSError.
        """
        for_copies_bytes = max(0, self._held_bytes - self._slice_bytes)
        if size_bytes > self._ballast.free_bytes() + for_copies_bytes:
            raise Full(Purpose.FREEING)

    def release_for_copy(self, size_bytes: int) -> None:
        """Release some of the ballast for a copy that found no space: a slice, or as much as the
        copy needs if that is less. Raises: Full (only the last slice is left), OSError."""
        if self._held_bytes <= self._slice_bytes:
            raise Full(Purpose.FREEING)
        step_bytes = min(size_bytes, self._slice_bytes)
        self._cut(max(self._slice_bytes, self._held_bytes - step_bytes))

    def run_with_reserve(self, work: Callable[[], T], purpose: Purpose) -> T:
        """Run `work` and return its result. While the disk is too full for it, release a slice of
        the ballast and retry. Raises the error of `work` when `purpose` may release no more."""
        while True:
            try:
                return work()
            except (apsw.Error, OSError) as error:
                if not is_full(error) or not self.may_release(purpose):
                    raise
            self.release_slice(purpose)

    def refill(self, spare_bytes: int) -> None:
        """Refill the ballast as far as there is space: to its whole length, or to half of it.

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
        if self._has_warned and self.is_whole:
            self._has_warned = False
            _log.warning("there is space on the disk again: the reserve is whole, all writes work")

    def _cut(self, length: int) -> None:
        if not self._has_warned:
            self._has_warned = True
            _log.warning(
                "the disk is full: new data is refused (507); deletes, and requests that keep data "
                "alive, use the space kept back; free some space in the file system"
            )
        try:
            self._ballast.cut(length)
        except FileNotFoundError:  # another process has removed it, for its space
            length = 0
        except OSError as error:
            if not is_full(error):
                raise
            # A copy-on-write file system needs free space even to truncate a file.
            _log.warning("the ballast, the space kept back, cannot be released: %s", error)
            length = 0
        self._held_bytes = length
