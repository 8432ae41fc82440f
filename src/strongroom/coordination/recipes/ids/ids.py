"""Unique ids: handed out from memory, reserved a range at a time.

Lives here: the generators for threads and for asyncio. Must not live here: how a range is reserved
(ids/id_ranges.py). A process that ends loses at most the rest of its range and a prefetched one. A
forked child starts with a range of its own.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from strongroom.coordination.drivers.event_loop import AsyncDriver
from strongroom.coordination.drivers.threads import SyncDriver
from strongroom.coordination.effects import Steps
from strongroom.coordination.recipes.ids.id_ranges import (
    ID_MAX,
    KIND,
    RangeReservations,
    reserve_steps,
)
from strongroom.coordination.schema.names import key_of
from strongroom.coordination.session.context import RecipeContext
from strongroom.coordination.session.forking import register_for_forks

BATCH_MAX: Final = 2**40
_GENERATORS_MAX: Final = 1024
_EMPTY: Final = range(0)
T = TypeVar("T")
# The next range is prefetched when a fifth of a batch is left.
_PREFETCH_DIVISOR: Final = 5


@dataclass(frozen=True, slots=True)
class IdsOptions:
    """The options of a generator of ids.

    Attributes:
        batch: how many ids one write reserves.
        max_retries: how many tries follow the first one.
        prefetch: reserve the next range before the current one is used up.
        first: the first id, if none was ever reserved.
    """

    batch: int = 1000
    max_retries: int = 25
    prefetch: bool = False
    first: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.batch <= BATCH_MAX:
            raise ValueError(f"a range has 1 to {BATCH_MAX} ids, not {self.batch}")
        if self.max_retries < 0:
            raise ValueError("max_retries cannot be negative")
        if not 0 <= self.first <= ID_MAX:
            raise ValueError(f"the first id lies between 0 and {ID_MAX}")


class GeneratorCache(Generic[T]):
    """The generators of one client, so that a name with the same options has one only.

    A second generator would reserve a range of its own, and the rest of the first one's range would
    never be used.
    """

    def __init__(self) -> None:
        self._made: dict[tuple[str, IdsOptions], T] = {}

    def get(self, name: str, options: IdsOptions, make: Callable[[], T]) -> T:
        found = self._made.get((name, options))
        if found is not None:
            return found
        if len(self._made) >= _GENERATORS_MAX:
            self._made.clear()
        # No lock, which a fork could leave held: of two that are made at once, one is kept.
        return self._made.setdefault((name, options), make())


class _Source:
    """The reserved ids that are left in memory. The generator's lock guards them."""

    def __init__(self, context: RecipeContext, name: str, options: IdsOptions) -> None:
        self._context, self.options = context, options
        self._name, self._key = name, key_of(KIND, name)
        self._reset()

    def _reset(self) -> None:
        self._identity = self._context.identity
        options = self.options
        self._reserving = RangeReservations(
            self._key, self._name, options.first, options.max_retries
        )
        self._left, self._prefetched = _EMPTY, _EMPTY

    def take(self, count: int) -> list[int]:
        """Remove up to `count` ids from memory."""
        if self._context.identity is not self._identity:
            # This is a forked child: the reserved range belongs to the parent.
            self._reset()
        if not self._left:
            self._left, self._prefetched = self._prefetched, _EMPTY
        taken, self._left = self._left[:count], self._left[count:]
        return list(taken)

    def reserve(self, missing: int) -> Steps[range]:
        """Reserve and return a range of `batch` ids, or of `missing` if that is more.

        Memory does not change before `put`.
        """
        count = max(self.options.batch, missing)
        return (yield from reserve_steps(self._context, self._reserving, count))

    def put(self, ids: range) -> None:
        """The range is used now, or after the current one."""
        if self._left:
            self._prefetched = ids
        else:
            self._left = ids

    @property
    def is_empty(self) -> bool:
        return not self._left and not self._prefetched

    @property
    def should_prefetch(self) -> bool:
        is_low = len(self._left) * _PREFETCH_DIVISOR <= self.options.batch
        return self.options.prefetch and is_low and not self._prefetched


class Ids:
    """A generator of unique ids for threads: an iterator, `next_id()`, `take(count)`.

    Arguments:
        driver: of the client.
        name: generators of the same name never return the same id.
        options: see IdsOptions.
    """

    def __init__(self, driver: SyncDriver, name: str, options: IdsOptions) -> None:
        self.name = name
        self._driver = driver
        self._source = _Source(driver.context, name, options)
        self.after_fork()
        register_for_forks(self)

    def after_fork(self) -> None:
        """Make new locks in a forked child: the threads that held the old ones are the parent's."""
        self._lock = threading.Lock()
        self._reserving = threading.Lock()
        self._prefetching = False

    def __repr__(self) -> str:
        return f"<Ids {self.name!r}, {self._source.options.batch} at a time>"

    def next_id(self) -> int:
        """Return an id that no generator of this name has returned before.

        Raises: as `take`.
        """
        return self.take(1)[0]

    def take(self, count: int) -> list[int]:
        """Return `count` ids in rising order, possibly with gaps between them.

        Raises:
            IdsUnavailable: no range could be reserved; no id was handed out twice, try again.
            IdsExhausted, CorruptRecord, StoreRefused: another try does not help.
        """
        if count < 1:
            raise ValueError("take at least one id")
        ids: list[int] = []
        while True:
            with self._lock:
                ids += self._source.take(count - len(ids))
                prefetch = self._source.should_prefetch and not self._prefetching
                self._prefetching = self._prefetching or prefetch
            if prefetch:
                self._driver.spawn(self._prefetch(), f"coordination-ids-{self.name}")
            if len(ids) == count:
                return ids
            self._refill(count - len(ids))

    def _refill(self, missing: int) -> None:
        # One thread reserves a range; the others then find it in memory.
        with self._reserving:
            with self._lock:
                if not self._source.is_empty:
                    return
            ids = self._driver.run(self._source.reserve(missing))
            with self._lock:
                self._source.put(ids)

    def _prefetch(self) -> Steps[None]:
        try:
            with self._reserving:
                ids = yield from self._source.reserve(0)
                with self._lock:
                    self._source.put(ids)
        finally:
            self._prefetching = False

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        return self.next_id()


class AioIds:
    """A generator of unique ids for tasks: `async for`, `next_id()`, `take(count)`; see Ids.

    Arguments:
        driver: of the client.
        name, options: as of Ids.
    """

    def __init__(self, driver: AsyncDriver, name: str, options: IdsOptions) -> None:
        self.name = name
        self._driver = driver
        self._source = _Source(driver.context, name, options)
        self._lock = asyncio.Lock()

    def __repr__(self) -> str:
        return f"<AioIds {self.name!r}, {self._source.options.batch} at a time>"

    async def next_id(self) -> int:
        """Return an id that no generator of this name has returned before."""
        return (await self.take(1))[0]

    async def take(self, count: int) -> list[int]:
        """Return `count` ids in rising order, possibly with gaps between them."""
        if count < 1:
            raise ValueError("take at least one id")
        async with self._lock:
            ids = self._source.take(count)
            while len(ids) < count:
                self._source.put(await self._driver.run(self._source.reserve(count - len(ids))))
                ids += self._source.take(count - len(ids))
            return ids

    async def __aiter__(self) -> AsyncIterator[int]:
        while True:
            yield await self.next_id()
