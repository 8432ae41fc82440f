"""Schedules for lease mode: the shipped Azure store over a model of the service, in virtual time.

The store sends several requests for one write, so it cannot run in the simulator of single effects.
Here every node is a thread, and only one thread runs at a time. A thread that waits hands control
to the thread that is due next, so a run is a function of its seed. The service keeps blobs, ETags
and leases by a clock of its own. Requests and replies are lost, late or duplicated.
"""

from __future__ import annotations

import heapq
import itertools
import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from strongroom.coordination.clock import SeededRandom
from strongroom.coordination.clock_rules import ClockRules
from strongroom.coordination.drivers.threads import run_steps
from strongroom.coordination.effects import AwaitSignal, Cas, Get, Sleep, Steps
from strongroom.coordination.errors import CoordinationError, StoreUnavailable
from strongroom.coordination.recipes.locks.lock_core import Acquisition
from strongroom.coordination.recipes.locks.lock_request import HoldRequest
from strongroom.coordination.recipes.waiting import NotAcquired
from strongroom.coordination.session.context import RecipeContext
from strongroom.coordination.session.handles import Hold
from strongroom.coordination.stores.azure.account import AzureAccount, AzureAddress
from strongroom.coordination.stores.azure.etag import AzureStore
from strongroom.coordination.stores.azure.lease import AzureLeaseStore
from strongroom.coordination.stores.connections.http_pool import HttpResponse, NoResponse

KEY: Final = "lock/simulated"
TTL_S: Final = 15.0
CHAOS_S: Final = 600.0
CALM_S: Final = CHAOS_S + 60.0  # late messages have arrived by then
END_S: Final = 1000.0
RATE: Final = 0.3
_ADDRESS: Final = AzureAddress(AzureAccount("a", b"key", "http://127.0.0.1:9/a"), "locks")


class World:
    """Virtual time, and the scheduler that lets one thread run at a time.

    Arguments:
        seed: everything follows from it.
    """

    def __init__(self, seed: int) -> None:
        self.chance = SeededRandom(seed)
        self.now_s = 0.0
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._idle = threading.Semaphore(0)
        self._batons: dict[int, threading.Semaphore] = {}

    def at(self, when_s: float, act: Callable[[], None]) -> None:
        """Schedule an action."""
        heapq.heappush(self._due, (when_s, next(self._numbers), act))

    def sleep(self, seconds: float) -> None:
        """Suspend this thread for so much true time."""
        baton = self._batons[threading.get_ident()]
        self.at(self.now_s + seconds, lambda: self._hand(baton))
        self._idle.release()
        baton.acquire()

    def _hand(self, baton: threading.Semaphore) -> None:
        baton.release()
        self._idle.acquire()

    def spawn(self, work: Callable[[], None]) -> threading.Thread:
        """Start a thread, which the scheduler runs."""
        baton = threading.Semaphore(0)

        def run() -> None:
            self._batons[threading.get_ident()] = baton
            baton.acquire()
            try:
                work()
            finally:
                self._idle.release()

        thread = threading.Thread(target=run, daemon=True)
        self.at(self.now_s, lambda: self._hand(baton))
        thread.start()
        return thread

    def run(self) -> None:
        """Run every scheduled action, until none is left."""
        while self._due:
            self.now_s, _, act = heapq.heappop(self._due)
            act()

    @property
    def calm(self) -> bool:
        """Whether the faults have stopped."""
        return self.now_s >= CHAOS_S

    def happens(self, share: float) -> bool:
        """Whether a fault of this probability happens now."""
        return not self.calm and self.chance.random() < share


@dataclass(slots=True)
class _Blob:
    body: bytes
    etag: str
    placeholder: bool
    note: str = ""
    mode: str = ""
    lease: str = ""
    duration_s: float = 0.0
    ends_s: float = 0.0


@dataclass(slots=True)
class Service:
    """One blob of the service, by its own clock. See Microsoft Learn, "Lease Blob", "Put Blob"."""

    rate: float
    blob: _Blob | None = None
    writes: int = 0

    def serve(
        self,
        method: str,
        query: Mapping[str, str],
        sent: Mapping[str, str],
        body: bytes,
        at_s: float,
    ) -> HttpResponse:
        now_s = at_s * self.rate
        if method == "GET":
            return self._get(now_s)
        if query.get("comp") == "lease":
            return self._lease(sent, now_s)
        return self._put(sent, body, now_s)

    def held(self, now_s: float) -> bool:
        return self.blob is not None and self.blob.lease != "" and self.blob.ends_s > now_s

    def _get(self, now_s: float) -> HttpResponse:
        if self.blob is None:
            return _answer(404, "BlobNotFound")
        fields = {"ETag": self.blob.etag, "x-ms-lease-state": "available"}
        if self.held(now_s):
            fields["x-ms-lease-state"] = "leased"
        if self.blob.note:
            fields["x-ms-meta-lease"] = self.blob.note
        if self.blob.mode:
            fields["x-ms-meta-mode"] = self.blob.mode
        if self.blob.placeholder:
            fields["x-ms-meta-placeholder"] = "1"
        return _answer(200, "", fields, self.blob.body)

    def _put(self, sent: Mapping[str, str], body: bytes, now_s: float) -> HttpResponse:
        blob, mine = self.blob, sent.get("x-ms-lease-id", "")
        if blob is None:
            if "if-match" in sent or mine:
                return _answer(412, "ConditionNotMet")
            blob = _Blob(b"", "", False)
        elif "if-none-match" in sent:
            return _answer(409, "BlobAlreadyExists")
        elif sent.get("if-match") != blob.etag:
            return _answer(412, "ConditionNotMet")
        elif self.held(now_s) and mine != blob.lease:
            return _answer(412, "LeaseIdMissing")
        elif mine and not self.held(now_s):
            return _answer(412, "LeaseLost")
        self.writes += 1
        blob.body, blob.etag = body, f'"{self.writes}"'
        blob.placeholder = "x-ms-meta-placeholder" in sent
        blob.note, blob.mode = sent.get("x-ms-meta-lease", ""), sent.get("x-ms-meta-mode", "")
        if not mine:
            blob.lease = ""  # a write after the lease's end, which can no longer be renewed
        self.blob = blob
        return _answer(201, "", {"ETag": blob.etag})

    def _lease(self, sent: Mapping[str, str], now_s: float) -> HttpResponse:
        blob, action = self.blob, sent["x-ms-lease-action"]
        if blob is None:
            return _answer(404, "BlobNotFound")
        if "if-match" in sent and sent["if-match"] != blob.etag:
            return _answer(412, "ConditionNotMet")
        mine = sent.get("x-ms-lease-id", "") or sent.get("x-ms-proposed-lease-id", "")
        if action == "acquire":
            if self.held(now_s) and mine != blob.lease:
                return _answer(409, "LeaseAlreadyPresent")
            blob.lease, blob.duration_s = mine, float(sent["x-ms-lease-duration"])
        elif action == "change":
            proposed = sent["x-ms-proposed-lease-id"]
            if not self.held(now_s) or blob.lease not in (mine, proposed):
                return _answer(409, "LeaseIdMismatchWithLeaseOperation")
            blob.lease = proposed
            return _answer(200, "")
        elif mine != blob.lease:
            return _answer(409, "LeaseIdMismatchWithLeaseOperation")
        if action == "release":
            blob.lease = ""
        else:
            blob.ends_s = now_s + blob.duration_s
        return _answer(201 if action == "acquire" else 200, "")


def _answer(
    status: int, code: str, fields: Mapping[str, str] | None = None, body: bytes = b""
) -> HttpResponse:
    everything = {"x-ms-error-code": code, **(fields or {})}
    headers = {name.lower(): value for name, value in everything.items() if value}
    return HttpResponse(status, headers, body)


class Network:
    """The network of a node's store, in place of `AzureHttp`."""

    host = "127.0.0.1"

    def __init__(self, world: World, service: Service, rate: float) -> None:
        self._world, self._service, self._rate = world, service, rate

    def send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        timeout_s: float,
        body: bytes = b"",
        long_polls: bool = False,
    ) -> HttpResponse:
        assert not long_polls
        world, gives_up_s = self._world, self._world.now_s + timeout_s / self._rate
        if world.happens(0.01):
            world.sleep(0.01)
            raise StoreUnavailable("refused")
        answers: list[HttpResponse] = []

        def arrive() -> None:
            answers.append(self._service.serve(method, query, headers, body, world.now_s))

        arrives_s = world.now_s + self._latency_s()
        if world.happens(0.02):
            world.at(arrives_s + world.chance.uniform(0.0, 20.0), arrive)
        lost = world.happens(0.04)
        if not lost:
            world.at(arrives_s, arrive)
        replied_s = arrives_s + self._latency_s()
        if lost or world.happens(0.04) or replied_s > gives_up_s:
            world.sleep(max(0.0, gives_up_s - world.now_s))
            raise NoResponse("no answer in time")
        world.sleep(replied_s - world.now_s)
        return answers[0]

    def _latency_s(self) -> float:
        if self._world.happens(0.03):
            return self._world.chance.uniform(0.0, 20.0)
        return 0.005 + 0.01 * self._world.chance.random()


class NodeClock:
    """Clocks with a wrong offset and a wrong rate."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._offset_s = world.chance.uniform(-5.0, 5.0)
        self.rate = world.chance.uniform(1 - RATE, 1 + RATE)

    def boot_s(self) -> float:
        return 1000.0 + self._offset_s + self._world.now_s * self.rate

    monotonic_s = boot_s

    def wall_text(self) -> str:
        return f"{self.boot_s():.3f}"

    def random(self) -> float:
        return self._world.chance.random()

    def nonce(self) -> str:
        return f"{self._world.chance.getrandbits(64):016x}"


@dataclass(slots=True)
class Outcome:
    """The result of one seed."""

    violations: list[str] = field(default_factory=list)
    holds_count: int = 0
    losses_count: int = 0


class Node:
    """One participant, which repeatedly acquires, renews, sometimes sleeps too long, and
    releases."""

    def __init__(
        self,
        world: World,
        service: Service,
        beliefs: list[Hold],
        told: Outcome,
        fair: bool,
        leases: bool = True,
    ) -> None:
        self._world, self._beliefs, self._told, self._fair = world, beliefs, told, fair
        self._clock = NodeClock(world)
        kind = AzureLeaseStore if leases else AzureStore
        self._store = kind(_ADDRESS, long_polls=False, clock=self._clock)
        network: Any = Network(world, service, self._clock.rate)
        self._store._http = network
        promises = self._store.promises()
        self._context = RecipeContext(self._clock, ClockRules(RATE), promises, f"node {id(self)}")
        self.last_s = -math.inf

    def perform(self, steps: Steps[Any]) -> Any:
        """Run steps to their end, and return their result."""
        return run_steps(steps, self._outcome)

    def _outcome(self, effect: Any) -> Any:
        if isinstance(effect, Cas):
            return self._store.cas(*effect)
        if isinstance(effect, Get):
            return self._store.get(*effect)
        assert isinstance(effect, Sleep)
        return self._world.sleep(effect.seconds / self._clock.rate)

    def live(self) -> None:
        """Run until the end of the simulation."""
        chance = self._world.chance
        while self._world.now_s < END_S:
            self._world.sleep(chance.uniform(0.0, 5.0))
            wait_s = chance.choice((0.0, 5.0, 60.0))
            self._acquire(Acquisition(self._context, self._request(wait_s)).steps())

    def _request(self, wait_s: float) -> HoldRequest:
        return HoldRequest(KEY, "simulated", TTL_S, wait_s, self._fair)

    def _acquire(self, steps: Steps[Hold | NotAcquired]) -> None:
        try:
            hold = self.perform(steps)
        except CoordinationError:
            return
        if isinstance(hold, Hold):
            heir = None
            if self._world.happens(0.5):
                # Another caller of this node waits in line.
                heir = Acquisition(self._context, self._request(60.0)).steps()
                assert isinstance(heir.send(None), AwaitSignal)
            self._use(hold)
            if heir is not None:
                self._acquire(heir)

    def _use(self, hold: Hold) -> None:
        told, chance = self._told, self._world.chance
        others = [other for other in self._beliefs if other.active and other.remaining_s() > 0]
        if others:
            told.violations.append(f"{self._world.now_s:.2f} s: two believe, fence {hold.fence}")
        if self._beliefs and hold.fence <= max(other.fence for other in self._beliefs):
            told.violations.append(f"{self._world.now_s:.2f} s: fence {hold.fence} came again")
        self._beliefs.append(hold)
        told.holds_count += 1
        self.last_s = self._world.now_s
        for _ in range(chance.randint(0, 4)):
            self._world.sleep(chance.uniform(5.0, 40.0) if self._world.happens(0.1) else 3.0)
            self._renew(hold)
        if hold.end():
            self.perform(hold.keeper.release(hold))
            return
        told.losses_count += 1
        if self._world.now_s > CALM_S:
            told.violations.append(f"{self._world.now_s:.2f} s: lost in calm: {hold.reason}")

    def _renew(self, hold: Hold) -> None:
        """Retry until the hold is renewed or over, as the renewal task does."""
        rules = self._context.rules
        while hold.active and hold.remaining_s() > 0:
            try:
                if self.perform(hold.keeper.renew(hold)):
                    return
            except CoordinationError as error:
                hold.last_error = str(error)
            retry_s = rules.retry_after_s(TTL_S, self._clock.random())
            self._world.sleep(retry_s / self._clock.rate)


def run_schedule(seed: int, fair: bool = False, mixed: bool = False) -> Outcome:
    """Run one seed: four nodes, and a service whose clock may be wrong too.

    Arguments:
        seed: determines the whole run.
        fair: the lock has a queue.
        mixed: two of the nodes open the container in ETag mode.
    """
    world, told = World(seed), Outcome()
    service = Service(world.chance.uniform(1 - RATE, 1 + RATE))
    beliefs: list[Hold] = []
    nodes = [
        Node(world, service, beliefs, told, fair, leases=not mixed or number < 2)
        for number in range(4)
    ]
    threads = [world.spawn(node.live) for node in nodes]
    world.run()
    for thread in threads:
        thread.join(10)
    for number, node in enumerate(nodes):
        if node.last_s < CHAOS_S:
            told.violations.append(f"node {number} was stranded after the faults had stopped")
    if service.held(world.now_s * service.rate):
        told.violations.append("a lease was left behind")
    return told
