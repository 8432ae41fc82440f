"""Clients of several gateways of one store: each request goes to the next gateway, and only once.

Lives here: the choice of a gateway, connections to all of them, and a record of what each one
answered. Must not live here: what is asked (registers.py, leases.py, messages.py), the gateways'
processes (serving.py).
"""

from __future__ import annotations

import http.client
import itertools
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from tests.conformance.answer import Answer
from tests.conformance.client import HOST, Client, Fields
from tests.conformance.table_client import TableClient
from tests.proof.postgres.http_store import Clients, clients_of

LOST: Final = (OSError, http.client.HTTPException)
"""The errors of a request without an answer. It was carried out, or it will be, or it never is."""
NO_ANSWER: Final = 0
BUSY: Final = 503
WAIT: Final = "x-strongroom-wait"
_AVOIDED_S: Final = 1.0
_PATIENCE_S: Final = 5.0
_PATIENT_S: Final = 30.0


class NotDone(Exception):
    """The request was not carried out: its gateway was not there, or has refused it with 503."""


class Moment(msgspec.Struct, frozen=True):
    """An answer, by the test's monotonic clock.

    Attributes:
        path: the begin of the request's path, which is that of a service.
        status: 0 = none came.
    """

    began: float
    ended: float
    port: int
    path: str
    status: int


class Answers:
    """What all clients were answered. Threads add to it."""

    def __init__(self) -> None:
        self._moments: list[Moment] = []

    def add(self, moment: Moment) -> None:
        self._moments.append(moment)

    def all(self) -> Sequence[Moment]:
        return tuple(self._moments)

    def share_busy(self, is_counted: Callable[[Moment], bool]) -> float:
        """Return the share of 503 among the answers that count."""
        counted = [one for one in self.all() if one.status and is_counted(one)]
        return sum(one.status == BUSY for one in counted) / max(1, len(counted))


class Way:
    """How clients reach the gateways of a store.

    Arguments:
        ports: of the gateways.
        patience_s: how long a client waits for an answer.
        is_strict: whether a client raises `NotDone` for 503 and a LOST for 500, after which it is
            not known whether the request was carried out.

    Attributes:
        answers: of all clients that reach them in this way, or in one made from it.
    """

    def __init__(
        self,
        ports: Sequence[int],
        patience_s: float = _PATIENCE_S,
        *,
        is_strict: bool = False,
        answers: Answers | None = None,
    ) -> None:
        self.ports = tuple(ports)
        self.patience_s = patience_s
        self.is_strict = is_strict
        self.answers = Answers() if answers is None else answers

    def strict(self) -> Way:
        """Return the same way for clients whose history is recorded."""
        return Way(self.ports, self.patience_s, is_strict=True, answers=self.answers)

    def patient(self) -> Way:
        """Return the same way for clients that wait long."""
        return Way(self.ports, _PATIENT_S, is_strict=self.is_strict, answers=self.answers)

    def clients(self) -> Clients:
        """Return clients with connections of their own."""
        found = clients_of(self.ports[0], SwitchingClient, _SwitchingTables)
        for client in found:
            assert isinstance(client, SwitchingClient)
            client.way, client.turns = self, _Turns(self.ports)
        return found


class _Turns:
    """Which gateway is next. One that did not answer is left out for a second."""

    def __init__(self, ports: Sequence[int]) -> None:
        self._ports = ports
        # Clients begin at different gateways.
        self._counter = itertools.count(next(_FIRST))
        self._avoided: dict[int, float] = {}

    def next(self) -> int:
        now = time.monotonic()
        live = [one for one in self._ports if self._avoided.get(one, 0.0) <= now] or self._ports
        return live[next(self._counter) % len(live)]

    def avoid(self, port: int) -> None:
        self._avoided[port] = time.monotonic() + _AVOIDED_S


_FIRST: Final = itertools.count()


class SwitchingClient(Client):
    """A client of all gateways. Its owner sets `way` and `turns`.

    Attributes:
        last: the last answer.
        reads_wait_s: for how long each read waits for something to read.
    """

    way: Way
    turns: _Turns
    last: Answer | None = None
    reads_wait_s = 0

    def connect(self, port: int | None = None) -> http.client.HTTPConnection:
        chosen = self.turns.next() if port is None else port
        return http.client.HTTPConnection(HOST, chosen, timeout=self.way.patience_s)

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
        if method == "GET" and self.reads_wait_s:
            fields.append((WAIT, str(self.reads_wait_s)))
        port, began, status = self.turns.next(), time.monotonic(), NO_ANSWER
        try:
            connection = self._connected(port)
            self.last = answer = self._exchange(connection, method, full, fields, body)
            status = answer.status
        except BaseException as error:
            self._close(port)
            if isinstance(error, LOST):
                self.turns.avoid(port)
            raise
        finally:
            self.way.answers.add(Moment(began, time.monotonic(), port, self.prefix, status))
        if self.way.is_strict and status >= 500:
            raise NotDone(status) if status == BUSY else ConnectionError(answer.body[:200])
        return answer

    def _connected(self, port: int) -> http.client.HTTPConnection:
        found = self._connections.get(port)
        if found is None:
            found = self.connect(port)
            try:
                found.connect()
            except OSError as error:
                self.turns.avoid(port)
                if not self.way.is_strict:
                    raise
                raise NotDone(str(error)) from None
            self._connections[port] = found
        return found


class _SwitchingTables(SwitchingClient, TableClient):
    """The same for tables."""


class Work:
    """Threads that act again and again until they are stopped.

    Arguments:
        pause_s: after each action.
    """

    def __init__(self, acts: Sequence[Callable[[], object]], pause_s: float) -> None:
        self._pause_s = pause_s
        self._stopping = threading.Event()
        self._failed: list[BaseException] = []
        self._threads = [
            threading.Thread(target=self._run, args=(one,), daemon=True) for one in acts
        ]
        for thread in self._threads:
            thread.start()

    def check(self) -> None:
        """Raise the error of a thread that failed."""
        if self._failed:
            raise self._failed[0]

    def stop(self, patience_s: float) -> None:
        """Let each thread finish its action."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(patience_s)
            assert not thread.is_alive(), "a client hangs"
        self.check()

    def _run(self, act: Callable[[], object]) -> None:
        while not self._stopping.wait(self._pause_s):
            try:
                act()
            except (NotDone, *LOST):
                pass  # the history has it
            except BaseException as error:
                self._failed.append(error)
                return
