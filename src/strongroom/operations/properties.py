"""Declarations that every service has: its properties, its statistics, preflight requests.

Lives here: data only, made for one service at a time. Must not live here: operations that only one
service has. Source: "Get/Set Blob Service Properties" and its like for queues and tables,
"Preflight Blob Request"; docs/operations, tables "Service".
"""

from __future__ import annotations

from collections.abc import Callable

from strongroom import limits
from strongroom.errors import CORS_PREFLIGHT_FAILURE
from strongroom.operations import container_fields as fields
from strongroom.operations import container_returned as give
from strongroom.operations import listings, permissions
from strongroom.operations.spec import Body, Operation, Resource
from strongroom.service_properties import ServiceProperties
from strongroom.services import account


def preflight(title: str) -> Operation:
    """Preflight request of a browser to the service `title` (`Blob`, `Queue`, `Table`)."""
    return Operation(
        name=f"Preflight {title} Request",
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


def properties(title: str, read: Callable[[bytes], ServiceProperties]) -> tuple[Operation, ...]:
    """Get and Set Service Properties, and Get Service Stats, of the service `title`.

    Arguments:
        read: the body of Set Service Properties.
    """
    return (
        Operation(
            name=f"Get {title} Service Properties",
            id="service_get_properties",
            methods=("GET",),
            resource=Resource.SERVICE,
            restype="service",
            comp="properties",
            permission=permissions.SERVICE_READ,
            returns=(give.XML,),
            content=listings.service_properties,
            run=account.get_properties,
        ),
        Operation(
            name=f"Set {title} Service Properties",
            id="service_set_properties",
            methods=("PUT",),
            resource=Resource.SERVICE,
            restype="service",
            comp="properties",
            permission=permissions.SERVICE_WRITE,
            input=account.SetServiceProperties,
            body=Body("properties", read, limits.XML_BODY_BYTES_MAX),
            success=202,
            run=account.set_properties,
        ),
        Operation(
            name=f"Get {title} Service Stats",
            id="service_get_statistics",
            methods=("GET",),
            resource=Resource.SERVICE,
            restype="service",
            comp="stats",
            permission=permissions.SERVICE_READ,
            returns=(give.XML,),
            content=listings.service_stats,
            run=account.get_stats,
        ),
    )
