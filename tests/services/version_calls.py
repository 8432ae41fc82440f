"""Versions on services, written and read as requests would do."""

from __future__ import annotations

from strongroom.account_switches import Switches
from strongroom.operations.blob import blob
from strongroom.semantics.blob.snapshots import DeleteSnapshots
from strongroom.service_properties import RetentionPolicy, ServiceProperties
from strongroom.services.blob import blobs, list_blobs
from strongroom.services.blob.list_blobs import BlobRow
from strongroom.services.blob.states.snapshots import DeleteBlob, Deleted
from strongroom.services.core import account
from strongroom.services.core.account import SetServiceProperties
from strongroom.services.core.runner import Services
from strongroom.services.sweeper import Sweeper
from tests.services import blob_calls as do
from tests.services.container_calls import call, placed
from tests.services.sweeps import fresh


def switch(on: Services, versioning: bool) -> None:
    """Switch versioning of the account on or off."""
    on.switches = lambda account: Switches(versioning=versioning)


async def versioned() -> tuple[Services, Sweeper]:
    """Return fresh services whose account makes versions."""
    on, sweeper = await fresh()
    switch(on, True)
    return on, sweeper


async def retain(on: Services, days: int) -> None:
    """Set the retention of deleted blobs; 0 = off."""
    policy = RetentionPolicy(days > 0, days or None)
    sections = SetServiceProperties(ServiceProperties(delete_retention=policy))
    await account.set_properties(on, call(sections, container=""))


async def put(on: Services, name: str, data: bytes) -> int:
    """Put a blob, and return its version's id."""
    written = await do.run(on, blob.PUT_BLOB, name, blobs.PutBlob(), data)
    version: int = written.version
    return version


async def read(on: Services, name: str, version: int) -> bytes | None:
    """Return the result of Get Blob for a version, None if it does not exist."""
    return await do.read(on, name, version=version)


async def delete(on: Services, name: str, version: int) -> bool:
    """Delete a previous version. Return whether the deletion is permanent."""
    deleted = await do.run(on, blob.DELETE_VERSION, name, DeleteBlob(), version=version)
    is_permanent: bool = deleted.is_permanent
    return is_permanent


async def delete_blob(on: Services, name: str, option: DeleteSnapshots | None = None) -> Deleted:
    """Delete the blob itself."""
    deleted: Deleted = await do.run(on, blob.DELETE_BLOB, name, DeleteBlob(option))
    return deleted


async def undelete(on: Services, name: str) -> None:
    await do.run(on, blob.UNDELETE_BLOB, name, None)


async def listed(on: Services, *words: str, **more: object) -> list[BlobRow]:
    """Return all rows of a listing, page by page."""
    found: list[BlobRow] = []
    # The keywords come from a table.
    given = list_blobs.ListBlobs(include=frozenset(words), **more)  # type: ignore[arg-type]
    while True:
        page = await list_blobs.list_blobs(on, await placed(on, given))
        found += [row for row in page.items if isinstance(row, BlobRow)]
        if page.marker is None:
            return found
        given = list_blobs.ListBlobs(
            include=frozenset(words),
            **more | {"start": page.marker},  # type: ignore[arg-type]  # keywords of a table
        )


async def ids(on: Services, name: str, *words: str) -> list[int]:
    """Return the ids of a blob's versions in the order of a listing, the current one last."""
    rows = await listed(on, "versions", *words)
    return [row.blob.version for row in rows if row.name == name and row.snapshot is None]
