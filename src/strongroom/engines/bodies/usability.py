"""Whether a place of bodies can be used at present, and what an error of it means.

Lives here: `Usability`, which is what one gateway knows of its place. Must not live here: the calls
(threaded.py).
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Final

from strongroom.engines.base import Busy, EngineError, Full
from strongroom.engines.bodies.base import BodiesAway, BodiesBroken
from strongroom.engines.bodies.blocking import NotDurable

_NO_SPACE: Final = (errno.ENOSPC, errno.EDQUOT)
_TOO_MANY: Final = (errno.EMFILE, errno.ENFILE)


class Usability:
    """What is known of a place.

    Arguments:
        shown: the place's URL.
        look_soon: is called after an error that may mean that the place is away.

    Attributes:
        away: as last seen; None = it can be used.
        broken: set once a sync has failed.
        told_broken: is called when it is set.
    """

    def __init__(self, shown: str, look_soon: Callable[[], None]) -> None:
        self._shown = shown
        self._look_soon = look_soon
        self.away: BodiesAway | None = None
        self.broken: BodiesBroken | None = None
        self.told_broken: Callable[[EngineError], None] | None = None

    def check(self) -> None:
        """Raises: BodiesBroken, BodiesAway."""
        if self.broken is not None:
            raise self.broken
        if self.away is not None:
            raise self.away

    def error_of(self, error: OSError | TimeoutError) -> EngineError:
        """Return what callers are told of an error of a call."""
        number = None if isinstance(error, TimeoutError) else error.errno
        if number in _NO_SPACE:
            return Full()
        if number in _TOO_MANY:
            return Busy(f"no file can be opened at present: {error}")
        if isinstance(error, NotDurable):
            return self._broke(error)
        self._look_soon()
        return self.failure(error)

    def failure(self, error: OSError | TimeoutError) -> BodiesAway:
        """Return an error as one of a place that is away."""
        if isinstance(error, TimeoutError) and not error.errno:
            return BodiesAway(f"{self._shown} does not answer")
        text = f"{self._shown} cannot be used: {error.strerror}"
        if isinstance(error, PermissionError):
            text += ". Give the user of the gateway the right to read and write there"
        return BodiesAway(text)

    def _broke(self, error: OSError) -> BodiesBroken:
        """Take note that a sync failed: what of the written files is durable is not known.
        One failure may come here twice."""
        if self.broken is None:
            text = f"a sync in {self._shown} has failed ({error.strerror}), so this gateway ends"
            self.broken = BodiesBroken(text)
            if self.told_broken is not None:
                self.told_broken(self.broken)
        return self.broken
