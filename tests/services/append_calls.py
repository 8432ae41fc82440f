"""Append blobs on services, with calls as requests would make them."""

from __future__ import annotations

from typing import Any

from strongroom.operations.blob import append
from strongroom.semantics.blob.appends import NO_CONDITIONS, AppendConditions
from strongroom.services.blob.types import appends
from strongroom.services.blob.types.appends import BlockAppended
from strongroom.services.core.runner import Services
from tests.services import blob_calls as do


async def create(on: Services, name: str) -> None:
    await do.run(on, append.PUT_APPEND_BLOB, name, appends.CreateAppendBlob())


async def add(
    on: Services,
    name: str,
    data: bytes,
    conditions: AppendConditions = NO_CONDITIONS,
    **more: Any,
) -> BlockAppended:
    given = appends.AppendBlock(conditions=conditions)
    found: BlockAppended = await do.run(on, append.APPEND_BLOCK, name, given, data, **more)
    return found


async def seal(on: Services, name: str) -> None:
    await do.run(on, append.SEAL_BLOB, name, appends.SealBlob())
