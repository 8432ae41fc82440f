"""Histories of leases over several gateways, and leases whose end is awaited.

Lives here: the clients' calls, the shipped model's verdict, and the measurement of how long a lease
of 15 s kept others out. Must not live here: which gateway is asked (ways.py).
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from typing import Final

import msgspec

from strongroom.testing.history import CompletedCall, History, Verdict, check
from strongroom.testing.models import Acquire, LeaseAnswer, LeaseModel, Release, Renew
from tests.conformance.answer import Answer
from tests.conformance.client import Client
from tests.proof.gateways.ways import LOST, WAIT, NotDone

LEASE_S: Final = 15
_ASKED_EVERY_S: Final = 0.25
_END_S: Final = 60.0
_OWN: Final = "aaaaaaaa-0000-4000-8000-000000000000"
_OTHER: Final = "bbbbbbbb-0000-4000-8000-{:012x}"
_NOTHING: Final = LeaseAnswer(0)


def act_on(
    client: Client, target: str, action: str, *, wait_s: int = 0, **fields: str | int
) -> Answer:
    """Send one action on a blob's lease, which waits for so long."""
    headers = {f"x-ms-{name.replace('_', '-')}": str(value) for name, value in fields.items()}
    if wait_s:
        headers[WAIT] = str(wait_s)
    return client.put(f"{target}?comp=lease", {"x-ms-lease-action": action, **headers})


class Leases:
    """The history of leases that end only when they are released."""

    kind: Final = "lease"

    def __init__(self, targets: Sequence[str]) -> None:
        self._targets = targets
        self._history = History()
        self._numbers = iter(range(1, 10**9))
        self._lock = threading.Lock()

    def client(self, number: int, seed: int, client: Client) -> Callable[[], None]:
        """Return what a client does again and again. Every second client waits for its leases."""
        chance, held = random.Random(f"{seed} lease {number}"), dict[str, str]()
        wait_s = number % 2

        def act() -> None:
            target = chance.choice(self._targets)
            with self._lock:
                proposed = f"{number:08x}-0000-4000-8000-{next(self._numbers):012x}"
            call = _next(chance, held.get(target), proposed)
            if isinstance(call, Acquire):
                # With any answer, or without one, the client may hold the lease from now on.
                held[target] = proposed
            elif isinstance(call, Release):
                del held[target]
            record = self._history.invoke(f"client {number}", target, call)
            try:
                answer = _send(client, target, call, wait_s)
            except NotDone:
                record.returned(_NOTHING)
                raise
            except LOST:
                record.unknown()
                raise
            record.returned(answer)
            if answer.status == 409 and isinstance(call, Acquire):
                del held[target]

        return act

    def operations(self) -> list[CompletedCall]:
        """Return all calls but those that were certainly not carried out."""
        return [one for one in self._history.operations() if one.result != _NOTHING]

    def verdict(self) -> Verdict:
        return check(self.operations(), LeaseModel())


def _next(chance: random.Random, held: str | None, proposed: str) -> Acquire | Renew | Release:
    if held is None:
        return Acquire(proposed)
    return Renew(held) if chance.randrange(2) else Release(held)


def _send(client: Client, target: str, call: Hashable, wait_s: int) -> LeaseAnswer:
    match call:
        case Acquire(proposed):
            answer = act_on(
                client,
                target,
                "acquire",
                wait_s=wait_s,
                proposed_lease_id=proposed or "",
                lease_duration=-1,
            )
            return LeaseAnswer(answer.status, answer.get("x-ms-lease-id"))
        case Renew(lease_id):
            return LeaseAnswer(act_on(client, target, "renew", lease_id=lease_id).status)
        case Release(lease_id):
            return LeaseAnswer(act_on(client, target, "release", lease_id=lease_id).status)
    raise TypeError(call)


class Kept(msgspec.Struct, frozen=True):
    """How long a lease of LEASE_S kept another client out.

    Attributes:
        most_s: from before it was acquired until after the other one had it.
        least_s: from after it was acquired until before the other one asked for it with success.
    """

    most_s: float
    least_s: float

    @property
    def is_early(self) -> bool:
        """Whether the other client certainly had it too early."""
        return self.most_s < LEASE_S


class AwaitedEnd:
    """A lease whose end another client awaits, in a thread.

    Arguments:
        own, other: two clients.
    """

    def __init__(self, own: Client, other: Client, target: str) -> None:
        self._own, self._other, self._target = own, other, target
        self._found: Kept | None = None
        self._failed: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def result(self) -> Kept:
        """Wait for the end."""
        self._thread.join(_END_S)
        if self._failed is not None:
            raise self._failed
        assert self._found is not None, "the lease does not end"
        return self._found

    def _run(self) -> None:
        try:
            asked, acquired = self._acquired(self._own, itertools.repeat(_OWN))
            # An attempt whose answer is lost shall not make the next one succeed.
            last_asked, last = self._acquired(self._other, map(_OTHER.format, itertools.count()))
            self._found = Kept(last - asked, last_asked - acquired)
        except BaseException as error:
            self._failed = error

    def _acquired(self, client: Client, ids: Iterator[str]) -> tuple[float, float]:
        """Ask until the client has the lease. Return when it asked with success, and when it was
        answered."""
        for lease_id in ids:
            asked = time.monotonic()
            with suppress(NotDone, *LOST):
                answer = act_on(
                    client,
                    self._target,
                    "acquire",
                    proposed_lease_id=lease_id,
                    lease_duration=LEASE_S,
                )
                if answer.status == 201:
                    return asked, time.monotonic()
                assert answer.status == 409, answer
            time.sleep(_ASKED_EVERY_S)
        raise AssertionError("unreachable")
