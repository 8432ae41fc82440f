"""Declarations: operations on the account and its Blob service, in the order of the reference.

Lives here: data only. Must not live here: functions. Source: "Operations on the account (Blob
Storage)" of the REST reference; docs/operations/blob.md, table "Service".
"""

from __future__ import annotations

from typing import Final

from strongroom import limits
from strongroom.auth.authorize import Permission
from strongroom.errors import CORS_PREFLIGHT_FAILURE, REQUEST_BODY_TOO_LARGE
from strongroom.operations import container_fields as fields
from strongroom.operations import container_returned as give
from strongroom.operations import listings, permissions
from strongroom.operations.spec import Body, Operation, Resource
from strongroom.services import account, list_containers
from strongroom.wire.service_properties_xml import read_service_properties

LIST_CONTAINERS: Final = Operation(
    name="List Containers",
    id="service_list_containers_segment",
    methods=("GET",),
    resource=Resource.SERVICE,
    comp="list",
    permission=permissions.SERVICE_LIST,
    input=list_containers.ListContainers,
    accepts=(fields.PREFIX, fields.MARKER, fields.MAX_RESULTS, fields.CONTAINER_INCLUDES),
    returns=(give.XML,),
    content=listings.containers,
    run=list_containers.list_containers,
)

GET_BLOB_SERVICE_PROPERTIES: Final = Operation(
    name="Get Blob Service Properties",
    id="service_get_properties",
    methods=("GET",),
    resource=Resource.SERVICE,
    restype="service",
    comp="properties",
    permission=permissions.SERVICE_READ,
    returns=(give.XML,),
    content=listings.service_properties,
    run=account.get_properties,
)

SET_BLOB_SERVICE_PROPERTIES: Final = Operation(
    name="Set Blob Service Properties",
    id="service_set_properties",
    methods=("PUT",),
    resource=Resource.SERVICE,
    restype="service",
    comp="properties",
    permission=permissions.SERVICE_WRITE,
    input=account.SetServiceProperties,
    body=Body("properties", read_service_properties, limits.XML_BODY_BYTES_MAX),
    success=202,
    fails=(REQUEST_BODY_TOO_LARGE,),
    run=account.set_properties,
)

_INFORMATION: Final = (give.SKU_NAME, give.ACCOUNT_KIND, give.HIERARCHICAL)

GET_ACCOUNT_INFORMATION: Final = Operation(
    name="Get Account Information",
    id="service_get_account_info",
    methods=("GET",),
    resource=Resource.SERVICE,
    restype="account",
    comp="properties",
    permission=Permission(("sco", ("r",))),
    returns=_INFORMATION,
    run=account.get_information,
)

GET_ACCOUNT_INFORMATION_CONTAINER: Final = Operation(
    name="Get Account Information (container)",
    id="container_get_account_info",
    methods=("GET",),
    resource=Resource.CONTAINER,
    restype="account",
    comp="properties",
    permission=Permission(("sco", ("r",)), ("r",)),
    returns=_INFORMATION,
    run=account.get_information,
)

GET_ACCOUNT_INFORMATION_BLOB: Final = Operation(
    name="Get Account Information (blob)",
    id="blob_get_account_info",
    methods=("GET",),
    resource=Resource.BLOB,
    restype="account",
    comp="properties",
    permission=Permission(("sco", ("r",)), ("r",)),
    returns=_INFORMATION,
    run=account.get_information,
)

PREFLIGHT: Final = Operation(
    name="Preflight Blob Request",
    id="preflight",
    methods=("OPTIONS",),
    resource=Resource.ANY,
    permission=permissions.ANYONE,
    input=account.Preflight,
    accepts=(fields.ORIGIN, fields.REQUEST_METHOD, fields.REQUEST_HEADERS),
    spreads=give.cors_headers,
    fails=(CORS_PREFLIGHT_FAILURE,),
    run=account.preflight,
)

OPERATIONS: Final = (
    PREFLIGHT,
    LIST_CONTAINERS,
    GET_BLOB_SERVICE_PROPERTIES,
    SET_BLOB_SERVICE_PROPERTIES,
    GET_ACCOUNT_INFORMATION,
    GET_ACCOUNT_INFORMATION_CONTAINER,
    GET_ACCOUNT_INFORMATION_BLOB,
)
