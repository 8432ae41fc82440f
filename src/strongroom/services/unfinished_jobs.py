"""What a sweeper remembers of the jobs that it has begun, and that are not done yet.

Lives here: when a job that failed is tried again, which readers a sweep waits for, and the end of
that. Another gateway may do such a job, so this one looks which are left. Must not live here: the
work (sweeper.py).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from strongroom.services.blob.sweep import WaitingSweep

_RETRY_S: Final = (1.0, 60.0)


class UnfinishedJobs:
    """By the jobs' names; times are the event loop's.

    A pass over all due jobs begins with `begin_pass`, names each one to `see` once it may have
    begun, and ends with `end_pass`.

    Attributes:
        sweeps: those that wait for readers.
    """

    def __init__(self) -> None:
        self.sweeps: dict[bytes, WaitingSweep] = {}
        self._failures: dict[bytes, tuple[int, float]] = {}
        self._seen: set[bytes] = set()

    @property
    def failing(self) -> int:
        """How many have failed and will be tried again."""
        return len(self._failures)

    def may_be_tried(self, name: bytes, now_s: float) -> bool:
        _, not_before = self._failures.get(name, (0, 0.0))
        return now_s >= not_before

    def note_failure(self, name: bytes, now_s: float) -> bool:
        """Return whether it was the first one."""
        count, _ = self._failures.get(name, (0, 0.0))
        first_s, longest_s = _RETRY_S
        self._failures[name] = (count + 1, now_s + min(first_s * 2**count, longest_s))
        return count == 0

    def forget(self, name: bytes) -> None:
        """It is done."""
        self.sweeps.pop(name, None)
        self._failures.pop(name, None)

    def begin_pass(self) -> None:
        self._seen.clear()

    def see(self, name: bytes, running: Collection[bytes]) -> None:
        """It is still there."""
        if name in running or name in self._failures or name in self.sweeps:
            self._seen.add(name)

    def end_pass(self, running: Collection[bytes]) -> None:
        """Forget those that the pass has not found: another gateway has done them."""
        for name in {*self._failures, *self.sweeps}.difference(self._seen, running):
            self.forget(name)
