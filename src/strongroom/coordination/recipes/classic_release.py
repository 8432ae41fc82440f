"""The article's two ways of releasing paused nodes, each with its weakness; `gate` joins them.

`PollingRelease` is late by up to one interval; `ListeningRelease` forgets: who begins to listen
after the message waits for ever. The flag is what a person can see and set with any tool: a blob
with any content. Source: J. Twist, "Synchronizing Multiple Nodes in Windows Azure" (MSDN Magazine,
November 2010), "Releasing the hounds". Must not live here: flag and message together (gate.py).
"""

from __future__ import annotations

import threading
from typing import Final, Protocol

from strongroom.coordination.context import RecipeContext
from strongroom.coordination.drivers_sync import SyncDriver
from strongroom.coordination.effects import Applied, Sleep, Steps, Unknown, cas, delete, get
from strongroom.coordination.errors import CoordTimeout, OutcomeUnknown, StoreUnavailable
from strongroom.coordination.hints import Multicast
from strongroom.coordination.names import key_of
from strongroom.coordination.recipes.waiting import Pace

KIND: Final = "release"
SET: Final = b"Set"
_ATTEMPT_S: Final = 1.5
_TRIES: Final = 25


class Participant(Protocol):
    """A `Client`."""

    @property
    def driver(self) -> SyncDriver:
        """The driver that runs its recipes."""
        ...


class PollingRelease:
    """A flag in a store that every paused node looks at now and then.

    Any content means set, and a definite absence means not set. Every other answer is an error that
    is raised, also by `wait`. So a node that cannot see the flag does not guess.

    Arguments:
        client: where the flag lies.
        name: of the flag.
        interval_s: between two looks.
    """

    def __init__(self, client: Participant, name: str, interval_s: float = 2.5) -> None:
        if interval_s <= 0:
            raise ValueError(f"an interval is longer than {interval_s:g} s")
        self.name, self.interval_s = name, interval_s
        self._driver, self._key = client.driver, key_of(KIND, name)

    def is_set(self) -> bool:
        """Look once.

        Raises:
            StoreUnavailable, StoreRefused: nobody knows.
        """
        return self._driver.run(_is_set_steps(self._key))

    def set(self) -> None:
        """Release everybody, those who come later too; of no effect if it is set.

        Raises:
            StoreUnavailable, StoreRefused: it is certainly not set by this call.
            OutcomeUnknown: it may be.
        """
        self._driver.run(_change_steps(self._driver.context, self._key, True))

    def clear(self) -> None:
        """Delete the flag, if it is there: who comes from now on is paused. Raises: as `set`."""
        self._driver.run(_change_steps(self._driver.context, self._key, False))

    def wait(self, timeout: float | None = None) -> None:
        """Return when it is set.

        Arguments:
            timeout: at most so many seconds; None: for ever.

        Raises:
            CoordTimeout: it was not.
            StoreUnavailable, StoreRefused: nobody knows.
        """
        clock = self._driver.context.clock
        self._driver.run(self._wait_steps(clock.monotonic_s(), timeout))

    def _wait_steps(self, began_s: float, timeout_s: float | None) -> Steps[None]:
        clock = self._driver.context.clock
        while not (yield from _is_set_steps(self._key)):
            passed_s = clock.monotonic_s() - began_s
            if timeout_s is None:
                yield Sleep(self.interval_s)
            elif passed_s < timeout_s:
                yield Sleep(min(self.interval_s, timeout_s - passed_s))
            else:
                raise CoordTimeout(self.name, passed_s)


def _is_set_steps(key: str) -> Steps[bool]:
    return (yield from get(key, _ATTEMPT_S)) is not None


def _change_steps(context: RecipeContext, key: str, to_set: bool) -> Steps[None]:
    pace, is_unsure = Pace(context), False
    try:
        for _ in range(_TRIES):
            entry = yield from get(key, _ATTEMPT_S)
            if (entry is not None) is to_set:
                return
            if entry is None:
                outcome = yield from cas(key, None, SET, _ATTEMPT_S)
            else:
                outcome = yield from delete(key, entry.version, _ATTEMPT_S)
            if isinstance(outcome, Applied):
                return
            is_unsure = is_unsure or isinstance(outcome, Unknown)
            yield Sleep(pace.trouble_s())
    except StoreUnavailable as error:
        if is_unsure:
            raise OutcomeUnknown(f"{key!r}: {error}") from error
        raise
    raise OutcomeUnknown(f"{key!r} kept changing, or nobody said whether it was written")


class ListeningRelease:
    """A message on a bus that every paused node listens for; nothing is stored anywhere.

    A node that begins to listen after the message stays paused, and so does one whose message was
    lost. That is the exercise that the article leaves to its reader: `client.gate(name, hints)`.

    Arguments:
        hints: from `multicast(url)`: the shared secret is in its URL.
        name: of what is released.

    Attributes:
        listening: set while `wait` is known to listen.
    """

    def __init__(self, hints: Multicast, name: str) -> None:
        self.name, self.listening = name, threading.Event()
        self._hints, self._topic = hints, key_of(KIND, name)

    def release(self) -> None:
        """Release all who listen now. A bus that is away is reported to the log."""
        self._hints.publish(self._topic)

    def wait(self, timeout: float | None = None) -> None:
        """Return at the first message that comes from now on.

        Arguments:
            timeout: at most so many seconds; None: for ever.

        Raises:
            CoordTimeout: none came.
        """
        heard = threading.Event()
        stop = self._hints.listen(self._topic, heard.set, self.listening.set)
        try:
            if not heard.wait(timeout):
                raise CoordTimeout(self.name, timeout or 0.0)
        finally:
            stop()
            self.listening.clear()
