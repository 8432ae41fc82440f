"""Rounds of work on a simulated disk that loses power, and the checks after each restart.

Lives here: the workload and its judge. The short run is in test_power_cuts.py, the long one in
tests/proof. All facts that answers have shown are noted: acknowledged writes, values in refusals,
values read. None of them may be lost or torn after the cut.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from strongroom.clock import ManualClock
from strongroom.engines.base import (
    Commit,
    EngineError,
    Partition,
    Record,
    Ref,
    Step,
    StorageEngine,
    Write,
)
from strongroom.engines.embedded.store import EmbeddedEngine, EmbeddedOptions, open_store
from strongroom.engines.embedded.upkeep.check import check
from strongroom.testing.contract.subject import content, face, hidden, pieces, value
from tests.engines.disks.disk import Disk, DiskFiles
from tests.engines.disks.sqlite import DiskVfs
from tests.engines.embedded_stores import options_on

BALLAST_BYTES: Final = 64 * 1024
_LARGE_BODY_BYTES: Final = 48 * 1024
_WORKERS: Final = 6
_COUNTER: Final = face(b"counter", b"shared")
_vfs_numbers = itertools.count()


@dataclass
class ObservedState:
    """The facts that answers have shown, and the operations in progress when the power was cut."""

    heads: dict[int, bytes | None] = field(default_factory=dict)
    under_way: dict[int, bytes] = field(default_factory=dict)
    bodies: dict[bytes, bytes] = field(default_factory=dict)
    counter: int = 0
    counter_tried: int = 0
    stamp: int = 0
    now: int = 0


class _TooLow(Exception):
    """A refusal that contains the counter's value."""


def _partition(worker: int) -> Partition:
    return Partition(b"blobs", b"worker-%d" % worker)


def _head(worker: int) -> Ref:
    return face(b"", _partition(worker).name, b"blobs")


def _proof(worker: int) -> Ref:
    return hidden(b"proof", _partition(worker).name, b"blobs")


async def _replace(
    store: StorageEngine, worker: int, observed: ObservedState, chance: random.Random
) -> None:
    """Write a body, and make it the worker's content in place of its earlier one."""
    body = chance.randbytes(chance.choice((0, 700, 20_000, 70_000)))
    known = len(body) if chance.random() < 0.7 else None
    written = await store.contents.write(pieces(body, 16_000), known)
    head = b"%d" % written.id
    observed.bodies[head] = body

    def decide(records: Sequence[Record | None], stamp: int) -> Commit[int]:
        old = records[0]
        step = Step(
            _partition(worker),
            (Write(_head(worker).key, head), Write(_proof(worker).key, _digest(head))),
            (written.id,),
            () if old is None else (int(old.value),),
        )
        return Commit(stamp, (step,))

    observed.under_way[worker] = head
    stamp = await store.update(_partition(worker), [_head(worker)], decide)
    observed.heads[worker] = head
    del observed.under_way[worker]
    observed.stamp = max(observed.stamp, stamp)


async def _count(store: StorageEngine, observed: ObservedState) -> None:
    def decide(records: Sequence[Record | None], stamp: int) -> Commit[int]:
        number = int(records[0].value) + 1 if records[0] else 1
        observed.counter_tried = max(observed.counter_tried, number)
        step = Step(_COUNTER.partition, (Write(_COUNTER.key, b"%d" % number),))
        return Commit(number, (step,))

    observed.counter = max(
        observed.counter, await store.update(_COUNTER.partition, [_COUNTER], decide)
    )


async def _be_refused(store: StorageEngine, observed: ObservedState) -> None:
    """Provoke a refusal, which shows the counter's value: that must be durable too."""

    def decide(records: Sequence[Record | None], stamp: int) -> Commit[None]:
        raise _TooLow(records[0].value.decode() if records[0] else "0")

    try:
        await store.update(_COUNTER.partition, [_COUNTER], decide)
    except _TooLow as refusal:
        observed.counter = max(observed.counter, int(str(refusal)))


async def _look(store: StorageEngine, observed: ObservedState) -> None:
    observed.counter = max(observed.counter, int(await value(store, _COUNTER) or b"0"))
    observed.now = max(observed.now, await store.now())


async def _work(
    store: StorageEngine, worker: int, observed: ObservedState, seed: int, rounds: int
) -> None:
    chance = random.Random(seed * 100 + worker)
    for _ in range(rounds):
        choice = chance.random()
        if choice < 0.5:
            await _replace(store, worker, observed, chance)
        elif choice < 0.7:
            await _count(store, observed)
        elif choice < 0.85:
            await _be_refused(store, observed)
        else:
            await _look(store, observed)


async def live(
    disk: Disk, clock: ManualClock, observed: ObservedState, seed: int, rounds: int
) -> None:
    """Open a store on the disk and work until the rounds or the power end."""
    with DiskVfs(disk, f"strongroom-cut-{next(_vfs_numbers)}") as vfs:
        options = options_on(disk, vfs, _LARGE_BODY_BYTES, BALLAST_BYTES, files=DiskFiles)
        try:
            store = await open_store(f"{disk.root}/data", clock, options=options)
        except Exception:
            if not disk.lost_power:
                raise
            return
        try:
            working = [
                asyncio.create_task(_work(store, worker, observed, seed, rounds))
                for worker in range(_WORKERS)
            ]
            for outcome in await asyncio.gather(*working, return_exceptions=True):
                if outcome is not None and not (
                    disk.lost_power and isinstance(outcome, EngineError)
                ):
                    raise outcome
        finally:
            await store.close()


async def judge(root: Path, clock: ManualClock, observed: ObservedState) -> None:
    """Check after the cut: all observed facts hold, nothing is torn, time did not go back."""
    store = await open_store(
        root / "data", clock, options=EmbeddedOptions(ballast_bytes=BALLAST_BYTES)
    )
    try:
        await _judge_records(store, observed)
        for worker in range(_WORKERS):
            await _judge_worker(store, worker, observed)
    finally:
        await store.close()
    findings = list(check(root / "data"))
    assert not findings, findings


async def _judge_records(store: EmbeddedEngine, observed: ObservedState) -> None:
    counter = int(await value(store, _COUNTER) or b"0")
    assert observed.counter <= counter <= observed.counter_tried, "an answer was taken back"
    assert await store.now() >= observed.now, "time went back"
    stamp = await store.update(Partition(b"x", b"x"), [], lambda _, stamp: Commit(stamp))
    assert stamp > observed.stamp, "a stamp was given twice"


async def _judge_worker(store: EmbeddedEngine, worker: int, observed: ObservedState) -> None:
    head, proof = await store.read([_head(worker), _proof(worker)])
    allowed = {
        observed.heads.get(worker),
        observed.under_way.get(worker, observed.heads.get(worker)),
    }
    found = None if head is None else head.value
    assert found in allowed, "an acknowledged write is lost, or one that never was appeared"
    if found is None:
        assert proof is None
        return
    assert proof is not None
    assert proof.value == _digest(found), "half of a commit happened"
    assert await content(store, int(found)) == observed.bodies[found], "a body is torn or lost"
    # The judge's reads are observed facts too: the next life must keep them.
    observed.heads[worker] = found
    observed.under_way.pop(worker, None)


def _digest(head: bytes) -> bytes:
    return hashlib.sha256(head).digest()


def run_round(directory: Path, seed: int, rounds: int) -> int:
    """Run two lives on one disk, each ended by a power cut, and judge each. Return the number of
    operations seen."""
    chance = random.Random(seed)
    clock = ManualClock()
    observed = ObservedState()
    operations = 0
    for life in range(2):
        root = directory / f"life-{life}"
        root.mkdir(exist_ok=True)
        disk = Disk(root)
        # The cut may also come while the store is created, opened or closed.
        disk.cut_at = chance.choice((chance.randrange(1, 80), chance.randrange(80, 1200)))
        asyncio.run(live(disk, clock, observed, seed + life, rounds))
        operations += disk.operations
        clock.step_wall(chance.choice((-3600.0, 30.0)))
        for variant in (0, 1, chance.randrange(2, 1 << 30), chance.randrange(2, 1 << 30)):
            target = directory / f"life-{life + 1}"
            if target.exists():
                target.rename(directory / f"before-{life}-{variant}")
            target.mkdir()
            disk.after_power_cut(target, variant)
            asyncio.run(judge(target, clock, _copy(observed)))
        asyncio.run(judge(directory / f"life-{life + 1}", clock, observed))
    return operations


def _copy(observed: ObservedState) -> ObservedState:
    return ObservedState(
        dict(observed.heads),
        dict(observed.under_way),
        observed.bodies,
        observed.counter,
        observed.counter_tried,
        observed.stamp,
        observed.now,
    )
