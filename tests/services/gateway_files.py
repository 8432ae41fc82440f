"""Histories of clients of one share, over gateways that pause, die and start.

Each client calls any gateway; the one that serves the share executes the call. One history counts
by exclusive opens of SMB, one writes over REST. Used by the short test here and the long one in
tests/proof.
"""

from __future__ import annotations

import asyncio
import random
from typing import Final

from strongroom.engines.base import EngineError
from strongroom.errors.core import StorageError
from strongroom.errors.file import END_OF_FILE
from strongroom.operations.file import share
from strongroom.semantics.file.accesses import Disposition, Use
from strongroom.services.core.runner import Services
from strongroom.services.file.handles.model import Handle
from strongroom.services.file.shares.shares import CreateShare
from tests.services import file_calls as do
from tests.services import handle_calls as smb
from tests.services.gateway_histories import CLIENTS, Act, played
from tests.services.service_engine import ServiceEngine

COUNTER: Final = "counter"
SLOT_BYTES: Final = 8


async def count(seed: int, steps: int, faults: int) -> tuple[int, int, int]:
    """Let clients open a file exclusively, read a number there and write the next one.

    Returns: (how many were acknowledged, how many were tried, the number at the end).
    """
    acknowledged = tried = final = 0

    def make(client: int) -> Act:
        async def act(on: Services, chance: random.Random, number: int) -> None:
            nonlocal acknowledged, tried
            try:
                mount = await smb.mounted(on, f"client {number}")
                handle = await mount.handle(
                    COUNTER, share=Use.NONE, disposition=Disposition.OPEN_IF
                )
            except (EngineError, StorageError):
                return
            try:
                before = await _number(mount, handle)
                await asyncio.sleep(0)
                tried += 1
                await mount.write(handle, 0, (before + 1).to_bytes(SLOT_BYTES, "big"))
                acknowledged += 1
            except (EngineError, StorageError):
                pass
            finally:
                await mount.leave()

        return act

    async def after(root: Services) -> None:
        nonlocal final
        _end_all_others(root)
        mount = await smb.mounted(root)
        final = await _number(mount, await mount.handle(COUNTER))

    await played(seed, _with_share, make, steps, faults, after)
    return acknowledged, tried, final


async def _number(mount: smb.Mount, handle: Handle) -> int:
    """Return the number in a file; 0 for an empty one."""
    try:
        return int.from_bytes(await mount.read(handle), "big")
    except StorageError as error:
        if error.row is not END_OF_FILE:
            raise
        return 0


async def slots(seed: int, steps: int, faults: int) -> list[tuple[list[int], int]]:
    """Let clients write rising numbers over REST, each into its own part of a file.

    Returns: for each client the numbers from the last acknowledged one on, and the number in the
    file.
    """
    since: list[list[int]] = [[0] for _ in range(CLIENTS)]
    found: list[int] = []

    def make(client: int) -> Act:
        async def act(on: Services, chance: random.Random, number: int) -> None:
            value = since[client][-1] + 1
            since[client].append(value)
            path, data = f"f{client}", value.to_bytes(SLOT_BYTES, "big")
            try:
                if value == 1:
                    await do.create(on, path, SLOT_BYTES)
                await do.put(on, path, 0, data)
                del since[client][:-1]
            except EngineError:
                return
            except StorageError as error:
                if error.row.status == 404:
                    # The creation was refused before.
                    since[client][:] = [0]

        return act

    async def after(root: Services) -> None:
        _end_all_others(root)
        for client in range(CLIENTS):
            try:
                found.append(int.from_bytes(await do.read(root, f"f{client}"), "big"))
            except StorageError:
                found.append(0)

    await played(seed, _with_share, make, steps, faults, after)
    return list(zip(since, found, strict=True))


async def _with_share(root: Services) -> None:
    await do.run(root, share.CREATE_SHARE, "", CreateShare())


def _end_all_others(root: Services) -> None:
    """End all other gateways, so that this one can serve the share."""
    assert isinstance(root.store, ServiceEngine)
    root.store.end_others()
