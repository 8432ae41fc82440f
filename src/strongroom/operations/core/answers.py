"""The answers that all services share: headers and documents of containers and of a service's
properties.

Source: response headers and bodies of "Get Container Metadata", "Get Table ACL", "Get Blob Service
Properties", "Get Blob Service Stats".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from strongroom.operations.core.spec import Content, Origin, Returned
from strongroom.service_properties import ServiceProperties
from strongroom.services.core.calls import Call
from strongroom.values import AccessPolicy
from strongroom.wire.core.service_properties_xml import (
    write_service_properties,
    write_service_stats,
)
from strongroom.wire.core.signed_identifiers import write_signed_identifiers

Headers = tuple[tuple[str, str], ...]

XML: Final = Returned("Content-Type", lambda result: "application/xml")


def metadata(result: Any) -> Headers:
    """x-ms-meta-* of a container or a queue."""
    return tuple(("x-ms-meta-" + name, value) for name, value in result.record.metadata)


def cors_headers(found: Headers) -> Headers:
    """The result of a preflight request is its headers."""
    return found


def policies(found: tuple[AccessPolicy, ...], call: Call[Any], origin: Origin) -> Content:
    """The answer of Get Table ACL."""
    return document(write_signed_identifiers(found))


def service_properties(properties: ServiceProperties, call: Call[Any], origin: Origin) -> Content:
    return document(write_service_properties(properties))


def service_stats(last_sync: int, call: Call[Any], origin: Origin) -> Content:
    """The secondary is this same store, so it is always live."""
    return document(write_service_stats("live", last_sync))


def document(body: bytes) -> Content:
    return Content(body, len(body))


def long_document(pieces: Iterator[bytes]) -> Content:
    """A body that is made piece by piece, so that other requests get turns in between."""
    return Content(pieces)
