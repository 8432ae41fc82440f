"""The article's generator of unique ids, over a store with two methods.

Programs should use `client.ids(name)`: it prefetches, recognizes its own write after a lost answer,
and has an asyncio version. This generator shows the idea, and takes any store that has the two
methods. The listing's mistakes are corrected. The local range changes only after the write
succeeded. Text that is no number is an error. The version belongs to what one `get_data` returned,
not to the store object, so generators may share one. Source: J. Twist, "Synchronizing Multiple
Nodes in Windows Azure" (MSDN Magazine, November 2010), "Generating unique IDs".
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from strongroom.coordination.clock import Clocks, SystemClocks
from strongroom.coordination.drivers.threads import SyncDriver
from strongroom.coordination.effects import Conflict, Steps, Unknown, cas, get
from strongroom.coordination.errors import CorruptRecord, OutcomeUnknown
from strongroom.coordination.recipes.classic_release import Participant
from strongroom.coordination.recipes.ids.id_ranges import ID_MAX, IdsExhausted, IdsUnavailable
from strongroom.coordination.schema.names import key_of
from strongroom.coordination.session.forking import register_for_forks

_ATTEMPT_S: Final = 5.0
_PAUSE_FIRST_S: Final = 0.01
_PAUSE_MAX_S: Final = 1.0
_EMPTY: Final = range(0)


@dataclass(frozen=True, slots=True)
class OptimisticData:
    """The result of one `get_data`.

    Attributes:
        text: the content; None: there is none yet.
        version: the store's version of the content, such as an ETag; the condition of the next
            write.
    """

    text: str | None
    version: str | None


class OptimisticSyncStore(Protocol):
    """A small text that many nodes may write, each write conditional on the version read."""

    def get_data(self) -> OptimisticData:
        """Return the text and its version, from one request. Raises: the store's errors."""
        ...

    def try_optimistic_write(self, text: str, read: OptimisticData) -> bool:
        """Write if nothing was written since `read`; return False if something was.

        If `read.text` is None, create the text if it still does not exist. Any error but a lost
        race is raised, also when the outcome of the write is unknown.
        """
        ...


class StoredText:
    """The two methods over a name in any store of this toolkit, for example over a blob.

    It uses the key of `client.ids(name)`: both may be used for one name.

    Arguments:
        client: gives the store.
        name: of the ids.
    """

    def __init__(self, client: Participant, name: str) -> None:
        self._driver: SyncDriver = client.driver
        self.key = key_of("ids", name)

    def get_data(self) -> OptimisticData:
        """Raises: StoreUnavailable, StoreRefused, CorruptRecord."""
        return self._driver.run(self._get())

    def _get(self) -> Steps[OptimisticData]:
        entry = yield from get(self.key, _ATTEMPT_S)
        if entry is None:
            return OptimisticData(None, None)
        try:
            return OptimisticData(entry.value.decode(), entry.version)
        except UnicodeDecodeError as error:
            raise CorruptRecord(self.key, entry.value, "text") from error

    def try_optimistic_write(self, text: str, read: OptimisticData) -> bool:
        """Raises: StoreUnavailable, StoreRefused, OutcomeUnknown."""
        return self._driver.run(self._write(text, read))

    def _write(self, text: str, read: OptimisticData) -> Steps[bool]:
        # A fresh nonce, so that no generator of `client.ids` takes the write for its own.
        note = self._driver.context.nonce()
        outcome = yield from cas(self.key, read.version, text.encode(), _ATTEMPT_S, note=note)
        if isinstance(outcome, Unknown):
            raise OutcomeUnknown(f"{self.key!r}: nobody said whether it was written")
        return not isinstance(outcome, Conflict)


class UniqueIdGenerator:
    """A generator of ids that no other node gets; safe for threads and after a fork.

    Arguments:
        store: holds the next unreserved id, as decimal text; generators may share it.
        range_size: how many ids one write reserves; a crash loses at most the rest of a range.
        max_retries: how many tries follow the first one.
        first: the first id, if the store has no text yet.
        name: for messages.
        clock: gives the jitter of the pauses between tries.
        sleep: the function that pauses; its argument is in seconds.
    """

    def __init__(
        self,
        store: OptimisticSyncStore,
        range_size: int = 1000,
        max_retries: int = 25,
        *,
        first: int = 1,
        name: str = "ids",
        clock: Clocks | None = None,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        if range_size < 1 or max_retries < 0 or not 0 <= first <= ID_MAX:
            raise ValueError("range_size is at least 1, max_retries and first are not negative")
        self._store, self._range_size, self._max_retries = store, range_size, max_retries
        self._first, self._name = first, name
        self._clock, self._sleep = clock or SystemClocks(), sleep or threading.Event().wait
        self._highest, self._left = 0, _EMPTY
        self._lock = threading.Lock()
        register_for_forks(self)

    def next_id(self) -> int:
        """Return an id that no node has got before.

        Raises:
            IdsUnavailable: other nodes won the race too often; no id was handed out twice, try
                again.
            IdsExhausted: no ids are left below 2**63.
            CorruptRecord: the text is no number, or smaller than it has been.
            Any error of the store: no id was handed out.
        """
        with self._lock:
            if not self._left:
                self._left = self._reserve()
            found, self._left = self._left[0], self._left[1:]
            return found

    def _reserve(self) -> range:
        cap_s = _PAUSE_FIRST_S
        for attempt in range(self._max_retries + 1):
            if attempt:
                self._sleep(self._clock.random() * cap_s)
                cap_s = min(_PAUSE_MAX_S, cap_s * 2)
            read = self._store.get_data()
            start = self._first if read.text is None else self._number(read.text)
            found = range(start, start + self._range_size)
            if found.stop - 1 > ID_MAX:
                raise IdsExhausted(self._name)
            if self._store.try_optimistic_write(str(found.stop), read):
                self._highest = found.stop
                return found
        raise IdsUnavailable(self._name, self._max_retries + 1, "another node was faster")

    def _number(self, text: str) -> int:
        digits = text.strip()
        is_number = digits.isascii() and digits.isdigit() and len(digits) <= len(str(ID_MAX))
        if not is_number or int(digits) < self._highest:
            expected = f"the next free id as a decimal number, {self._highest} or more"
            raise CorruptRecord(self._name, text.encode(), expected)
        return int(digits)

    def after_fork(self) -> None:
        """Drop the reserved range in a forked child: it belongs to the parent."""
        self._lock = threading.Lock()
        self._left = _EMPTY
