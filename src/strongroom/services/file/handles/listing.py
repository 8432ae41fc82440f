"""List Handles and Force Close Handles.

Lives here: what these operations check. Must not live here: opens (admission.py). A handle is an
SMB open, and REST alone opens none: an operation's own entry lasts one request. So there is nothing
to list, and nothing to close. Source: "List Handles", "Force Close Handles"; reference file.md 5.
"""

from __future__ import annotations

from typing import Any

import msgspec

from strongroom import errors
from strongroom.errors import StorageError, invalid_header
from strongroom.services.core.calls import Call
from strongroom.services.core.runner import Services
from strongroom.services.file import paths
from strongroom.services.file.paths import OnPath

_RECURSIVE = "x-ms-recursive"


class ListHandles(OnPath, frozen=True, kw_only=True):
    """Input of List Handles: whether what lies below a directory counts too."""

    is_recursive: bool = False
    max_results: int | None = None


class CloseHandles(OnPath, frozen=True, kw_only=True):
    """Input of Force Close Handles; `handle` is the id to close, None = every one."""

    is_recursive: bool = False
    handle: int | None = None


class Closed(msgspec.Struct, frozen=True):
    """Result of Force Close Handles."""

    count: int = 0
    failed: int = 0


async def list_handles(services: Services, call: Call[ListHandles]) -> None:
    """List Handles of a directory or file.

    Raises: StorageError ResourceNotFound, ParentNotFound, ShareNotFound, InvalidHeaderValue (a file
        has nothing below it).
    """
    await _check(services, call)


async def close_handles(services: Services, call: Call[CloseHandles]) -> Closed:
    """Force Close Handles of a directory or file. Raises: as list_handles."""
    await _check(services, call)
    return Closed()


async def _check(services: Services, call: Call[Any]) -> None:
    where = await paths.named(services, call)
    if where.entry is None and not where.is_root:
        raise StorageError(errors.RESOURCE_NOT_FOUND)
    if call.input.is_recursive and not where.is_directory:
        raise invalid_header(_RECURSIVE, "true", "A file has nothing below it.")
