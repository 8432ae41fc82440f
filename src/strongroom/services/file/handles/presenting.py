"""The present opens of one file or directory, for people who look at them.

Must not live here: the table (opens/opens.py). List Handles (listing.py) is what REST shows of the
same table.

Looking is no operation on the file: it enters no table, breaks no cache, and waits for no open. It
takes the share for this gateway, as each request to files of the share does.
"""

from __future__ import annotations

import msgspec

from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.semantics.file.opens import OpenTable
from strongroom.services.core.runner import Services
from strongroom.services.file.handles.opening import connect_share
from strongroom.services.file.names import paths
from strongroom.services.file.names.node_writes import root_attributes
from strongroom.services.file.opens.open_handle import Handle
from strongroom.services.file.opens.opens import Opens
from strongroom.store.core import keys
from strongroom.store.file import file_records
from strongroom.store.file.file_records import FileRecord


class PresentOpens(msgspec.Struct, frozen=True):
    """The opens of a file or directory at one moment.

    Attributes:
        path: its names, from the share's root down, as they are stored.
        record: its attributes, with its lease; `now` is the store time at which that is judged.
        handles: of SMB clients, by their ids; the table's other entries are REST operations.
    """

    path: tuple[str, ...]
    record: FileRecord
    now: int
    table: OpenTable
    handles: dict[int, Handle]


async def present_opens(services: Services, account: str, share: str, path: str) -> PresentOpens:
    """Return the opens of a path of a share, as the share is now and not in a snapshot. `path`:
    names with `/` between them, dots at their ends included; "" = the share's root."""
    # Read the time first: a lease must not be judged by its old record at a later time.
    now = await services.store.now()
    access = await connect_share(services, account, share)
    names = paths.components(path, trailing_dots=True)
    where = await paths.walk(services, access.generation, names)
    if where.entry is None and not where.is_root:
        raise StorageError(errors.RESOURCE_NOT_FOUND)
    (stored,) = await services.store.read([keys.file_attributes(access.generation, where.id)])
    record = file_records.FILE.of(stored)
    if record is None:
        if not where.is_root:
            raise StorageError(errors.RESOURCE_NOT_FOUND)
        record = root_attributes(access.generation)
    held, file = services.held.of(Opens), access.opens_of(where.id)
    handles = {one.id: one for one in held.handles_on(file) if not one.is_closed}
    judged = max(now, 0 if stored is None else stored.version)
    return PresentOpens(where.stored, record, judged, held.table(file), handles)
