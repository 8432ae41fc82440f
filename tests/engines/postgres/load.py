"""Load on gateways of one store, with a record of what was acknowledged, and its verification.

Lives here: writers that increment counters, and the judgement of what they left. Each increment
writes a receipt of its own in the same commit. So it is known of every increment whether it
happened: none that was acknowledged may be missing, and none may have happened twice. Must not live
here: the faults.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from itertools import pairwise
from typing import Final

import msgspec

from strongroom.engines.base import (
    Busy,
    Commit,
    CommitUnknown,
    ContentMissing,
    Key,
    Partition,
    Record,
    Ref,
    Step,
    StorageEngine,
    Unavailable,
    Write,
)

_PAUSE_S: Final = 0.02
_BODY_BYTES: Final = 20_000
_COUNTER: Final = Key(False, b"counter")
_UNTIL: Final = 10_000


class Receipt(msgspec.Struct, frozen=True):
    """One acknowledged increment.

    Attributes:
        name: of the hidden record that it wrote.
        number: what the counter was after it.
        stamp: the version of both records.
        content: the body that it adopted, 0 = none.
    """

    partition: str
    name: str
    number: int
    stamp: int
    content: int = 0


class Verdict(msgspec.Struct, frozen=True):
    """What became of the increments.

    Attributes:
        acknowledged: how many were.
        lost: acknowledged ones of which nothing, or something else, is there.
        miscounted: partitions whose counter is not the number of their receipts.
        unordered: partitions in which a later increment has no greater stamp.
        unknown: how many ended as CommitUnknown.
        refused: how many were refused as Unavailable, and tried again.
        longest_gap_s: the longest time without an acknowledgement.
    """

    acknowledged: int
    lost: tuple[Receipt, ...]
    miscounted: tuple[str, ...]
    unordered: tuple[str, ...]
    unknown: int
    refused: int
    longest_gap_s: float

    @property
    def is_exact(self) -> bool:
        """Whether nothing is lost, nothing happened twice, and no stamp fell."""
        return not (self.lost or self.miscounted or self.unordered)


class Load:
    """Writers on gateways of one store, until `stop`.

    Arguments:
        gateways: returns the gateways that serve at present; the writers take turns at them.
        writers: how many.
        partitions: how many counters they share.
        seed: of the order in which they are incremented.
        name: distinguishes the receipts of several loads.

    Attributes:
        receipts: what was acknowledged, in that order.
        on_receipt: called for each.
    """

    def __init__(
        self,
        gateways: Callable[[], Sequence[StorageEngine]],
        writers: int = 24,
        partitions: int = 8,
        seed: int = 0,
        *,
        name: str = "load",
    ) -> None:
        self._gateways = gateways
        self._partitions = [Partition(b"load", b"%d" % one) for one in range(partitions)]
        self._seed, self._name = seed, name
        self.receipts: list[Receipt] = []
        self.on_receipt: Callable[[Receipt], None] = lambda receipt: None
        self.unknown = self.refused = 0
        self.longest_gap_s = 0.0
        self._last = time.monotonic()
        self._running = True
        self._tasks = [asyncio.create_task(self._write(one)) for one in range(writers)]

    async def acknowledges(self, count: int) -> None:
        """Return once `count` more increments were acknowledged. Raises what a writer raised."""
        wanted = len(self.receipts) + count
        while len(self.receipts) < wanted:
            for task in self._tasks:
                if task.done():
                    task.result()
            await asyncio.sleep(0.005)

    async def stop(self) -> None:
        """Let each writer finish its increment."""
        self._running = False
        await asyncio.gather(*self._tasks)

    async def verdict(self, store: StorageEngine) -> Verdict:
        """Compare what was acknowledged with what a gateway reads."""
        found: dict[tuple[str, str], Record] = {}
        miscounted, unordered = [], []
        for partition in self._partitions:
            receipts = await _receipts(store, partition)
            (counter,) = await store.read([Ref(partition, _COUNTER)])
            place = partition.name.decode()
            if (int(counter.value) if counter else 0) != len(receipts):
                miscounted.append(place)
            by_number = sorted((int(one.value), one.version) for one in receipts.values())
            if any(later <= earlier for (_, earlier), (_, later) in pairwise(by_number)):
                unordered.append(place)
            found |= {(place, name): record for name, record in receipts.items()}
        lost = [one for one in self.receipts if not await _is_kept(store, one, found)]
        return Verdict(
            len(self.receipts),
            tuple(lost),
            tuple(miscounted),
            tuple(unordered),
            self.unknown,
            self.refused,
            round(self.longest_gap_s, 3),
        )

    async def _write(self, writer: int) -> None:
        chance = random.Random(self._seed * 1000 + writer)
        for turn in range(_UNTIL):
            if not self._running:
                return
            gateways = self._gateways()
            store = gateways[(writer + turn) % len(gateways)]
            name = f"{self._name}-{writer}-{turn}"
            await self._increment(store, chance.choice(self._partitions), name, turn % 6 == 0)

    async def _increment(
        self, store: StorageEngine, partition: Partition, name: str, with_body: bool
    ) -> None:
        try:
            receipt = await _increment(store, partition, name, with_body)
        except CommitUnknown:
            self.unknown += 1
        except (Unavailable, Busy):
            self.refused += 1
            await asyncio.sleep(_PAUSE_S)
        else:
            now = time.monotonic()
            self.longest_gap_s = max(self.longest_gap_s, now - self._last)
            self._last = now
            self.receipts.append(receipt)
            self.on_receipt(receipt)


async def _increment(
    store: StorageEngine, partition: Partition, name: str, with_body: bool
) -> Receipt:
    content = 0
    if with_body:
        content = (await store.contents.write(_body(name), _BODY_BYTES)).id

    def decide(records: Sequence[Record | None], stamp: int) -> Commit[Receipt]:
        number = int(records[0].value) + 1 if records[0] else 1
        writes = (
            Write(_COUNTER, b"%d" % number),
            Write(Key(True, name.encode()), b"%d" % number),
        )
        step = Step(partition, writes, adopt=(content,) if content else ())
        return Commit(Receipt(partition.name.decode(), name, number, stamp, content), (step,))

    return await store.update(partition, [Ref(partition, _COUNTER)], decide)


async def _body(name: str) -> AsyncIterator[bytes]:
    unit = name.encode().ljust(100, b".")
    yield unit * (_BODY_BYTES // len(unit))


async def _receipts(store: StorageEngine, partition: Partition) -> dict[str, Record]:
    found: dict[str, Record] = {}
    first = b""
    while True:
        items = await store.read_range(partition, True, first, None, 1000)
        found |= {item.name.decode(): Record(item.value, item.version) for item in items}
        if len(items) < 1000:
            return found
        first = items[-1].name + b"\x00"


async def _is_kept(
    store: StorageEngine, receipt: Receipt, found: dict[tuple[str, str], Record]
) -> bool:
    if found.get((receipt.partition, receipt.name)) != (b"%d" % receipt.number, receipt.stamp):
        return False
    if not receipt.content:
        return True
    try:
        opened = await store.contents.open(receipt.content)
    except ContentMissing:
        return False
    try:
        whole = await opened.read(0, opened.size_bytes)
    finally:
        opened.close()
    return whole == b"".join([piece async for piece in _body(receipt.name)])


@contextlib.contextmanager
def progress(label: str) -> Iterator[Callable[[Verdict], None]]:
    """Print the sum of the verdicts of many rounds at the end, also when one fails."""
    totals: Counter[str] = Counter()
    gaps: list[float] = []

    def add(verdict: Verdict) -> None:
        totals["rounds"] += 1
        totals["acknowledged"] += verdict.acknowledged
        totals["lost"] += len(verdict.lost)
        totals["unknown"] += verdict.unknown
        totals["refused"] += verdict.refused
        gaps.append(verdict.longest_gap_s)

    try:
        yield add
    finally:
        gaps.sort()
        middle = gaps[len(gaps) // 2] if gaps else 0.0
        longest = gaps[-1] if gaps else 0.0
        print(f"{label}: {dict(totals)}, longest gap of a round: middle {middle}, most {longest} s")
