"""One round: all services are used over all gateways, a fault happens, and all is judged.

Lives here: the load of a round and its judgement. Must not live here: the faults (faults.py), what
is kept of a round (results.py).
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from typing import Final

from strongroom.testing.history import SearchLimitError, Verdict
from tests.conformance.blobs import put
from tests.conformance.client import Client
from tests.engines.postgres.patience import until
from tests.proof.gateways import bodies, registers
from tests.proof.gateways.leases import LEASE_S, AwaitedEnd, Leases
from tests.proof.gateways.messages import Messages
from tests.proof.gateways.registers import Registers, Send
from tests.proof.gateways.results import Result, commit, keep, left
from tests.proof.gateways.serving import Serving
from tests.proof.gateways.ways import Moment, Way, Work
from tests.proof.postgres.http_load import ALL_KINDS, HttpLoad
from tests.proof.postgres.http_store import Clients, made

BEFORE_S: Final = 2.0
AFTER_S: Final = 2.5
BUSY_MAX: Final = 0.01
DEAD_S: Final = 12.0
"""Within this time a share of a gateway that was killed is served again."""
_PAUSE_S: Final = 0.03
_PATIENT: Final = 1  # of each kind, so many clients wait for an answer however long it takes
_CLIENTS: Final = 3
_END_S: Final = 60.0
Measured = dict[str, float]
Fault = Callable[[], Measured]
"""Does something to the gateways or their database, and mends it. Returns what it measured."""


class Histories:
    """The histories of one round, which begin at once.

    Arguments:
        way: to the gateways.
        name: of the container, the table and the queue, which are made here.
        awaits: whether leases are among them that end by themselves after LEASE_S.
    """

    def __init__(self, way: Way, name: str, seed: int, *, awaits: bool = True) -> None:
        self._way, self._name, self._seed = way, name, seed
        patient = way.patient()
        _make(patient, name)
        blobs = patient.clients().blobs
        self.registers = {
            "blob": Registers([f"b{one}" for one in range(4)]),
            "entity": Registers([f"{name}-{one}" for one in range(4)]),
            "partition": Registers(["p0", "p1"], registers.next_of_partition),
            "list": bodies.lists(name),
            "log": bodies.logs(blobs, name),
            "page": bodies.paged(blobs, name),
            "file": registers.files(patient.clients().files, name),
        }
        self.leases = Leases([f"/{name}/la", f"/{name}/lb"])
        self.messages = Messages(name)
        self.awaited = [
            AwaitedEnd(way.strict().clients().blobs, way.strict().clients().blobs, f"/{name}/{one}")
            for one in (("wa", "wb") if awaits else ())
        ]
        self._work = Work(
            [act for number in range(_CLIENTS) for act in self._acts(number)], _PAUSE_S
        )

    def check(self) -> None:
        """Raise the error of a client that failed."""
        self._work.check()

    def stop(self) -> None:
        self._work.stop(_END_S)

    def operations(self) -> int:
        """Return how many calls are judged."""
        of_registers = sum(len(one.operations()) for one in self.registers.values())
        return of_registers + len(self.leases.operations()) + len(self.messages.operations())

    def faults(self, pass_time: Callable[[float], object]) -> Iterator[str]:
        """Judge everything. Yield what is wrong.

        Arguments:
            pass_time: moves store time by so many seconds.
        """
        for kind, one in self.registers.items():
            yield from _explained(kind, one.verdict)
            yield from (f"a stamp of a {kind} fell: {what}" for what in one.fallen)
        yield from _explained("lease", self.leases.verdict)
        for awaited in self.awaited:
            kept = awaited.result()
            if kept.is_early:
                yield f"a lease of {LEASE_S} s ended after {kept.most_s:.2f} s"
        # All leases that end by themselves have ended, so time may pass.
        queues = self._way.patient().clients().queues
        yield from _explained("message", lambda: self.messages.drain(queues, pass_time))

    def _acts(self, number: int) -> Iterator[Callable[[], None]]:
        """Yield what one client of each kind does."""
        way = self._way.strict()
        if number < _PATIENT:
            way = way.patient()
        for kind, one in self.registers.items():
            client, send = self._client(kind, way.clients())
            yield one.client(number, f"{self._seed} {kind}", client, send)
        yield self.leases.client(number, self._seed, way.clients().blobs)
        yield self.messages.client(number, self._seed, way.clients().queues)

    def _client(self, kind: str, own: Clients) -> tuple[Client, Send]:
        match kind:
            case "blob":
                return own.blobs, registers.blob_client(own.blobs, self._name)
            case "entity":
                return own.tables, registers.entity_client(own.tables)
            case "partition":
                return own.tables, registers.partition_client(own.tables, self._name)
            case "list":
                return own.blobs, bodies.list_client(own.blobs)
            case "log":
                return own.blobs, bodies.log_client(own.blobs)
            case "page":
                return own.blobs, bodies.page_client(own.blobs)
            case "file":
                return own.files, registers.file_client(own.files, self._name)
        raise ValueError(kind)


def _make(way: Way, name: str) -> None:
    clients = way.clients()
    made(clients.blobs.put(f"/{name}?restype=container"))
    for leased in ("la", "lb", "wa", "wb"):
        put(clients.blobs, f"/{name}/{leased}")
    made(clients.tables.post("/Tables", {"TableName": name}))
    clients.tables.post("/Tables", {"TableName": "Seen"})  # it may be there: all rounds share it
    made(clients.queues.put(f"/{name}"))


def _explained(kind: str, verdict: Callable[[], Verdict]) -> Iterator[str]:
    try:
        found = verdict()
    except SearchLimitError as error:
        yield f"no verdict on the {kind} history: {error}"
    except AssertionError as error:
        yield f"{kind} history: {error}"
    else:
        if not found.linearizable:
            yield f"{kind} history: {found.explain()}"


def prove(part: str, serving: Serving, count: int, fault: Callable[[int], Measured]) -> None:
    """Play the rounds of a part that have not succeeded yet on this commit.

    Arguments:
        fault: seed -> what happens in its round.
    """
    for seed in left(part, count):
        failures = play(part, serving, seed, functools.partial(fault, seed)).failures
        assert not failures, (seed, *failures)


def play(part: str, serving: Serving, seed: int, fault: Fault) -> Result:
    """Play one round, and keep its result. The fault begins after BEFORE_S of load."""
    began, way = time.monotonic(), serving.way
    name = f"r{seed}x{time.time_ns() % 10**10}"  # a round that is repeated meets nothing of itself
    load = HttpLoad(way, f"l{name}", writers=1, kinds=ALL_KINDS)
    histories = Histories(way, name, seed)
    time.sleep(BEFORE_S)
    failures: list[str] = []
    broke = time.monotonic()
    try:
        more = fault()
        until(serving.serve, "not all gateways serve")
    except AssertionError as error:
        failures.append(str(error))
        more = Measured()
    mended = time.monotonic()
    time.sleep(AFTER_S)
    for what in (histories.check, histories.stop, load.stop):
        try:
            what()
        except AssertionError as error:
            failures.append(str(error))
    verdict = load.verdict(way.patient())
    failures += histories.faults(serving.pass_time)
    if not verdict.is_exact:
        failures.append(f"not exact: {verdict}")

    def is_outside(one: Moment) -> bool:
        is_of_files = one.path.startswith("/file/")
        return one.ended < broke or one.began > (
            max(mended, broke + DEAD_S) if is_of_files else mended
        )

    busy = way.answers.share_busy(is_outside)
    if busy > BUSY_MAX:
        failures.append(f"{busy:.1%} of the answers outside of the fault were 503")
    kept = [one.result() for one in histories.awaited]
    result = Result(
        part=part,
        commit=commit(),
        seed=seed,
        acknowledged=verdict.acknowledged,
        lost=len(verdict.lost),
        twice=len(verdict.twice),
        miscounted=len(verdict.miscounted),
        operations=histories.operations(),
        refused=verdict.refused,
        busy=busy,
        busy_within=way.answers.share_busy(lambda one: not is_outside(one)),
        window_s=mended - broke,
        gap_s=load.gap_s(broke),
        kept_s=[(one.least_s, one.most_s) for one in kept],
        seconds=time.monotonic() - began,
        failures=failures,
        more=more,
    )
    keep(result)
    return result
