"""Histories of registers and locks over memory and file are linearizable.

The faults are lost answers, late writes, killed clients and paused clients. Stores that break their
contract are detected.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from strongroom.coordination.effects import (
    Applied,
    CasOutcome,
    Entry,
    LeaseTerms,
    Unknown,
    Watched,
)
from strongroom.coordination.store import Promises
from strongroom.coordination.stores.memory import MemoryStore
from strongroom.coordination.stores.threaded_store import StoreBase
from tests.coordination.histories import ClientProcesses, judge_processes, judge_threads
from tests.coordination.history_client import Kind

KINDS: tuple[Kind, ...] = ("register", "lock")
SEEDS = range(8)


class Unsteady(StoreBase):
    """Memory whose answers are lost, and whose writes then come late, or never."""

    def __init__(self, seed: int) -> None:
        self.memory, self.chance = MemoryStore(), random.Random(seed)

    def get(self, key: str, timeout_s: float) -> Entry | None:
        """See `Store.get`."""
        return self.memory.get(key, timeout_s)

    def cas(
        self,
        key: str,
        expected: str | None,
        value: bytes,
        timeout_s: float,
        lease: LeaseTerms | None = None,
        note: str = "",
    ) -> CasOutcome:
        """See `Store.cas`; one in ten answers is lost."""
        dice = self.chance.random()
        terms = (key, expected, value, timeout_s, lease, note)
        if dice > 0.1:
            return self.memory.cas(*terms)
        if dice < 0.03:
            self.memory.cas(*terms)
        elif dice < 0.07:
            timer = threading.Timer(self.chance.random() * 0.2, self.memory.cas, terms)
            timer.daemon = True
            timer.start()
        return Unknown("lost")

    def watch(self, key: str, version: str | None, timeout_s: float) -> Watched:
        """See `Store.watch`."""
        return self.memory.watch(key, version, timeout_s)

    def delete(self, key: str, expected: str, timeout_s: float) -> CasOutcome:
        """See `Store.delete`."""
        return self.memory.delete(key, expected, timeout_s)

    def list_keys(self, prefix: str, timeout_s: float) -> list[str]:
        """See `Store.list_keys`."""
        return self.memory.list_keys(prefix, timeout_s)

    def promises(self) -> Promises:
        """See `Store.promises`."""
        return self.memory.promises()


class AnswersStaleReads(Unsteady):
    """Mutant: some reads return the value before the last write."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.before: dict[str, Entry | None] = {}

    def get(self, key: str, timeout_s: float) -> Entry | None:
        """Read, or remember."""
        if key in self.before and self.chance.random() < 0.1:
            return self.before[key]
        return self.memory.get(key, timeout_s)

    def cas(
        self,
        key: str,
        expected: str | None,
        value: bytes,
        timeout_s: float,
        lease: LeaseTerms | None = None,
        note: str = "",
    ) -> CasOutcome:
        """Write, and remember the previous value."""
        before = self.memory.get(key, timeout_s)
        outcome = self.memory.cas(key, expected, value, timeout_s, lease, note)
        if isinstance(outcome, Applied):
            self.before[key] = before
        return outcome


class ForgetsWrites(Unsteady):
    """Mutant: some writes that were answered are gone."""

    def cas(
        self,
        key: str,
        expected: str | None,
        value: bytes,
        timeout_s: float,
        lease: LeaseTerms | None = None,
        note: str = "",
    ) -> CasOutcome:
        """Write, or only say so."""
        entry = self.memory.get(key, timeout_s)
        if (entry.version if entry else None) == expected and self.chance.random() < 0.05:
            return Applied(f"forgotten-{self.chance.getrandbits(40):x}")
        return self.memory.cas(key, expected, value, timeout_s, lease, note)


class AppliesTwice(Unsteady):
    """Mutant: some writes come once more, later, whatever is there then."""

    def cas(
        self,
        key: str,
        expected: str | None,
        value: bytes,
        timeout_s: float,
        lease: LeaseTerms | None = None,
        note: str = "",
    ) -> CasOutcome:
        """Write; maybe again."""
        outcome = self.memory.cas(key, expected, value, timeout_s, lease, note)
        if isinstance(outcome, Applied) and self.chance.random() < 0.1:
            timer = threading.Timer(self.chance.random() * 0.05, self._again, (key, value))
            timer.daemon = True
            timer.start()
        return outcome

    def _again(self, key: str, value: bytes) -> None:
        entry = self.memory.get(key, 1.0)
        self.memory.cas(key, entry.version if entry else None, value, 1.0)


class IgnoresVersions(Unsteady):
    """Mutant: the expected version of a write is ignored."""

    def cas(
        self,
        key: str,
        expected: str | None,
        value: bytes,
        timeout_s: float,
        lease: LeaseTerms | None = None,
        note: str = "",
    ) -> CasOutcome:
        """Write over whatever is there, a moment later."""
        time.sleep(self.chance.random() * 0.002)
        entry = self.memory.get(key, timeout_s)
        return self.memory.cas(key, entry.version if entry else None, value, timeout_s)


# Locks bear stale reads: whatever they do is decided by a compare-and-swap.
MUTANTS: tuple[tuple[Kind, type[Unsteady]], ...] = (
    ("register", AnswersStaleReads),
    ("register", ForgetsWrites),
    ("register", AppliesTwice),
    ("register", IgnoresVersions),
    ("lock", ForgetsWrites),
    ("lock", AppliesTwice),
    ("lock", IgnoresVersions),
)


@pytest.mark.parametrize("kind", KINDS)
def test_memory(kind: Kind, tmp_path: Path) -> None:
    judged = judge_threads(kind, MemoryStore(), tmp_path / "journals", 1, 1.0)
    assert judged.verdict.linearizable, judged
    assert judged.operations > 100


@pytest.mark.parametrize("kind", KINDS)
def test_memory_with_lost_answers_and_late_writes(kind: Kind, tmp_path: Path) -> None:
    for seed in range(3):
        judged = judge_threads(kind, Unsteady(seed), tmp_path / f"{seed}", seed, 1.0, ttl_s=0.3)
        assert judged.verdict.linearizable, judged
        assert judged.operations > 50


@pytest.mark.parametrize(("kind", "mutant"), MUTANTS)
def test_a_store_that_breaks_its_promise_is_found_out(
    kind: Kind, mutant: type[Unsteady], tmp_path: Path
) -> None:
    for seed in SEEDS:
        judged = judge_threads(kind, mutant(seed), tmp_path / f"{seed}", seed, 0.5, ttl_s=0.3)
        if not judged.verdict.linearizable:
            return
    pytest.fail(f"{mutant.__name__} survives {len(SEEDS)} histories")


def test_file_with_clients_that_are_killed_and_stopped(tmp_path: Path) -> None:
    url = f"file://{tmp_path}/store?sync=0"

    def disturb(groups: Sequence[ClientProcesses]) -> None:
        time.sleep(0.5)
        for group in groups:
            group.kill_one()
            with group.one_stopped():
                time.sleep(1.0)
        time.sleep(0.5)

    groups = [ClientProcesses(kind, url, tmp_path / kind, seed=3, ttl_s=0.6) for kind in KINDS]
    for judged in judge_processes(groups, disturb):
        assert judged.verdict.linearizable, judged
        assert judged.operations > 100
