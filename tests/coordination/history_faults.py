"""The faults of a real store and its clients while their history is recorded."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Final

from tests.coordination.histories import Crowd
from tests.coordination.real_stores import RealStore

Fault = Callable[[RealStore, Sequence[Crowd]], None]


def lose_some(store: RealStore, crowds: Sequence[Crowd]) -> None:
    """Lose requests and answers."""
    for proxy in store.proxies:
        proxy.lose_requests = proxy.lose_answers = 0.1
    time.sleep(0.7)
    heal(store)


def delay(store: RealStore, crowds: Sequence[Crowd]) -> None:
    """Delay everything."""
    for proxy in store.proxies:
        proxy.delay_s = 0.05
    time.sleep(0.7)
    heal(store)


def hold_back(store: RealStore, crowds: Sequence[Crowd]) -> None:
    """Hold everything back for longer than any request waits, then deliver it."""
    for proxy in store.proxies:
        proxy.hold()
    time.sleep(2.0)
    heal(store)


def reset(store: RealStore, crowds: Sequence[Crowd]) -> None:
    """Reset all connections several times."""
    for _ in range(5):
        for proxy in store.proxies:
            proxy.reset()
        time.sleep(0.1)


def kill_client(store: RealStore, crowds: Sequence[Crowd]) -> None:
    """Kill a client of each crowd, and start another."""
    for crowd in crowds:
        crowd.kill_one()
    time.sleep(0.5)


def stop_client(store: RealStore, crowds: Sequence[Crowd]) -> None:
    """Pause a client for longer than a short TTL."""
    with ExitStack() as stack:
        for crowd in crowds:
            stack.enter_context(crowd.one_stopped())
        time.sleep(min(1.3 * store.ttl_s, 3.0))


def kill_server(store: RealStore, crowds: Sequence[Crowd]) -> None:
    """Kill the server, or the leader, and start it again."""
    if store.can_be_killed:
        store.kill()
        time.sleep(0.3)
        store.restart()
    time.sleep(0.5)


def stop_server(store: RealStore, crowds: Sequence[Crowd]) -> None:
    """Pause the server, or the leader."""
    if store.can_be_killed:
        store.pause()
        time.sleep(2.0)
        store.resume()
    time.sleep(0.5)


FAULTS: Final[tuple[Fault, ...]] = (
    lose_some,
    delay,
    hold_back,
    reset,
    kill_client,
    stop_client,
    kill_server,
    stop_server,
)


def heal(store: RealStore) -> None:
    """Stop all faults of the network."""
    for proxy in store.proxies:
        proxy.heal()


def each_once(store: RealStore, seed: int) -> Callable[[Sequence[Crowd]], None]:
    """Return a function that applies every fault once, in an order given by the seed."""

    def disturb(crowds: Sequence[Crowd]) -> None:
        for fault in random.Random(seed).sample(FAULTS, len(FAULTS)):
            fault(store, crowds)
            time.sleep(0.2)

    return disturb
