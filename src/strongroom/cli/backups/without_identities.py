"""A store to be copied, without its accounts and roles.

Lives here: what is left out of a copy to a data directory, which has accounts and roles in files.
Nobody would read rows of them inside of it. They would come back with their old keys when the
directory is copied to a database again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from strongroom.engines.base import Ref
from strongroom.engines.transfer import (
    ContentSum,
    SourceState,
    StoredRecord,
    StoreTraits,
    TransferSource,
)
from strongroom.store.core import keys


class WithoutIdentities:
    """See TransferSource."""

    def __init__(self, source: TransferSource) -> None:
        self._source = source

    @property
    def state(self) -> SourceState:
        return self._source.state

    @property
    def traits(self) -> StoreTraits:
        return self._source.traits

    async def size_bytes(self) -> tuple[int, int]:
        return await self._source.size_bytes()

    async def records(self, after: Ref | None) -> AsyncIterator[Sequence[StoredRecord]]:
        async for page in self._source.records(after):
            kept = [one for one in page if one.ref.partition.keyspace != keys.IDENTITIES]
            if kept:
                yield kept

    def contents(self, after: int) -> AsyncIterator[Sequence[ContentSum]]:
        return self._source.contents(after)

    async def bodies(self, contents: Sequence[ContentSum]) -> Sequence[bytes]:
        return await self._source.bodies(contents)

    def chunks(self, content: ContentSum) -> AsyncIterator[bytes]:
        return self._source.chunks(content)

    async def ensure_unchanged(self) -> None:
        await self._source.ensure_unchanged()

    async def close(self) -> None:
        await self._source.close()
