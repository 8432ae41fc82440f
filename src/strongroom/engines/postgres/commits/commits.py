"""Updates of one gateway: lined up, and committed in batches by a few lanes.

Lives here: which lane works, and the end. Must not live here: the line (line.py), one batch
(committing.py).

The stamps of one gateway rise wherever one commit has read what another one writes. So nothing is
decided on a partition that a batch of another lane writes, from the decision of that batch until
its outcome.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
from collections.abc import Sequence
from typing import Any, Final

from strongroom.engines.base import (
    CommitUnknown,
    Decide,
    EngineError,
    Partition,
    Ref,
    Unavailable,
)
from strongroom.engines.postgres.commits.batches import Update
from strongroom.engines.postgres.commits.committing import CommitContext, Committing
from strongroom.engines.postgres.commits.line import fail
from strongroom.engines.postgres.sessions.lanes import PATIENCE_S, Lane, Pool
from strongroom.values import Purpose

_UPDATES_MAX: Final = 128
_RUN_BITS: Final = 40


class Commits:
    """The updates of one gateway.

    Attributes:
        context: what all batches share.
        patience_s: how long a caller waits at most.
    """

    def __init__(self, pool: Pool, context: CommitContext) -> None:
        self.context = context
        self.patience_s = PATIENCE_S
        self._free = list(pool.lanes)
        # No earlier run of a gateway with this number has used these.
        self._numbers = itertools.count((context.gateway.incarnation << _RUN_BITS) + 1)
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_scheduled = False

    def update(
        self, partition: Partition, reads: Sequence[Ref], decide: Decide[Any], purpose: Purpose
    ) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        number_of = self.context.gateway.numbers.of
        home = number_of(partition)
        update = Update(
            home=home,
            partitions=frozenset((home, *(number_of(ref.partition) for ref in reads))),
            reads=reads,
            decide=decide,
            purpose=purpose,
            answer=loop.create_future(),
            until_s=loop.time() + self.patience_s,
        )
        self.context.line.add(update)
        if not self._is_scheduled and self._free:
            self._is_scheduled = True
            loop.call_soon(self._start)
        return update.answer

    def expire(self) -> None:
        """Answer those who have waited for `patience_s`."""
        self.context.line.expire(asyncio.get_running_loop().time())

    async def drain(self, limit_s: float) -> None:
        """Return when every update has its answer. After the limit, those left are unknown."""
        until_s = asyncio.get_running_loop().time() + limit_s
        while self._tasks or self.context.line:
            self._start()
            if not self._tasks:
                continue  # what was left in line had lost its callers
            left_s = max(0.0, until_s - asyncio.get_running_loop().time())
            ended = asyncio.FIRST_COMPLETED
            done, _ = await asyncio.wait(self._tasks, timeout=left_s, return_when=ended)
            if not done:
                break
        self.context.line.refuse(Unavailable("the store is closed"))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start(self) -> None:
        self._is_scheduled = False
        count = 1 if self.context.space.is_tight else _UPDATES_MAX
        while self._free and (updates := self.context.line.take(self._free[-1].slot, count)):
            lane = self._free.pop()
            task = asyncio.ensure_future(self._serve(lane, updates))
            self._tasks.add(task)
            task.add_done_callback(functools.partial(self._ended, lane))

    def _ended(self, lane: Lane, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self.context.line.end(lane.slot)
        self._free.append(lane)
        self._start()

    async def _serve(self, lane: Lane, updates: list[Update]) -> None:
        """Whatever happens, each update gets an answer, or is put back into the line."""
        number = next(self._numbers)
        try:
            await self.context.gateway.ensure_live()
            await Committing(self.context, lane, updates, number).run()
        except EngineError as error:
            fail(updates, error)
        except asyncio.CancelledError:
            fail(updates, CommitUnknown("the store was closed while it committed"))
            raise
        except Exception as error:
            # Before a batch is decided, nothing is changed.
            is_decided = self.context.line.is_decided(lane.slot)
            kind = CommitUnknown if is_decided else Unavailable
            fail(updates, kind(f"the store could not commit: {error!r}"))
            raise
        finally:
            self.context.flights.end(number)
