"""A server that is killed and restarted repeatedly while clients continue to work.

Lives here: the kills, and clients without retries. A request without an answer may or may not have
been applied, so a retry would be wrong. Must not live here: the actions of the clients.
"""

from __future__ import annotations

import http.client
import random
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeVar

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME
from strongroom.testing.server import Server
from tests.conformance.answer import Answer
from tests.conformance.client import HOST, TIMEOUT_S, Client, Credential, Fields
from tests.conformance.table_client import TableClient

LOST: Final = (OSError, http.client.HTTPException)
"""The exceptions of a request that gets no answer."""
CREDENTIAL: Final = Credential(DEVELOPMENT_ACCOUNT_NAME, DEVELOPMENT_ACCOUNT_KEY)
_PATIENCE_S: Final = 60.0
AnyClient = TypeVar("AnyClient", bound=Client)


class _Once(Client):
    """A client on its own connection, which sends each request only once."""

    def send(
        self,
        method: str,
        target: str,
        headers: Fields = (),
        body: bytes = b"",
        auth: str | None = "",
    ) -> Answer:
        full = self.prefix + target
        fields = self.fields(method, full, headers, body, self.auth if auth == "" else auth)
        connection = http.client.HTTPConnection(HOST, self.port, timeout=TIMEOUT_S)
        try:
            connection.putrequest(method, full, skip_host=True, skip_accept_encoding=True)
            for name, value in fields:
                connection.putheader(name, value)
            connection.endheaders(body or None)
            response = connection.getresponse()
            data, found = response.read(), tuple(response.getheaders())
            return Answer(method, response.status, response.reason, found, data)
        finally:
            connection.close()


class OnceQueues(_Once):
    """A client of the Queue service."""


class OnceTables(_Once, TableClient):
    """A client of the Table service."""


class Crashes:
    """A server on a data directory, used in a `with` statement.

    Arguments:
        data: its directory.
    """

    def __init__(self, data: Path) -> None:
        self.server = Server.start(data=data, test_clock=True)
        self.count = 0
        self._up = threading.Event()
        self._up.set()

    def __enter__(self) -> Crashes:
        return self

    def __exit__(self, *_: object) -> None:
        self.server.close()

    def queues(self) -> OnceQueues:
        """A client of the development account."""
        return OnceQueues(_port(self.server.queue_url), CREDENTIAL)

    def tables(self) -> OnceTables:
        """A client of the development account."""
        return OnceTables(_port(self.server.table_url), CREDENTIAL)

    def crash(self, ended: Callable[[], object]) -> None:
        """Kill the server and restart it.

        Arguments:
            ended: called between both, when earlier requests can no longer be applied.
        """
        self._up.clear()
        self.server.kill()
        ended()
        self.server.restart()
        self.count += 1
        self._up.set()

    def await_up(self) -> None:
        """Wait until the server answers again."""
        assert self._up.wait(_PATIENCE_S), "the server does not come back"

    def after_loss(self, error: BaseException) -> None:
        """Wait like `await_up` after an answer was lost. Raises `error` if no crash explains the
        loss."""
        self.await_up()
        if not self.count:
            raise error


def while_crashing(
    crashes: Crashes,
    kills: int,
    clients: Sequence[AnyClient],
    act: Callable[[AnyClient, int], object],
    steps: int,
    chance: random.Random,
    ended: Callable[[], object] = lambda: None,
    between: Callable[[], object] = lambda: None,
) -> int:
    """Let every client act up to `steps` times while the server is killed `kills` times.

    Arguments:
        act: (client, its number), once; it must cope with lost answers.
        ended: see Crashes.crash.
        between: called after each restart, while the clients work.

    Returns: the number of steps.
    """
    failed: list[BaseException] = []
    done: list[int] = []

    def work(number: int) -> None:
        try:
            for _ in range(steps):
                if failed:
                    return
                crashes.await_up()
                act(clients[number], number)
                done.append(number)
        except BaseException as error:
            failed.append(error)

    threads = [
        threading.Thread(target=work, args=(number,), daemon=True) for number in range(len(clients))
    ]
    for thread in threads:
        thread.start()
    for kill in range(kills):
        # The kills are spread over the work, whatever its speed.
        share = (kill + chance.random()) / kills
        while len(done) < share * steps * len(clients) and not failed:
            time.sleep(0.005)
        if failed:
            break
        crashes.crash(ended)
        between()
    for thread in threads:
        thread.join(_PATIENCE_S)
        assert not thread.is_alive(), "a client hangs"
    if failed:
        raise failed[0]
    return len(done)


def _port(url: str) -> int:
    return int(url.rpartition(":")[2])
