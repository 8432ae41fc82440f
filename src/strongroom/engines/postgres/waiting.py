"""Waiting for changes of records: own commits, hints of other gateways, and polling.

Lives here: which records are waited for, and how their changes are found. A hint may be lost, so
it only shortens the wait: `poll` asks the database. Must not live here: the registry of
waiters (watchers.py).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Final

from strongroom.engines.base import Ref
from strongroom.engines.postgres.gateways.members import payloads
from strongroom.engines.postgres.sql.places import place_of
from strongroom.engines.watchers import Watchers

_GATHER_S: Final = 0.005


class Waits:
    """The records that callers at this gateway wait for.

    Arguments:
        versions: returns the present versions of records.
        send: tells all other gateways a payload.
        must_tell: whether callers may wait at another gateway.
    """

    def __init__(
        self,
        watchers: Watchers,
        versions: Callable[[Sequence[Ref]], Awaitable[list[int | None]]],
        send: Callable[[str], None],
        must_tell: Callable[[], bool],
    ) -> None:
        self._watchers = watchers
        self._versions = versions
        self._send = send
        self._must_tell = must_tell
        # How many wait for each record to have another version than this one.
        self._waited: dict[Ref, Counter[int | None]] = {}
        self._by_hash: dict[str, Ref] = {}
        self._changed: set[str] = set()
        self._telling: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def waiting(self, ref: Ref, version: int | None) -> Iterator[None]:
        """Look after a record while a caller waits for it."""
        versions = self._waited.setdefault(ref, Counter())
        versions[version] += 1
        self._by_hash[_hash(ref)] = ref
        try:
            yield
        finally:
            versions[version] -= 1
            versions += Counter()  # drops what nobody waits for
            if not versions and self._waited.get(ref) is versions:
                del self._waited[ref]
                self._by_hash.pop(_hash(ref), None)

    def committed(self, refs: Sequence[Ref]) -> None:
        """Wake the waiters here, and tell the other gateways soon."""
        self._watchers.notify(refs)
        if not self._must_tell():
            return
        self._changed.update(map(_hash, refs))
        if self._telling is None or self._telling.done():
            self._telling = asyncio.ensure_future(self._tell())

    async def _tell(self) -> None:
        while self._changed:
            await asyncio.sleep(_GATHER_S)
            changed, self._changed = sorted(self._changed), set()
            for payload in payloads(changed):
                self._send(payload)

    def hinted(self, hashes: Iterable[str]) -> None:
        """Another gateway has changed records with these hashes."""
        self._watchers.notify([self._by_hash[one] for one in hashes if one in self._by_hash])

    async def poll(self) -> bool:
        """Wake the waiters whose records have changed, whoever changed them. Return whether anyone
        waits."""
        refs = list(self._waited)
        if not refs:
            return False
        for ref, version in zip(refs, await self._versions(refs), strict=True):
            if any(one != version for one in self._waited.get(ref, ())):
                self._watchers.notify((ref,))
        return True

    async def close(self) -> None:
        if self._telling is not None:
            self._telling.cancel()
            await asyncio.gather(self._telling, return_exceptions=True)


def _hash(ref: Ref) -> str:
    return blake2b(place_of(ref), digest_size=8).hexdigest()
