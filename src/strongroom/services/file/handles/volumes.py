"""A share as a volume, and the shares of an account, as SMB shows them.

Sources: [MS-FSCC] section 2.5; [MS-SRVS] section 3.1.4.8; smb.md 2.3 and 2.10.
"""

from __future__ import annotations

from typing import Final

import msgspec

from strongroom.engines.base import Position
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.services.core.runner import Services
from strongroom.services.file.names.node_writes import usage_bytes
from strongroom.services.file.opens.open_handle import ShareAccess
from strongroom.store.core import keys, records, share_keys
from strongroom.store.file import file_records

_PAGE_RECORDS: Final = 1000
_START: Final = Position(b"", b"")
_GIB: Final = 1 << 30


class Volume(msgspec.Struct, frozen=True):
    """The capacity of a share. `created`: in ticks. `used_bytes`: the sum of the lengths of all
    files."""

    label: str
    created: int
    quota_bytes: int
    used_bytes: int


async def volume(services: Services, access: ShareAccess) -> Volume:
    refs = [keys.share(access.account, access.share), share_keys.share_usage(access.generation)]
    stored, usage = await services.store.read(refs)
    share = records.SHARE.of(stored)
    if share is None or share.generation != access.generation:
        raise StorageError(errors.SHARE_NOT_FOUND)
    used_bytes = usage_bytes(file_records.USAGE.of(usage))
    return Volume(access.share, share.generation, share.quota_gib * _GIB, used_bytes)


async def share_names(services: Services, account: str) -> list[str]:
    """In their order, each once."""
    position: Position | None = _START
    names: list[str] = []
    while position is not None:
        page = await services.store.scan(keys.shares(account), position, None, _PAGE_RECORDS)
        names += [name.decode() for name, key, _, _ in page.rows() if _is_of_share(key)]
        position = page.resume
    return names


def _is_of_share(key: bytes) -> bool:
    """Whether it is the key of a share's own record. Its snapshots' records lie beside it, and
    those of deleted shares with its name."""
    return share_keys.snapshot_of(key) is None and not keys.is_deleted_place(key)
