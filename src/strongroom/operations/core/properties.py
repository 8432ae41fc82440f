"""Declarations that all services share: properties, statistics, preflight requests.

Source: "Get/Set Blob Service Properties" and the same pages for queues and tables, "Preflight Blob
Request"; docs/operations, tables "Service".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from strongroom import limits
from strongroom.errors.core import CORS_PREFLIGHT_FAILURE
from strongroom.operations.core import answers, permissions
from strongroom.operations.core.fields import header
from strongroom.operations.core.spec import BodyKind, Operation, Resource
from strongroom.service_properties import ServiceProperties
from strongroom.services.core import account
from strongroom.wire.core import headers as wire

ORIGIN: Final = header("origin", "origin")
REQUEST_METHOD: Final = header("method", "access-control-request-method")
REQUEST_HEADERS: Final = header(
    "headers",
    "access-control-request-headers",
    lambda name, value: wire.comma_list(value),
    default=(),
)


def preflight(title: str) -> Operation:
    """A browser's preflight request to `title` (`Blob`, `Queue`, `Table`)."""
    return Operation(
        name=f"Preflight {title} Request",
        id="preflight",
        methods=("OPTIONS",),
        resource=Resource.ANY,
        permission=permissions.ANYONE,
        input=account.Preflight,
        accepts=(ORIGIN, REQUEST_METHOD, REQUEST_HEADERS),
        extra_headers=answers.cors_headers,
        fails=(CORS_PREFLIGHT_FAILURE,),
        run=account.preflight,
    )


def properties(title: str, read: Callable[[bytes], ServiceProperties]) -> tuple[Operation, ...]:
    """Get and Set Service Properties, and Get Service Stats, of the service `title`.

    Arguments:
        read: parses the body of Set Service Properties.
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
            returns=(answers.XML,),
            content=answers.service_properties,
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
            body=BodyKind("properties", read, limits.XML_BODY_BYTES_MAX),
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
            returns=(answers.XML,),
            content=answers.service_stats,
            run=account.get_stats,
        ),
    )
