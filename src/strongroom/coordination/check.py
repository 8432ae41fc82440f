"""Checks a live store: whether it does what locks need, and how its clock compares with this one.

Lives here: the checks that `strongroom check-store` runs, with real requests on keys of their own.
Must not live here: the conformance suite of the stores we ship (tests/), what stores promise.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from strongroom.coordination.client import Client
from strongroom.coordination.clock import Clocks
from strongroom.coordination.effects import Applied, CasOutcome, LeaseAction, LeaseTerms
from strongroom.coordination.errors import CoordinationError
from strongroom.coordination.store import Store

_TIMEOUT_S: Final = 10.0
_RACERS: Final = 16
_ROUNDS: Final = 20


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The name of a check, whether the store passed it, and what was measured or went wrong."""

    what: str
    passed: bool
    found: str


def check(client: Client) -> list[CheckResult]:
    """Run all checks against the client's store.

    Returns: one result per check. If the store cannot be reached, every check fails.
    """
    trial = _StoreChecks(client.store, client.context.clock)
    checks: list[tuple[str, Callable[[], str]]] = [
        ("a key is created once", trial.creation),
        ("a write with an old version is refused", trial.stale_write),
        (f"of {_RACERS} racing writers one wins", trial.race),
        ("versions never repeat", trial.versions),
        ("notes and values come back", trial.values),
        ("keys are listed", trial.listing),
        ("round trip", trial.round_trip),
    ]
    if client.promises().server_lease:
        checks.append(("the store's clock", trial.lease_clock))
    findings = []
    for name, run in checks:
        try:
            findings.append(CheckResult(name, True, run()))
        except (_ContractBroken, CoordinationError) as error:
            findings.append(CheckResult(name, False, str(error) or type(error).__name__))
    trial.clean()
    return findings


class _ContractBroken(Exception):
    """The store broke the contract; the message says how."""


class _StoreChecks:
    def __init__(self, store: Store, clock: Clocks) -> None:
        self._store, self._clock = store, clock
        self._prefix = f"check/{clock.nonce()}"
        self._written_keys: list[str] = []

    def _key(self, name: str) -> str:
        key = f"{self._prefix}-{name}"
        self._written_keys.append(key)
        return key

    def _write(
        self,
        key: str,
        expected: str | None,
        value: bytes,
        lease: LeaseTerms | None = None,
        note: str = "",
    ) -> CasOutcome:
        return self._store.cas(key, expected, value, _TIMEOUT_S, lease, note)

    def _require_applied(self, outcome: CasOutcome) -> str:
        if not isinstance(outcome, Applied):
            raise _ContractBroken(f"a write was answered {outcome!r}")
        return outcome.version

    def creation(self) -> str:
        key = self._key("creation")
        if self._store.get(key, _TIMEOUT_S) is not None:
            raise _ContractBroken("a key that was never written is there")
        self._require_applied(self._write(key, None, b"one"))
        if isinstance(self._write(key, None, b"two"), Applied):
            raise _ContractBroken("it was created twice")
        return self._expect(key, b"one")

    def stale_write(self) -> str:
        key = self._key("stale")
        first = self._require_applied(self._write(key, None, b"1"))
        self._require_applied(self._write(key, first, b"2"))
        if isinstance(self._write(key, first, b"3"), Applied):
            raise _ContractBroken("it was written with an old version")
        return self._expect(key, b"2")

    def race(self) -> str:
        key = self._key("race")
        version: str | None = None
        with ThreadPoolExecutor(_RACERS) as pool:
            for round_number in range(_ROUNDS):
                expected = version
                writes = [
                    pool.submit(self._write, key, expected, b"%d-%d" % (round_number, racer))
                    for racer in range(_RACERS)
                ]
                applied = [
                    outcome
                    for outcome in (write.result() for write in writes)
                    if isinstance(outcome, Applied)
                ]
                if len(applied) != 1:
                    raise _ContractBroken(
                        f"{len(applied)} of {_RACERS} won in round {round_number + 1}"
                    )
                version = applied[0].version
        return f"{_ROUNDS} rounds"

    def versions(self) -> str:
        key = self._key("versions")
        version = self._require_applied(self._write(key, None, b"same"))
        seen = {version}
        for _ in range(_ROUNDS):
            version = self._require_applied(self._write(key, version, b"same"))
            if version in seen:
                raise _ContractBroken("two writes of one value have one version")
            seen.add(version)
        return f"{len(seen)} writes of one value"

    def values(self) -> str:
        key, value = self._key("values"), bytes(range(256)) * 4
        self._require_applied(self._write(key, None, value, note="a-note"))
        entry = self._store.get(key, _TIMEOUT_S)
        if entry is None or entry.value != value or entry.note != "a-note":
            raise _ContractBroken("what was written is not what is read")
        return f"{len(value)} bytes"

    def listing(self) -> str:
        keys = sorted(self._key(f"list-{number}") for number in range(3))
        for key in keys:
            self._require_applied(self._write(key, None, b"x"))
        found = self._store.list_keys(f"{self._prefix}-list-", _TIMEOUT_S)
        if found != keys:
            raise _ContractBroken(f"{len(found)} of {len(keys)} keys are listed")
        return f"{len(found)} keys"

    def round_trip(self) -> str:
        key = self._key("pace")
        version = self._require_applied(self._write(key, None, b"0"))
        start_s = self._clock.monotonic_s()
        for number in range(_ROUNDS):
            version = self._require_applied(self._write(key, version, b"%d" % number))
        write_s = (self._clock.monotonic_s() - start_s) / _ROUNDS
        start_s = self._clock.monotonic_s()
        for _ in range(_ROUNDS):
            self._store.get(key, _TIMEOUT_S)
        read_s = (self._clock.monotonic_s() - start_s) / _ROUNDS
        return f"{write_s * 1000:.2f} ms a write, {read_s * 1000:.2f} ms a read"

    def lease_clock(self) -> str:
        """Compare the store's lease clock with this machine's clock.

        Returns: a sentence with the seconds left on a fresh lease, and the seconds that passed
        here.

        Raises:
            _ContractBroken: the fresh lease is not alive, or lasts much longer than its TTL.
        """
        key, nonce = self._key("clock"), f"{self._clock.nonce()}-1"
        ttl_s = max(15.0, self._store.promises().ttl_min_s)
        sent_s = self._clock.boot_s()
        terms = LeaseTerms(LeaseAction.ACQUIRE, ttl_s, nonce)
        version = self._require_applied(self._write(key, None, b"x", terms))
        entry = self._store.get(key, _TIMEOUT_S)
        elapsed_s = self._clock.boot_s() - sent_s
        self._write(key, version, b"y", LeaseTerms(LeaseAction.RELEASE, ttl_s, nonce))
        if entry is None or entry.expires_in_s is None or entry.expires_in_s <= 0:
            raise _ContractBroken("a hold that was just taken is not alive")
        if entry.expires_in_s == float("inf"):
            return f"alive; the store does not say for how long (asked {elapsed_s:.3f} s later)"
        clock_lead_s = ttl_s - entry.expires_in_s - elapsed_s
        if clock_lead_s > ttl_s / 10:
            raise _ContractBroken(
                f"a hold of {ttl_s:g} s has {entry.expires_in_s:.3f} s left at once"
            )
        return f"{ttl_s:g} s: {entry.expires_in_s:.3f} s left after {elapsed_s:.3f} s"

    def _expect(self, key: str, value: bytes) -> str:
        entry = self._store.get(key, _TIMEOUT_S)
        if entry is None or entry.value != value:
            raise _ContractBroken("what was written is not what is read")
        return "as it must be"

    def clean(self) -> None:
        """Delete the keys that the checks wrote; errors of the store are ignored."""
        for key in self._written_keys:
            try:
                entry = self._store.get(key, _TIMEOUT_S)
                if entry is not None:
                    self._store.delete(key, entry.version, _TIMEOUT_S)
            except CoordinationError:
                continue
