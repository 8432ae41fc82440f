"""The faults of a real store and its clients while their history is recorded."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Final

from tests.coordination.histories import ClientProcesses
from tests.coordination.real_stores import RealStore

Fault = Callable[[RealStore, Sequence[ClientProcesses]], None]


def lose_some(store: RealStore, groups: Sequence[ClientProcesses]) -> None:
    """Lose requests and answers."""
    for proxy in store.proxies:
        proxy.lose_requests = proxy.lose_answers = 0.1
    time.sleep(0.7)
    heal(store)


def delay(store: RealStore, groups: Sequence[ClientProcesses]) -> None:
    """Delay everything."""
    for proxy in store.proxies:
        proxy.delay_s = 0.05
    time.sleep(0.7)
    heal(store)


def hold_back(store: RealStore, groups: Sequence[ClientProcesses]) -> None:
    """Hold everything back for longer than any request waits, then deliver it."""
    for proxy in store.proxies:
        proxy.hold()
    time.sleep(2.0)
    heal(store)


def reset(store: RealStore, groups: Sequence[ClientProcesses]) -> None:
    """Reset all connections several times."""
    for _ in range(5):
        for proxy in store.proxies:
            proxy.reset()
        time.sleep(0.1)


def kill_client(store: RealStore, groups: Sequence[ClientProcesses]) -> None:
    """Kill a client of each group, and start another."""
    for group in groups:
        group.kill_one()
    time.sleep(0.5)


def stop_client(store: RealStore, groups: Sequence[ClientProcesses]) -> None:
    """Pause a client for longer than a short TTL."""
    with ExitStack() as stack:
        for group in groups:
            stack.enter_context(group.one_stopped())
        time.sleep(min(1.3 * store.ttl_s, 3.0))


def kill_server(store: RealStore, groups: Sequence[ClientProcesses]) -> None:
    """Kill the server, or the leader, and start it again."""
    if store.can_be_killed:
        store.kill()
        time.sleep(0.3)
        store.restart()
    time.sleep(0.5)


def stop_server(store: RealStore, groups: Sequence[ClientProcesses]) -> None:
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


def each_once(store: RealStore, seed: int) -> Callable[[Sequence[ClientProcesses]], None]:
    """Return a function that applies every fault once, in an order given by the seed."""

    def disturb(groups: Sequence[ClientProcesses]) -> None:
        for fault in random.Random(seed).sample(FAULTS, len(FAULTS)):
            fault(store, groups)
            time.sleep(0.2)

    return disturb
