"""Many concurrent clients: threads, each with a connection of its own, which start together.

Must not live here: their actions.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from tests.conformance.client import Client

T = TypeVar("T")

CLIENTS = 32


class ConcurrentClients:
    """Clients that act at the same time; used in a `with` statement.

    Arguments:
        client: the client whose account and server they use.
        count: the number of clients.
    """

    def __init__(self, client: Client, count: int = CLIENTS) -> None:
        self.clients = [client.another() for _ in range(count)]
        self._threads = ThreadPoolExecutor(count)

    def run(self, act: Callable[[Client, int], T]) -> list[T]:
        """Run `act(client, its number)` on every client at once, and return the results in that
        order."""
        together = threading.Barrier(len(self.clients))

        def run_one(number: int) -> T:
            together.wait(timeout=20)
            return act(self.clients[number], number)

        futures = [self._threads.submit(run_one, number) for number in range(len(self.clients))]
        return [future.result(timeout=60) for future in futures]

    def __enter__(self) -> ConcurrentClients:
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown()
        for client in self.clients:
            client.close()
