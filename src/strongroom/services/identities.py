"""Accounts and roles that are kept in the store, as rows: read whole, and changed by conditional
commits.

Lives here: when a change may be committed. Must not live here: what a row says (auth/), how it is
stored (store/core/identity_rows.py), who serves what was read (servers/identities/).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from strongroom.engines.base import (
    Commit,
    Engine,
    EngineError,
    Partition,
    Record,
    Ref,
    Step,
    Write,
)
from strongroom.store.core import identity_rows, keys
from strongroom.store.core.identity_rows import RowsRefused as RowsRefused
from strongroom.store.core.records import DamagedRecord as DamagedRecord

ROWS_MAX: Final = 10_000
_ITEMS_MAX: Final = 100_000
_BATCH_WRITES: Final = 1000
_BATCH_BYTES: Final = 4 * 1024 * 1024

NOT_KEPT: Final = (EngineError, DamagedRecord, RowsRefused)
"""What a reading or a change of identities raises, besides what the caller's functions raise."""

EditRows = Callable[[Mapping[str, bytes]], Mapping[str, bytes]]


class IdentityRows(msgspec.Struct, frozen=True):
    """All accounts, or all role assignments, of one moment.

    Attributes:
        version: differs after each change; None = nothing was ever kept.
        rows: by name.
    """

    version: int | None = None
    rows: Mapping[str, bytes] = {}


class IdentityTable:
    """The accounts of a store, or its role assignments."""

    def __init__(self, engine: Engine, partition: Partition) -> None:
        self._engine = engine
        self._partition = partition
        self.changed: Final = Ref(partition, keys.IDENTITIES_CHANGED)

    async def read(self) -> IdentityRows:
        """Return the rows, all from one snapshot. Raises: EngineError, DamagedRecord."""
        items = await self._engine.read_range(self._partition, False, b"", None, _ITEMS_MAX)
        if not items:
            return IdentityRows()
        if len(items) == _ITEMS_MAX:
            raise DamagedRecord(f"the store has over {_ITEMS_MAX} records of accounts or roles")
        version = next((one.version for one in items if one.name == self.changed.key.name), None)
        return IdentityRows(version, identity_rows.rows_of(items))

    async def edit(self, edit: EditRows) -> None:
        """Replace the rows by those that `edit` returns. It is called again if another change came
        between, so that no change is lost.

        A change of very many rows takes several commits. If another change comes between these,
        `edit` gets rows of which a part is replaced already.

        Raises: EngineError, DamagedRecord, RowsRefused; whatever `edit` raises.
        """
        while True:
            before = await self.read()
            after = edit(before.rows)
            if len(after) > max(ROWS_MAX, len(before.rows)):
                raise RowsRefused(f"a store keeps at most {ROWS_MAX} of them")
            batches = list(_batches(identity_rows.changes(before.rows, after)))
            if await self._commit_all(before.version, batches):
                return

    async def _commit_all(self, version: int | None, batches: Iterable[Sequence[Write]]) -> bool:
        """Return False when another change came between."""
        for batch in batches:
            made = await self._commit(version, batch)
            if made is None:
                return False
            version = made
        return True

    async def _commit(self, version: int | None, writes: Sequence[Write]) -> int | None:
        """Return the new version; None if the rows have another one than `version` by now."""

        def decide(records: Sequence[Record | None], stamp: int) -> Commit[int | None]:
            (changed,) = records
            if (None if changed is None else changed.version) != version:
                return Commit(None)
            mark = Write(self.changed.key, identity_rows.CHANGED_VALUE)
            return Commit(stamp, (Step(self._partition, (mark, *writes)),))

        return await self._engine.update(self._partition, (self.changed,), decide)


def _batches(changes: Iterable[tuple[Write, ...]]) -> Iterator[list[Write]]:
    """Yield the writes of whole rows, as many as one commit takes."""
    batch: list[Write] = []
    size_bytes = 0
    for writes in changes:
        row_bytes = sum(len(one.key.name) + len(one.value or b"") for one in writes)
        if batch and (
            len(batch) + len(writes) > _BATCH_WRITES or size_bytes + row_bytes > _BATCH_BYTES
        ):
            yield batch
            batch, size_bytes = [], 0
        batch += writes
        size_bytes += row_bytes
    if batch:
        yield batch


class StoreIdentities:
    """The accounts and roles of a store."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.accounts: Final = IdentityTable(engine, keys.ACCOUNTS)
        self.roles: Final = IdentityTable(engine, keys.ROLES)

    async def versions(self) -> tuple[int | None, int | None]:
        """Return the versions of accounts and roles. Raises: EngineError."""
        accounts, roles = await self._engine.read((self.accounts.changed, self.roles.changed))
        return _version(accounts), _version(roles)


def _version(record: Record | None) -> int | None:
    return None if record is None else record.version
