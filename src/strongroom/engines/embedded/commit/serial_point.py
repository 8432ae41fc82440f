"""The serial point: the work of one transaction. Its decisions run one after the other, and each
sees the changes of those before it.

Lives here: a group and its answers, what its decisions see, and what they leave behind. Must not
live here: which items make a group, and what becomes of it (group_commit.py), SQL
(records/sqlite.py), bodies (bodies/unadopted.py).

A transaction has three phases. All records are looked up, all decisions run, and then the final
state of each changed record is written. Each phase alone fits into a processor's caches. A record
that many decisions of a group change, a lock or a counter, is written once.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import apsw
import msgspec

from strongroom.engines.base import (
    DataDamaged,
    Decide,
    Full,
    Record,
    Ref,
    Step,
    record_of,
    ref_of,
)
from strongroom.engines.bounds import check_steps, growth_bytes, purpose_of, values_after
from strongroom.engines.embedded.commit.futures import refuse
from strongroom.engines.embedded.commit.store_time import DurableTime
from strongroom.engines.embedded.records.record_cache import UNKNOWN, RecordCache, Uncached
from strongroom.engines.embedded.records.sqlite import Location, Writer
from strongroom.engines.embedded.space.reserve import Reserve
from strongroom.values import Purpose


class Bodies(Protocol):
    """The contents, as far as they take part in the records' transaction."""

    def location(self, content_id: int) -> Location | None:
        """Of a written content that no commit has adopted; None for any other id."""
        ...

    def begin_adoption(self, content_id: int) -> None:
        """It may not be deleted before the outcome of the open transaction is known."""
        ...

    def adoption_committed(self, adopted: Sequence[int], live: Sequence[tuple[int, int]]) -> None:
        """The commit is durable. `live` has (segment id, change of its live bytes)."""
        ...

    def adoption_rolled_back(self, adopted: Sequence[int]) -> None:
        """The transaction that would have adopted these contents did not happen."""
        ...


class QueuedWork(msgspec.Struct):
    """A decision, or a piece of the engine's own work, that waits for its group."""

    future: asyncio.Future[Any]
    reads: Sequence[Ref]
    decide: Decide[Any] | None
    work: Callable[[Group], Any] | None = None
    purpose: Purpose = Purpose.GROWTH
    # On a full disk: whether a checkpoint was made for it, and this is its retry.
    is_second_try: bool = False


@dataclass(slots=True)
class Group:
    """The work of one transaction so far. `now` is store time when it began. All of its decisions
    use this time, because they run without a pause."""

    now: int
    items: list[QueuedWork] = field(default_factory=list)
    answers: list[tuple[asyncio.Future[Any], object, Exception | None]] = field(
        default_factory=list
    )
    # The records before the group; and those that it changes, with their new values.
    known: dict[Ref, Record | None] = field(default_factory=dict)
    changed: dict[Ref, Record | None] = field(default_factory=dict)
    adopted: list[int] = field(default_factory=list)
    live: list[tuple[int, int]] = field(default_factory=list)
    # How many of `live` are written.
    counted: int = 0
    size_bytes: int = 0
    wrote: bool = False

    @property
    def rows(self) -> int:
        """The rows that SQLite takes for it, by their cost. A content that is adopted or dropped
        costs as much as three changed records."""
        return len(self.changed) + 3 * len(self.live)

    def answer(self) -> None:
        """Announce the results and the refusals of its decisions."""
        for future, result, refusal in self.answers:
            if future.done():
                continue
            if refusal is None:
                future.set_result(result)
            else:
                future.set_exception(refusal)
        self._release_futures()

    def refuse(self, error: Exception) -> None:
        for item in self.items:
            refuse(item.future, error)
        self._release_futures()

    def _release_futures(self) -> None:
        """Drop the references to the futures, which have ended.

        The traceback of a refusal refers to frames that refer to this group. If the group referred
        to the future of the refusal, all objects of the request would form a cycle. They would
        live until the garbage collector finds them, which holds up the loop.
        """
        self.answers.clear()
        for item in self.items:
            del item.future


class SerialPoint:
    """Runs the decisions of groups, within the open transaction. Used on the event loop.

    Arguments:
        writer: the connection with the open transaction.
        reserve: says which purposes are admitted at present.
    """

    def __init__(
        self,
        writer: Writer,
        time: DurableTime,
        cache: RecordCache,
        bodies: Bodies,
        reserve: Reserve,
    ) -> None:
        self._writer = writer
        self._time = time
        self._cache = cache
        self._bodies = bodies
        self._reserve = reserve

    def look_up(self, item: QueuedWork, group: Group) -> None:
        """The records are those from before the group."""
        known, get_one = group.known, self._cache.get_one
        read: dict[Ref, Record | None] = {}
        for ref in item.reads:
            if ref in known:
                continue
            record: Record | Uncached | None = get_one(ref)
            if record is UNKNOWN:
                read[ref] = record = self._writer.get(ref)
            known[ref] = record
        # An existing record may be read again, and so may an absent one beside it. Where no record
        # exists yet, one is being created, and its absence is rarely read again.
        if any(read.values()):
            self._cache.keep(list(read), list(read.values()))

    def take(self, item: QueuedWork, group: Group) -> None:
        """Run the item's decision or its work, and add its result to the group's answers.

        Raises: apsw.Error, OSError: the store is broken, or full; DataDamaged: the transaction must
        be rolled back; any exception of the work.
        """
        group.items.append(item)
        if item.decide is not None:
            self._decide(item, item.decide, group)
        elif item.work is not None:
            # It may look at what is live in a segment, or forget one.
            self._count_live(group)
            group.answers.append((item.future, item.work(group), None))
            group.counted = len(group.live)  # it writes its own
            group.wrote = True

    def _decide(self, item: QueuedWork, decide: Decide[Any], group: Group) -> None:
        stamp = self._time.stamp(group.now)
        if (ceiling := self._time.rise(stamp)) is not None:
            self._raise_ceiling(ceiling, group)
        known, changed = group.known, group.changed
        records = [changed[ref] if ref in changed else known[ref] for ref in item.reads]
        try:
            commit = decide(records, stamp)
            if commit.steps:
                self._check(commit.steps, item.purpose, group)
        except (apsw.Error, DataDamaged):  # no refusal: the group must fail
            raise
        except StopIteration as refusal:  # a future cannot carry it
            group.answers.append((item.future, None, RuntimeError(repr(refusal))))
            return
        except Exception as refusal:
            group.answers.append((item.future, None, refusal))
            return
        if commit.steps:
            self._apply(commit.steps, stamp, group)
        group.answers.append((item.future, commit.result, None))

    def purpose(self, group: Group) -> Purpose:
        """The purpose of a group of one item, after it was rolled back. Raises apsw.Error,
        DataDamaged."""
        (item,) = group.items
        after = {ref: record and record.value for ref, record in group.changed.items()}
        adopts = bool(group.adopted)
        return purpose_of(item.purpose, adopts, after, lambda ref: self._before(ref, group))

    def _check(self, steps: Sequence[Step], purpose: Purpose, group: Group) -> None:
        """Every check that can refuse a commit, before the first of its writes."""
        weight = check_steps(steps)
        if weight.adopts:
            adopted = [content_id for step in steps for content_id in step.adopt]
            unknown = any(self._bodies.location(one) is None for one in adopted)
            if unknown or len({*adopted, *group.adopted}) < len(adopted) + len(group.adopted):
                raise ValueError(
                    "a commit adopts contents that were written and not adopted before"
                )
        if not self._reserve.admits(purpose) and (weight.adopts or self._grows(steps, group)):
            raise Full(purpose)
        group.size_bytes += weight.size_bytes

    def _grows(self, steps: Sequence[Step], group: Group) -> bool:
        """Return whether a commit makes its records larger in all than just before it."""
        changed = group.changed

        def current(ref: Ref) -> Record | None:
            return changed[ref] if ref in changed else self._before(ref, group)

        return growth_bytes(values_after(steps), current) > 0

    def _before(self, ref: Ref, group: Group) -> Record | None:
        return group.known[ref] if ref in group.known else self._writer.get(ref)

    def _apply(self, steps: Sequence[Step], stamp: int, group: Group) -> None:
        group.wrote = True
        changed = group.changed
        for step in steps:
            partition = step.partition
            for key, value in step.writes:
                record = None if value is None else record_of((value, stamp))
                changed[ref_of((partition, key))] = record
            if step.adopt:
                self._adopt(step.adopt, group)
            for content_id in step.drop:
                dropped = self._writer.drop(content_id)
                if dropped is not None:
                    group.live.append((dropped.segment, -dropped.length))

    def _adopt(self, content_ids: Sequence[int], group: Group) -> None:
        adopted: list[tuple[int, Location]] = []
        for content_id in content_ids:
            location = self._bodies.location(content_id)
            assert location is not None, "checked before"
            adopted.append((content_id, location))
        self._writer.adopt(adopted)
        for content_id, location in adopted:
            self._bodies.begin_adoption(content_id)
            group.adopted.append(content_id)
            group.live.append((location.segment, location.length))
        if (ceiling := self._time.rise(max(content_ids))) is not None:
            self._raise_ceiling(ceiling, group)

    def finish(self, group: Group) -> None:
        """Write the records that the group's decisions changed. Raises: see `take`."""
        if group.changed:
            self._writer.put_all(group.changed)
        self._count_live(group)
        if group.wrote and (ceiling := self._time.rise_soon(self._time.now())) is not None:
            self._raise_ceiling(ceiling, group)

    def _count_live(self, group: Group) -> None:
        """Write the changes of live bytes that are not written yet."""
        self._writer.count_live(itertools.islice(group.live, group.counted, None))
        group.counted = len(group.live)

    def _raise_ceiling(self, ceiling: int, group: Group) -> None:
        self._writer.raise_ceiling(ceiling)
        group.wrote = True
