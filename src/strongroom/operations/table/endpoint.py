"""The Table service: its operations, and the addresses of its URLs.

Source: "Addressing Table service resources".
"""

from __future__ import annotations

from typing import Final

import msgspec

from strongroom.auth.request import Service
from strongroom.errors import table as table_errors
from strongroom.errors.core import StorageError
from strongroom.operations.core import properties
from strongroom.operations.core.endpoint import Endpoint, RefusalBody, ResourceAddress, xml_refusal
from strongroom.operations.core.routes import Routes
from strongroom.operations.core.spec import Operation, Resource
from strongroom.operations.table import entity, entity_query, entity_returned, table
from strongroom.semantics.core import names
from strongroom.wire.core.http import Request
from strongroom.wire.core.path import UrlTarget
from strongroom.wire.core.query import Query
from strongroom.wire.core.service_properties_xml import read_shared_properties
from strongroom.wire.table import odata, table_path
from strongroom.wire.table.odata import Metadata

_TUNNEL: Final = "x-http-method"
_AFTER_ACCOUNT: Final = (table_path.TABLES, table_path.BATCH)
_TUNNELLED: Final = ("PUT", "MERGE", "PATCH", "DELETE")

ROUTES: Final = Routes(
    (
        properties.preflight("Table"),
        *properties.properties("Table", read_shared_properties),
        *table.OPERATIONS,
        *entity.OPERATIONS,
        *entity_query.OPERATIONS,
    ),
    table_errors.METHOD_NOT_ALLOWED,
)


def _address(target: UrlTarget, query: Query) -> ResourceAddress:
    """The resource after the account's name; a slash can only be part of a key.

    An account's URL that ends in a table's name makes clients address that table with a further
    segment. Then the table is meant, and the operation on it answers what is wrong.
    """
    if target.container is None:
        return ResourceAddress(target, Resource.SERVICE)
    if target.blob in _AFTER_ACCOUNT and target.container not in _AFTER_ACCOUNT:
        return ResourceAddress(_of(target, target.container), Resource.TABLE)
    text = target.container if target.blob is None else f"{target.container}/{target.blob}"
    resource = table_path.parse_resource(text)
    if resource.name == table_path.BATCH:
        # The table of a SAS, since its stored policies are needed to authorize the batch.
        return ResourceAddress(_of(target, query.get("tn")), Resource.BATCH)
    if resource.name == table_path.TABLES:
        if isinstance(resource.keyed, str):
            return ResourceAddress(_of(target, resource.keyed), Resource.TABLE_NAMED)
        return ResourceAddress(_of(target, None), Resource.TABLES)
    if isinstance(resource.keyed, tuple):
        return ResourceAddress(_of(target, resource.name), Resource.ENTITY, resource.keyed)
    return ResourceAddress(_of(target, resource.name), Resource.TABLE)


def _of(target: UrlTarget, table: str | None) -> UrlTarget:
    return msgspec.structs.replace(target, container=table, blob=None)


def _check_names(addressed: ResourceAddress) -> None:
    if addressed.target.container is not None:
        names.check_table(addressed.target.container)


def _method(request: Request) -> str:
    """The verb of a request; a POST may have another one in X-HTTP-Method."""
    meant = request.headers.get(_TUNNEL)
    if meant is None:
        return request.method
    if _TUNNEL in request.headers.repeats:
        raise StorageError(table_errors.XMETHOD_INCORRECT_COUNT)
    if request.method != "POST":
        raise StorageError(table_errors.XMETHOD_NOT_USING_POST)
    if meant.upper() not in _TUNNELLED:
        raise StorageError(table_errors.XMETHOD_INCORRECT_VALUE)
    return meant.upper()


def _refusal(
    error: StorageError, request_id: str, now: int, operation: Operation | None
) -> RefusalBody:
    """A JSON body; XML for operations that use XML themselves (properties and access control)."""
    if operation is not None and operation.comp is not None:
        return xml_refusal(error, request_id, now, operation)
    body = odata.error_body(error, request_id, now)
    return RefusalBody(body, Metadata.MINIMAL.content_type)


ENDPOINT: Final = Endpoint(
    Service.TABLE,
    ROUTES,
    _address,
    _check_names,
    method=_method,
    refusal=_refusal,
    always=entity_returned.ALWAYS,
)
