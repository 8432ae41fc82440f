"""Declarations: operations on the account and its Blob service, in the order of the reference.

Source: "Operations on the account (Blob Storage)" of the REST reference; docs/operations/blob.md,
table "Service".
"""

from __future__ import annotations

from typing import Final

from strongroom.auth.authorize import Permission
from strongroom.operations.blob import listings
from strongroom.operations.blob.fields import container_fields as fields
from strongroom.operations.blob.fields import container_returned as give
from strongroom.operations.core import permissions, properties
from strongroom.operations.core.answers import XML
from strongroom.operations.core.delegation import get_user_delegation_key
from strongroom.operations.core.listing_fields import MAX_RESULTS, PREFIX
from strongroom.operations.core.spec import Operation, Resource
from strongroom.services.blob.containers import list_containers
from strongroom.services.core import account
from strongroom.services.core.calls import Rule
from strongroom.wire.core.service_properties_xml import read_service_properties

LIST_CONTAINERS: Final = Operation(
    name="List Containers",
    id="service_list_containers_segment",
    methods=("GET",),
    resource=Resource.SERVICE,
    comp="list",
    permission=permissions.SERVICE_LIST,
    input=list_containers.ListContainers,
    accepts=(PREFIX, fields.MARKER, MAX_RESULTS, fields.CONTAINER_INCLUDES),
    returns=(XML,),
    content=listings.containers,
    run=list_containers.list_containers,
)


def _information(name: str, id: str, resource: Resource, permission: Permission) -> Operation:
    return Operation(
        name=name,
        id=id,
        methods=("GET", "HEAD"),
        resource=resource,
        restype="account",
        comp="properties",
        permission=permission,
        returns=(give.SKU_NAME, give.ACCOUNT_KIND, give.HIERARCHICAL),
        run=account.get_information,
    )


GET_ACCOUNT_INFORMATION: Final = _information(
    "Get Account Information",
    "service_get_account_info",
    Resource.SERVICE,
    permissions.INFORMATION,
)
GET_ACCOUNT_INFORMATION_CONTAINER: Final = _information(
    "Get Account Information (container)",
    "container_get_account_info",
    Resource.CONTAINER,
    permissions.INFORMATION_BELOW,
)
GET_ACCOUNT_INFORMATION_BLOB: Final = _information(
    "Get Account Information (blob)",
    "blob_get_account_info",
    Resource.BLOB,
    permissions.INFORMATION_BELOW,
)

OPERATIONS: Final = (
    properties.preflight("Blob"),
    LIST_CONTAINERS,
    *properties.properties("Blob", read_service_properties),
    GET_ACCOUNT_INFORMATION,
    GET_ACCOUNT_INFORMATION_CONTAINER,
    GET_ACCOUNT_INFORMATION_BLOB,
    get_user_delegation_key(Rule()),
)
