"""What an upgrade says: how much space it needs, how far it is, how long it took.

Lives here: the sentences, and the report that goes to the log. Must not live here: the steps
(steps.py).
"""

from __future__ import annotations

import logging
from typing import Protocol

from strongroom.engines.embedded.disk.directory import FORMAT_VERSION

_log = logging.getLogger(__name__)


class UpgradeReport(Protocol):
    """What an upgrade says while it works."""

    def begins(self, path: str, needed_bytes: int, free_bytes: int) -> None:
        """The upgrade needs this much space, and the disk has this much."""
        ...

    def copied(self, done_bytes: int, total_bytes: int) -> None:
        """So much of the records is written."""
        ...

    def ended(self, path: str, duration_s: float) -> None:
        """The directory has the new format."""
        ...


class LoggedUpgrade:
    """Reports to the log, each tenth of the records once."""

    def __init__(self) -> None:
        self._tenths = 0

    def begins(self, path: str, needed_bytes: int, free_bytes: int) -> None:
        _log.warning("%s", begin_text(path, needed_bytes, free_bytes))

    def copied(self, done_bytes: int, total_bytes: int) -> None:
        tenths = 10 * done_bytes // max(1, total_bytes)
        if tenths > self._tenths:
            self._tenths = tenths
            _log.warning("%d %% of the records are written", 10 * tenths)

    def ended(self, path: str, duration_s: float) -> None:
        _log.warning("%s", end_text(path, duration_s))


def begin_text(path: str, needed_bytes: int, free_bytes: int) -> str:
    """Return the sentence with which an upgrade begins."""
    needed, free = mib_text(needed_bytes), mib_text(free_bytes)
    return (
        f"{path} is upgraded to format {FORMAT_VERSION}. That needs {needed} of space; "
        f"{free} are free. Older versions cannot open it afterwards."
    )


def end_text(path: str, duration_s: float) -> str:
    """Return the sentence with which an upgrade ends."""
    return f"{path} has format {FORMAT_VERSION} now; the upgrade took {duration_s:.1f} s."


def mib_text(size_bytes: int) -> str:
    """Return a size in whole MiB, rounded up."""
    return f"{-(-size_bytes // 2**20):,} MiB"
