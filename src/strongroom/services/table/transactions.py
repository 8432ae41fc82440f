"""Entity group transactions: the rules for the operations of one transaction.

Lives here: one table, one partition, each entity once. Source: "Performing entity group
transactions"; reference section 7.
"""

from __future__ import annotations

from collections.abc import Sequence

from strongroom.errors import table as table_errors
from strongroom.errors.core import StorageError
from strongroom.services.core.calls import Call
from strongroom.services.core.runner import Services
from strongroom.services.table import entities
from strongroom.services.table.entities import EntityWritten, PartFailed, WriteEntity

Writes = Sequence[Call[WriteEntity]]


async def transact(services: Services, call: Call[Writes]) -> list[EntityWritten]:
    """The input is the calls of the batch's parts, each authorized.

    Raises: PartFailed for the first that is refused.
    """
    _check(call.input)
    return await entities.transact(services, call.input)


def _check(writes: Writes) -> None:
    """Check the parts before any record is read."""
    group: tuple[str, str] | None = None
    seen: set[str] = set()
    for index, write in enumerate(writes):
        try:
            partition_key, row_key = entities.keys_of(write)
        except StorageError as error:
            raise PartFailed(index, error) from None
        own = (write.target.container.lower(), partition_key)
        if group is not None and own != group:
            raise PartFailed(index, StorageError(table_errors.COMMANDS_ON_DIFFERENT_PARTITIONS))
        if row_key in seen:
            raise PartFailed(index, StorageError(table_errors.INVALID_DUPLICATE_ROW))
        group = own
        seen.add(row_key)
