"""The article's two ways to release paused nodes: a polled flag, or a message.

`gate` combines them. `PollingRelease` is late by up to one interval. With `ListeningRelease`, a
node that begins to listen after the message waits for ever. The flag is a record with any content,
for instance a blob. So a person can see and set it with any tool. Source: J. Twist, "Synchronizing
Multiple Nodes in Windows Azure" (MSDN Magazine, November 2010), "Releasing the hounds". Must not
live here: flag and message together (gate.py).
"""

from __future__ import annotations

import threading
from typing import Final, Protocol

from strongroom.coordination.drivers.threads import SyncDriver
from strongroom.coordination.effects import Applied, Sleep, Steps, Unknown, cas, delete, get
from strongroom.coordination.errors import CoordTimeout, OutcomeUnknown, StoreUnavailable
from strongroom.coordination.hints import Multicast
from strongroom.coordination.recipes.waiting import Backoff
from strongroom.coordination.schema.names import key_of
from strongroom.coordination.session.context import RecipeContext

KIND: Final = "release"
SET: Final = b"Set"
_ATTEMPT_S: Final = 1.5
_TRIES: Final = 25


class Participant(Protocol):
    """The part of a `Client` that the article's recipes need."""

    @property
    def driver(self) -> SyncDriver:
        """The driver that runs the client's recipes."""
        ...


class PollingRelease:
    """A flag in a store that every paused node polls.

    Any content means set, and a definite absence means not set. Any other answer raises an error,
    also from `wait`. So a node that cannot read the flag does not guess.

    Arguments:
        client: gives the store.
        name: of the flag.
        interval_s: the time between two reads, in seconds.
    """

    def __init__(self, client: Participant, name: str, interval_s: float = 2.5) -> None:
        if interval_s <= 0:
            raise ValueError(f"an interval is longer than {interval_s:g} s")
        self.name, self.interval_s = name, interval_s
        self._driver, self._key = client.driver, key_of(KIND, name)

    def is_set(self) -> bool:
        """Return whether the flag is set, by one read.

        Raises:
            StoreUnavailable, StoreRefused: the flag could not be read.
        """
        return self._driver.run(_is_set_steps(self._key))

    def set(self) -> None:
        """Set the flag: release all nodes, and those that come later. No effect if it is set.

        Raises:
            StoreUnavailable, StoreRefused: this call has certainly not set the flag.
            OutcomeUnknown: this call may have set the flag.
        """
        self._driver.run(_change_steps(self._driver.context, self._key, True))

    def clear(self) -> None:
        """Delete the flag if it exists; nodes that come later are paused. Raises: as `set`."""
        self._driver.run(_change_steps(self._driver.context, self._key, False))

    def wait(self, timeout: float | None = None) -> None:
        """Return when the flag is set.

        Arguments:
            timeout: at most so many seconds; None: for ever.

        Raises:
            CoordTimeout: the flag was not set in time.
            StoreUnavailable, StoreRefused: the flag could not be read.
        """
        clock = self._driver.context.clock
        self._driver.run(self._wait_steps(clock.monotonic_s(), timeout))

    def _wait_steps(self, began_s: float, timeout_s: float | None) -> Steps[None]:
        clock = self._driver.context.clock
        while not (yield from _is_set_steps(self._key)):
            elapsed_s = clock.monotonic_s() - began_s
            if timeout_s is None:
                yield Sleep(self.interval_s)
            elif elapsed_s < timeout_s:
                yield Sleep(min(self.interval_s, timeout_s - elapsed_s))
            else:
                raise CoordTimeout(self.name, elapsed_s)


def _is_set_steps(key: str) -> Steps[bool]:
    return (yield from get(key, _ATTEMPT_S)) is not None


def _change_steps(context: RecipeContext, key: str, to_set: bool) -> Steps[None]:
    backoff, outcome_unknown = Backoff(context), False
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
            outcome_unknown = outcome_unknown or isinstance(outcome, Unknown)
            yield Sleep(backoff.retry_delay_s())
    except StoreUnavailable as error:
        if outcome_unknown:
            raise OutcomeUnknown(f"{key!r}: {error}") from error
        raise
    raise OutcomeUnknown(f"{key!r} kept changing, or nobody said whether it was written")


class ListeningRelease:
    """A message on a bus that every paused node listens for; nothing is stored anywhere.

    A node that begins to listen after the message stays paused, and so does one whose message was
    lost. The article leaves the remedy to its reader; here it is `client.gate(name, hints)`.

    Arguments:
        hints: the bus, from `multicast(url)`; the URL contains the shared secret.
        name: of the release; all nodes use the same one.

    Attributes:
        listening: an event that is set while `wait` is known to listen.
    """

    def __init__(self, hints: Multicast, name: str) -> None:
        self.name, self.listening = name, threading.Event()
        self._hints, self._topic = hints, key_of(KIND, name)

    def release(self) -> None:
        """Release all nodes that listen now. An unreachable bus is only logged."""
        self._hints.publish(self._topic)

    def wait(self, timeout: float | None = None) -> None:
        """Return at the first message that comes from now on.

        Arguments:
            timeout: at most so many seconds; None: for ever.

        Raises:
            CoordTimeout: no message came in time.
        """
        heard = threading.Event()
        stop = self._hints.listen(self._topic, heard.set, self.listening.set)
        try:
            if not heard.wait(timeout):
                raise CoordTimeout(self.name, timeout or 0.0)
        finally:
            stop()
            self.listening.clear()
