"""The declared purpose of each operation on a full disk."""

from __future__ import annotations

from strongroom.operations.blob import endpoint as blob_service
from strongroom.operations.file import endpoint as file_service
from strongroom.operations.queue import endpoint as queue_service
from strongroom.operations.table import endpoint as table_service
from strongroom.values import Purpose

KEEPS_ALIVE = {
    "Abort Copy File",
    "Abort Copy Blob",
    "Force Close Handles",
    "Get Messages",
    "Put Page (clear)",
    "Put Range (clear)",
    *(f"Lease File ({action})" for action in ("acquire", "change", "release", "break")),
    "Set Blob Legal Hold",
    *(
        f"Lease {kind} ({action})"
        for kind in ("Blob", "Container", "Share")
        for action in ("acquire", "renew", "change", "release", "break")
    ),
}
DELETES = {
    "Clear Messages",
    "Delete Blob",
    "Delete Blob (version)",
    "Delete Blob (permanent)",
    "Delete Blob Immutability Policy",
    "Delete Container",
    "Delete Directory",
    "Delete Entity",
    "Delete File",
    "Delete Message",
    "Delete Queue",
    "Delete Share",
    "Delete Table",
}


def test_which_operations_go_on_when_the_disk_is_full() -> None:
    declared: dict[Purpose, set[str]] = {purpose: set() for purpose in Purpose}
    for service in (blob_service, queue_service, table_service, file_service):
        for operation in service.ENDPOINT.routes.operations:
            declared[operation.rule.purpose].add(operation.name)
    assert declared[Purpose.UPKEEP] == KEEPS_ALIVE
    assert declared[Purpose.FREEING] == DELETES


def test_whatever_deletes_is_declared_as_such() -> None:
    for service in (blob_service, queue_service, table_service, file_service):
        for operation in service.ENDPOINT.routes.operations:
            deletes = operation.methods == ("DELETE",) and operation.run is not None
            assert deletes == (operation.rule.purpose is Purpose.FREEING), operation.name
