"""The client: one participant of one store, for threads; `aio` is its asyncio counterpart.

Lives here: the factories of every recipe, and nothing else.
"""

from __future__ import annotations

import functools
import inspect
import os
import socket
from collections.abc import Callable
from typing import Any, ParamSpec, Self, TypeVar

from strongroom.coordination.aio import AioClient
from strongroom.coordination.clock import Clocks, SystemClocks
from strongroom.coordination.clock_rules import ClockRules
from strongroom.coordination.drivers.threads import SyncDriver
from strongroom.coordination.hints import Hints
from strongroom.coordination.recipes.election import Election
from strongroom.coordination.recipes.gate import Gate
from strongroom.coordination.recipes.holding import LockOptions, OnLost
from strongroom.coordination.recipes.ids.ids import GeneratorCache, Ids, IdsOptions
from strongroom.coordination.recipes.locks.inspect_locks import break_steps, list_steps, show_steps
from strongroom.coordination.recipes.locks.lock import Lock
from strongroom.coordination.recipes.locks.lock_state import LockView
from strongroom.coordination.recipes.locks.locks import Locks
from strongroom.coordination.recipes.locks.rwlock import RwLock
from strongroom.coordination.recipes.members import Members
from strongroom.coordination.recipes.register import Register
from strongroom.coordination.recipes.slots.barrier import Barrier
from strongroom.coordination.recipes.slots.semaphore import Semaphore
from strongroom.coordination.schema.names import check_template
from strongroom.coordination.session.context import RecipeContext
from strongroom.coordination.session.handles import log
from strongroom.coordination.store import LabelsWaits, Promises, Store

P = ParamSpec("P")
R = TypeVar("R")


class Client:
    """One participant. Thread-safe: its threads and tasks wait in line for what it holds.

    Arguments:
        store: the store that all participants share.
        label: the name of this participant, for people; host and process id by default.
        rate_error: the fraction by which any node's clock may run too fast or too slow.
        clock: a replacement for the machine's clocks, for tests.
    """

    def __init__(
        self,
        store: Store,
        *,
        label: str = "",
        rate_error: float = 0.05,
        clock: Clocks | None = None,
    ) -> None:
        label = label or f"{socket.gethostname()}:{os.getpid()}"
        self.store = store = store.labelled(label) if isinstance(store, LabelsWaits) else store
        self._rate_error = rate_error
        self.context = RecipeContext(
            clock or SystemClocks(),
            ClockRules(rate_error),
            store.promises(),
            label,
            log.warning,
        )
        self.driver = SyncDriver(store, self.context)
        self._generators = GeneratorCache[Ids]()
        self._aio: AioClient | None = None

    @property
    def aio(self) -> AioClient:
        """The same participant for asyncio; it belongs to the event loop that first uses it."""
        if self._aio is None:
            self._aio = AioClient(self.store.aio(), self.context)
        return self._aio

    def sibling(self, label: str = "") -> Client:
        """Return another participant over the same store, with its own identity."""
        return Client(
            self.store,
            label=label or self.context.label,
            rate_error=self._rate_error,
            clock=self.context.clock,
        )

    def __repr__(self) -> str:
        state = ", closed" if self.driver.closed else ""
        return f"<Client {self.context.label!r} of {self.context.promises.store}{state}>"

    def promises(self) -> Promises:
        """Return the guarantees of a lock on this store, and the assumption behind them."""
        return self.context.promises

    def lock(
        self,
        name: str,
        ttl: float = 15.0,
        wait: float | None = None,
        *,
        fair: bool = False,
        lock_delay: float = 0.0,
        on_lost: OnLost = "event",
        strict: bool = False,
        alert: bool = False,
        value: Any = None,
    ) -> Lock:
        """Return the lock of that name: a context manager with `acquire()` and `try_acquire()`.

        The arguments are those of `LockOptions`, times in seconds.
        """
        options = LockOptions(ttl, wait, fair, lock_delay, on_lost, strict, alert, value)
        return Lock(self.driver, name, options)

    def locks(
        self,
        *names: str,
        ttl: float = 15.0,
        wait: float | None = None,
        on_lost: OnLost = "event",
        strict: bool = False,
    ) -> Locks:
        """Return a context manager that holds all of these names, or none of them."""
        options = LockOptions(ttl_s=ttl, wait_s=wait, on_lost=on_lost, strict=strict)
        return Locks(self.driver, names, options)

    def ids(
        self,
        name: str,
        batch: int = 1000,
        *,
        max_retries: int = 25,
        prefetch: bool = False,
        first: int = 1,
    ) -> Ids:
        """Return the generator of ids that are unique among all clients; see `IdsOptions`.

        The same name and options give the same generator, so that no reserved range is wasted.
        """
        options = IdsOptions(batch, max_retries, prefetch, first)
        return self._generators.get(name, options, lambda: Ids(self.driver, name, options))

    def gate(self, name: str, hints: Hints | None = None) -> Gate:
        """Return the gate of that name: `wait`, `open`, `rearm`, `show`."""
        return Gate(self.driver, name, hints)

    def election(
        self,
        name: str,
        value: Any = None,
        ttl: float = 15.0,
        wait: float | None = None,
        *,
        fair: bool = False,
        on_lost: OnLost = "event",
        alert: bool = False,
    ) -> Election:
        """Return the election of that name: `lead()`, `campaign()`, `leader()`, `observe()`.

        Arguments:
            name: any text.
            value: a JSON value that is published while this client leads.
            ttl, wait, fair, on_lost, alert: see `lock`.
        """
        options = LockOptions(ttl, wait, fair, 0.0, on_lost, False, alert, value)
        return Election(self.driver, name, options)

    def register(self, name: str) -> Register:
        """Return the register of that name: `get`, `compare_and_swap`, `put`, `wait_for_change`."""
        return Register(self.driver, name)

    def semaphore(
        self,
        name: str,
        permits: int,
        ttl: float = 15.0,
        wait: float | None = None,
        *,
        on_lost: OnLost = "event",
        strict: bool = False,
        alert: bool = False,
    ) -> Semaphore:
        """Return the semaphore of that name: a context manager with `acquire()` and
        `try_acquire()`.

        Arguments:
            name: any text.
            permits: how many may hold it at once; all participants must give the same number.
            ttl, wait, on_lost, strict, alert: see `LockOptions`.
        """
        options = LockOptions(ttl, wait, False, 0.0, on_lost, strict, alert)
        return Semaphore(self.driver, name, permits, options)

    def rwlock(
        self,
        name: str,
        ttl: float = 15.0,
        wait: float | None = None,
        *,
        on_lost: OnLost = "event",
        strict: bool = False,
        alert: bool = False,
    ) -> RwLock:
        """Return the read-write lock of that name; acquire one of its sides, `read()` or `write()`.

        The arguments are those of `LockOptions`, times in seconds.
        """
        options = LockOptions(ttl, wait, False, 0.0, on_lost, strict, alert)
        return RwLock(self.driver, name, options)

    def barrier(self, name: str, parties: int, ttl: float = 15.0) -> Barrier:
        """Return the barrier of that name: `wait(timeout)`.

        Arguments:
            name: any text.
            parties: how many parties must arrive before all of them proceed.
            ttl: after so many seconds without a renewal, a party loses its place.
        """
        return Barrier(self.driver, name, parties, ttl)

    def members(
        self,
        group: str,
        ttl: float = 15.0,
        *,
        on_lost: OnLost = "event",
        strict: bool = False,
        alert: bool = False,
    ) -> Members:
        """Return the group of that name: `join(data)`, `list()`, `watch()`.

        Arguments:
            group: any text.
            ttl: after so many seconds without a renewal, a member counts as dead.
            on_lost, strict, alert: see `LockOptions`.
        """
        options = LockOptions(ttl, None, False, 0.0, on_lost, strict, alert)
        return Members(self.driver, group, options)

    def show(self, name: str, kind: str = "lock") -> LockView | None:
        """Return the state of a lock or an election, by one read; None if the name was never used.

        Arguments:
            name: the name of the lock or election.
            kind: "lock" or "election".
        """
        return self.driver.run(show_steps(self.context, kind, name))

    def list_names(self, kind: str = "lock") -> list[str]:
        """Return every name of a kind that was ever used."""
        return self.driver.run(list_steps(self.context, kind))

    def break_lock(self, name: str, kind: str = "lock") -> LockView | None:
        """End another participant's hold now, and increment the fence.

        The holder learns of it at its next renewal, or at once with `alert=True`. Until then only
        the fence protects the resource.

        Returns: the state that was broken; None if nobody held the name.
        """
        return self.driver.run(break_steps(self.context, kind, name))

    def locked(
        self, name: str, ttl: float = 15.0, wait: float | None = None, *, skip: bool = False
    ) -> Callable[[Callable[P, R]], Callable[P, R | None]]:
        """Return a decorator that runs the function while the lock is held.

        Arguments:
            name: the lock's name; it may refer to the function's arguments, like
                "report:{customer}".
            ttl: see `lock`.
            wait: see `lock`.
            skip: if the lock is held elsewhere, return None at once and do not run the function.

        Raises:
            BadName: when the function is decorated: it has no argument that the name refers to.
        """

        def decorate(function: Callable[P, R]) -> Callable[P, R | None]:
            signature = inspect.signature(function)
            check_template(name, function.__name__, list(signature.parameters))

            @functools.wraps(function)
            def run(*args: P.args, **kwargs: P.kwargs) -> R | None:
                bound = signature.bind(*args, **kwargs)
                bound.apply_defaults()
                lock = self.lock(name.format(**bound.arguments), ttl, wait)
                held = lock.try_acquire() if skip else lock.acquire()
                if held is None:
                    return None
                with held:
                    return function(*args, **kwargs)

            return run

        return decorate

    def close(self) -> None:
        """Stop the background threads and close the store. Holds are lost, not released."""
        self.driver.close()
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
