"""A share as a volume, and the shares of an account, as SMB shows them.

Lives here: what is read of shares. Must not live here: layouts (wire/smb), changes (shares.py).
Sources: [MS-FSCC] section 2.5; [MS-SRVS] section 3.1.4.8; smb.md 2.3 and 2.10.
"""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from strongroom import file_errors
from strongroom.engines.base import Position
from strongroom.errors import StorageError
from strongroom.services.core.runner import Services
from strongroom.services.file.handles.model import ShareAccess
from strongroom.store.core import keys, records
from strongroom.store.file import file_records
from strongroom.values import TICKS_PER_S

_PAGE_RECORDS: Final = 1000
_START: Final = Position(b"", b"")
_GIB: Final = 1 << 30
_FRESH_TICKS: Final = 5 * TICKS_PER_S
_REMEMBERED_MAX: Final = 256


class Volume(msgspec.Struct, frozen=True):
    """What a share has room for, and what it holds.

    Attributes:
        created: in ticks.
        used_bytes: the lengths of all files together, as they were at most 5 s ago.
    """

    label: str
    created: int
    quota_bytes: int
    used_bytes: int


class UsedSpace:
    """What shares were found to hold: by generation, the time and the bytes."""

    def __init__(self) -> None:
        self.found: dict[int, tuple[int, int]] = {}


async def volume(services: Services, access: ShareAccess) -> Volume:
    """The share of a tree. Raises: StorageError ShareNotFound when it was deleted."""
    (stored,) = await services.store.read([keys.share(access.account, access.share)])
    share = records.SHARE.of(stored)
    if share is None or share.generation != access.generation:
        raise StorageError(file_errors.SHARE_NOT_FOUND)
    used = await _used(services, access.generation)
    return Volume(access.share, share.generation, share.quota_gib * _GIB, used)


async def _used(services: Services, generation: int) -> int:
    """The lengths of a share's files. Clients ask after every listing, so it is remembered."""
    remembered = services.disposable.of(UsedSpace).found
    now = await services.store.now()
    known = remembered.get(generation)
    if known is not None and now - known[0] < _FRESH_TICKS:
        return known[1]
    position: Position | None = _START
    total = 0
    while position is not None:
        page = await services.store.scan(keys.files(generation), position, None, _PAGE_RECORDS)
        total += sum(file_records.FILE.decode(value).size_bytes for value in page.values)
        position = page.resume
        await asyncio.sleep(0)
    remembered.pop(generation, None)
    while len(remembered) >= _REMEMBERED_MAX:
        del remembered[next(iter(remembered))]
    remembered[generation] = (now, total)
    return total


async def share_names(services: Services, account: str) -> list[str]:
    """The names of an account's shares, in their order."""
    position: Position | None = _START
    names: list[str] = []
    while position is not None:
        page = await services.store.scan(keys.shares(account), position, None, _PAGE_RECORDS)
        names += [name.decode() for name, _, _, _ in page.rows()]
        position = page.resume
    return names
