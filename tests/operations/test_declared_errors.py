"""The errors that operations declare: the common errors are not repeated."""

from __future__ import annotations

from strongroom.operations.blob import endpoint as blob_service
from strongroom.operations.file import endpoint as file_service
from strongroom.operations.queue import endpoint as queue_service
from strongroom.operations.table import endpoint as table_service
from strongroom.semantics.core.lease import LeaseUse

OPERATIONS = [
    (operation, service.ENDPOINT.implied_errors(operation))
    for service in (blob_service, queue_service, table_service, file_service)
    for operation in service.ENDPOINT.routes.operations
]


def test_no_declaration_repeats_what_follows_from_it() -> None:
    repeated = {
        operation.name: sorted(row.code for row in implied & {*operation.fails})
        for operation, implied in OPERATIONS
    }
    assert {name: codes for name, codes in repeated.items() if codes} == {}


def test_what_a_lease_refuses_follows_from_its_use() -> None:
    codes = {
        operation.rule.lease: {row.code for row in implied if "Lease" in row.code}
        for operation, implied in OPERATIONS
    }
    read = {"LeaseNotPresentWith", "LeaseIdMismatchWith"}
    of_blob = {f"{code}BlobOperation" for code in read} | {"LeaseLost"}
    of_container = {f"{code}ContainerOperation" for code in read} | {"LeaseLost"}
    of_share = {f"{code}ShareOperation" for code in read} | {"LeaseLost"}
    of_file = {f"{code}FileOperation" for code in read} | {"LeaseLost"}
    assert codes == {
        LeaseUse.NONE: set(),
        LeaseUse.READ: of_blob,
        LeaseUse.WRITE: of_blob | {"LeaseIdMissing"},
        LeaseUse.READ_CONTAINER: of_container,
        LeaseUse.DELETE_CONTAINER: of_container | {"LeaseIdMissing"},
        LeaseUse.READ_SHARE: of_share,
        LeaseUse.WRITE_SHARE: of_share | {"LeaseIdMissing"},
        LeaseUse.READ_FILE: of_file,
        LeaseUse.WRITE_FILE: of_file | {"LeaseIdMissing"},
    }
