"""Snapshots of a share for tests of SMB: takes and opens them."""

from __future__ import annotations

import struct
from collections.abc import Awaitable, Callable
from typing import Any

from strongroom.operations.file import share
from strongroom.semantics.file.attributes import filetime
from strongroom.services.core.runner import Services
from strongroom.services.file.shares.share_snapshots import DeleteShare, SnapshotShare
from strongroom.services.sweeper import Sweeper
from strongroom.wire.smb.header import FileId
from strongroom.wire.smb.requests.create_contexts import (
    SNAPSHOT,
    write_chain,
)
from tests.servers.smb import command_calls as smb
from tests.servers.smb.command_calls import SmbCaller
from tests.services import container_calls as given
from tests.services import file_calls as do

READS = 0x1200A9

Scenario = Callable[[SmbCaller], Awaitable[None]]


def run(scenario: Scenario) -> None:
    async def started() -> None:
        await scenario(await smb.caller(await do.services()))

    given.run(started)


async def take(on: Services) -> int:
    """Take a snapshot, and return its stamp."""
    taken = await do.run(on, share.SNAPSHOT_SHARE, "", SnapshotShare())
    stamp: int = taken.snapshot
    return stamp


async def drop(on: Services, stamp: int) -> None:
    """Delete a snapshot, and free the space that only it used."""
    await do.run(on, share.DELETE_SHARE, "", DeleteShare(None), snapshot=stamp)
    on.store.advance(1)
    await Sweeper(on).run_once()


def snapshot_context(stamp: int, *others: tuple[bytes, bytes]) -> bytes:
    """Return the context TWrp, and others."""
    return write_chain([(SNAPSHOT, struct.pack("<Q", filetime(stamp))), *others])


async def open_in_snapshot(ann: SmbCaller, stamp: int, name: str = "", **more: Any) -> FileId:
    """Open a file or directory in a snapshot to read it."""
    opened = await ann.open(
        name, chain=snapshot_context(stamp), access=more.pop("access", READS), **more
    )
    return opened.file_id


async def past(ann: SmbCaller) -> tuple[int, FileId]:
    """Return a snapshot of a file that has changed since, and the file's handle in the snapshot."""
    await do.write(ann.on, "f", b"before")
    stamp = await take(ann.on)
    await do.write(ann.on, "f", b"AFTER")
    return stamp, await open_in_snapshot(ann, stamp, "f", access=smb.FULL)
