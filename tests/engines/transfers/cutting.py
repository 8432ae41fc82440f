"""Copies that end anywhere, or are tampered with on their way.

Lives here: a source with small batches, a target to which something is done at each batch. Must not
live here: cases.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Sequence

from strongroom.engines.base import Ref
from strongroom.engines.store_copy import CopyReport, copy_store
from strongroom.engines.transfer import (
    ContentSum,
    CopyPlace,
    SourceState,
    StoredRecord,
    StoreTraits,
    TransferSource,
    TransferTarget,
)
from tests.engines.transfers.stores import Place


class Cut(Exception):
    """The copy ends here."""


class Small:
    """A source with small pages, so that there are more of them."""

    def __init__(self, source: TransferSource) -> None:
        self._source = source
        self.state, self.traits = source.state, source.traits
        self.size_bytes, self.bodies, self.chunks = source.size_bytes, source.bodies, source.chunks
        self.ensure_unchanged, self.close = source.ensure_unchanged, source.close

    async def records(self, after: Ref | None) -> AsyncIterator[Sequence[StoredRecord]]:
        async for page in self._source.records(after):
            for at in range(0, len(page), 7):
                yield page[at : at + 7]

    async def contents(self, after: int) -> AsyncIterator[Sequence[ContentSum]]:
        async for page in self._source.contents(after):
            for at in range(0, len(page), 2):
                yield page[at : at + 2]


class Tampered:
    """A target to which something is done at each batch.

    Arguments:
        before, after: called with each batch, before it is written and after; the former may
            return another batch of records.
    """

    def __init__(
        self,
        target: TransferTarget,
        before: Callable[[Sequence[StoredRecord]], Sequence[StoredRecord]] = lambda batch: batch,
        after: Callable[[], None] = lambda: None,
    ) -> None:
        self._target = target
        self._before, self._after = before, after
        self.shown = target.shown
        self.written, self.finish, self.close = target.written, target.finish, target.close

    async def begin(self, source: SourceState, traits: StoreTraits) -> CopyPlace:
        return await self._target.begin(source, traits)

    async def put_bodies(self, contents: Sequence[tuple[ContentSum, bytes]]) -> None:
        self._before(())
        await self._target.put_bodies(contents)
        self._after()

    async def put_long(self, content: ContentSum, chunks: AsyncIterator[bytes]) -> None:
        self._before(())

        async def cut() -> AsyncIterator[bytes]:
            async for chunk in chunks:
                yield chunk
                self._after()

        await self._target.put_long(content, cut())
        self._after()

    async def put_records(self, records: Sequence[StoredRecord]) -> None:
        await self._target.put_records(self._before(records))
        self._after()


class Scissors:
    """Cuts after a random number of batches, before or after the last of them was written."""

    def __init__(self, chance: random.Random, most: int) -> None:
        self.left = chance.randrange(1, most)
        self.batches = 0

    def before(self, batch: Sequence[StoredRecord]) -> Sequence[StoredRecord]:
        self._snip()
        self.batches += 1
        return batch

    def after(self) -> None:
        self._snip()

    def _snip(self) -> None:
        self.left -= 1
        if not self.left:
            raise Cut


async def copy_until_cut(home: Place, goal: Place, scissors: Scissors) -> CopyReport:
    source, target = await home.source(), await goal.target()
    cut = Tampered(target, scissors.before, scissors.after)
    try:
        return await copy_store(Small(source), cut)
    finally:
        await target.close()
        await source.close()
