"""Snapshots and versions: their times, and the effect of a delete on them.

Sources: "Snapshot Blob", "Delete Blob", "Blob versioning".
"""

from __future__ import annotations

import enum
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec

from strongroom.errors import blob as blob_errors
from strongroom.errors.core import StorageError, invalid_header, invalid_query
from strongroom.semantics.core.snapshot_times import snapshot_time

DELETE_HEADER: Final = "x-ms-delete-snapshots"
VERSION_PARAMETER: Final = "versionid"
DELETE_TYPE: Final = "deletetype"
PERMANENT: Final = "permanent"


class DeleteSnapshots(enum.Enum):
    """The values of x-ms-delete-snapshots."""

    INCLUDE = "include"
    ONLY = "only"


class DeletionScope(msgspec.Struct, frozen=True):
    base: bool
    snapshots: bool


def version_time(text: str) -> int:
    """The ticks of a version's id as responses give it."""
    try:
        return snapshot_time(text)
    except StorageError:
        reason = "The value is not the id of a version."
        raise invalid_query(VERSION_PARAMETER, text, reason) from None


def check_delete_type(value: str | None) -> None:
    if value is not None and value.lower() != PERMANENT:
        raise invalid_query(DELETE_TYPE, value, f"The value must be {PERMANENT}.")


def check_one_state(snapshot: int | None, version: int | None) -> None:
    if snapshot is not None and version is not None:
        raise invalid_query(VERSION_PARAMETER, "", "Not allowed together with snapshot.")


def delete_option(value: str | None) -> DeleteSnapshots | None:
    """The value of x-ms-delete-snapshots."""
    if value is None:
        return None
    try:
        return DeleteSnapshots(value.lower())
    except ValueError:
        raise invalid_header(DELETE_HEADER, value) from None


def check_delete_target(
    option: DeleteSnapshots | None, is_snapshot: bool, is_version: bool = False
) -> None:
    """Refuse x-ms-delete-snapshots in a delete of one snapshot or version."""
    if option is not None and (is_snapshot or is_version):
        name = "snapshot" if is_snapshot else VERSION_PARAMETER
        raise invalid_query(name, "", f"Not allowed together with {DELETE_HEADER}.")


def deletion(option: DeleteSnapshots | None, has_snapshots: bool) -> DeletionScope:
    if option is None and has_snapshots:
        raise StorageError(blob_errors.SNAPSHOTS_PRESENT)
    return DeletionScope(
        base=option is not DeleteSnapshots.ONLY, snapshots=option is not None and has_snapshots
    )


def snapshot_in_url(name: str, value: str) -> tuple[int, str]:
    """The ticks of the snapshot that a URL names, and the path of the URL, decoded."""
    try:
        url = urlsplit(value)
        (text,) = parse_qs(url.query, strict_parsing=True)["snapshot"]
        return snapshot_time(text), unquote(url.path)
    except (ValueError, KeyError, StorageError):
        raise invalid_header(name, value, "It must be the URL of a snapshot.") from None
